//! The lines of a description, plain or compressed.

use super::error::{DescriptionError, DescriptionProblem};
use crate::SourceError;
use crate::compression::{Compression, MAGIC_LENGTH};
use crate::description::DescriptionSpec;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};

/// Longest line: room for many attributes and contents, which escapes make four times as long.
pub(super) const LINE_MAX: usize = 64 << 20;

/// Numbered lines.
pub(super) struct Lines {
    description: String,
    reader: Box<dyn BufRead + Send>,
    line: Vec<u8>,
    number: u64,
}

impl Lines {
    /// The lines of the file that `spec` names.
    pub(super) fn open(spec: &DescriptionSpec) -> Result<Self, SourceError> {
        let failed = |source| SourceError::Open { path: spec.path.clone(), source };
        let mut file = if spec.is_standard_input() {
            let input = rustix::io::dup(rustix::stdio::stdin());
            File::from(input.map_err(|error| failed(error.into()))?)
        } else {
            File::open(&spec.path).map_err(failed)?
        };
        let mut magic = Vec::with_capacity(MAGIC_LENGTH);
        (&mut file).take(MAGIC_LENGTH as u64).read_to_end(&mut magic).map_err(failed)?;
        let compression = Compression::of(&magic);
        let stream = compression.decode(Cursor::new(magic).chain(file)).map_err(failed)?;
        Ok(Self::new(spec.to_string(), BufReader::with_capacity(1 << 16, stream)))
    }

    pub(super) fn new(description: String, reader: impl BufRead + Send + 'static) -> Self {
        Self { description, reader: Box::new(reader), line: Vec::new(), number: 0 }
    }

    /// The number of the line that came last.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// A fault of the line that came last.
    pub(super) fn fault(&self, problem: DescriptionProblem) -> Box<DescriptionError> {
        problem.at(&self.description, self.number)
    }

    /// A fault of a line that came before.
    pub(super) fn fault_on(&self, line: u64, problem: DescriptionProblem) -> Box<DescriptionError> {
        problem.at(&self.description, line)
    }

    /// The next line without its end, or `None` behind the last.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, Box<DescriptionError>> {
        self.line.clear();
        self.number += 1;
        let limit = LINE_MAX as u64 + 1;
        let read = self.reader.by_ref().take(limit).read_until(b'\n', &mut self.line);
        let count = read.map_err(|error| self.fault(io_problem(error)))?;
        if count == 0 {
            return Ok(None);
        }
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        } else if self.line.len() > LINE_MAX {
            return Err(self.fault(DescriptionProblem::LineLength(LINE_MAX)));
        }
        Ok(Some(&self.line))
    }
}

/// Decompressors tell by this kind that their input ended early.
fn io_problem(error: io::Error) -> DescriptionProblem {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => DescriptionProblem::Truncated("its compressed stream"),
        _ => DescriptionProblem::Io(error),
    }
}
