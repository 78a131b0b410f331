//! Records: one line of JSON for each outcome, complete enough to be read alone.

use std::io::{BufRead, Write};
use std::mem::discriminant;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::machine::Machine;
use crate::outcome::Outcome;

/// One run of a command of the lab; all its records carry it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// The machine.
    pub machine: Machine,
    /// Version of this program.
    pub version: String,
    /// The command as it was typed.
    pub command: String,
    /// Seed of everything random in the workload.
    pub seed: u64,
    /// Seconds from 1970 to the begin.
    pub started: u64,
}

/// An outcome and where it comes from. As JSON all fields stand side by side, the machine in an
/// object of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The result; its kind is the field `experiment`.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// How it was found.
    #[serde(flatten)]
    pub session: Session,
}

impl Session {
    /// A session on this machine that begins now.
    ///
    /// # Errors
    /// The machine does not describe itself.
    pub fn begin(command: String, seed: u64) -> Result<Self, LabError> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Self {
            machine: Machine::this()?,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command,
            seed,
            started: since.as_secs(),
        })
    }
}

/// Writes `record` as one line.
///
/// # Errors
/// The writer's.
pub fn write_record(out: &mut dyn Write, record: &Record) -> Result<(), LabError> {
    serde_json::to_writer(&mut *out, record).map_err(|error| LabError::Write(error.into()))?;
    writeln!(out).map_err(LabError::Write)
}

/// Reads records, one a line; empty lines are skipped.
///
/// # Errors
/// The reader's, or a line that is not a record, by its number.
pub fn read_records(input: &mut dyn BufRead) -> Result<Vec<Record>, LabError> {
    let mut records = Vec::new();
    for (index, line) in input.lines().enumerate() {
        let text = line.map_err(LabError::Read)?;
        if text.trim().is_empty() {
            continue;
        }
        let not_a_record = |source| LabError::NotARecord { line: index + 1, source };
        records.push(serde_json::from_str(&text).map_err(not_a_record)?);
    }
    Ok(records)
}

/// Neighbours that go into one table or chart: those of one experiment in one session.
pub(crate) fn sections(records: &[Record]) -> impl Iterator<Item = &[Record]> {
    records.chunk_by(|left, right| {
        left.session == right.session && discriminant(&left.outcome) == discriminant(&right.outcome)
    })
}
