//! One changed field of one structure, the checksum right: our check and the newest `xfs_repair -n`
//! must agree whether the volume is sound, but for the fields that CONTRIBUTING.md lists with a
//! reason.

mod found;
mod known;
mod layout;
mod locate;
mod old;

use found::{BLOCK, SECTOR, Target};
use known::Known;
use layout::Field;

pub use old::old_volume;
use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use undercroft_block::{BlockDevice, FileDevice, Sector, write_all_at};
use undercroft_judges::random::Random;
use undercroft_judges::{Error as JudgeError, Xfsprogs};
use undercroft_xfs::check::{CheckOptions, Severity, check};
use undercroft_xfs::format::checksum;

/// Ways to change a value; each field sees all of them in as many turns.
const WAYS: u64 = 7;

/// A field with all places where it is.
struct Case {
    structure: &'static str,
    field: &'static str,
    places: Vec<(Target, Field)>,
}

/// A sound volume and all its fields.
pub struct Fields {
    image: Vec<u8>,
    cases: Vec<Case>,
    known: Known,
}

/// The judge that found fault where the other did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    Check,
    Repair,
}

/// Fields on which both do not agree.
#[derive(Debug)]
pub struct Difference {
    pub is_known: bool,
    text: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What came of a run.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Volumes on which both were asked.
    pub compared: u64,
    /// Volumes that both found fault with.
    pub refused: u64,
    pub differences: Vec<Difference>,
}

/// How loud a judge was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
enum Verdict {
    Silent,
    Warns,
    Refuses,
}

impl Fields {
    /// Finds the fields of the volume in the file `image`.
    pub fn new(image: &Path) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let image = std::fs::read(image)?;
        let mut cases: Vec<Case> = Vec::new();
        for (structure, targets) in locate::locate(&image) {
            let first = cases.len();
            for target in targets {
                for field in target.fields {
                    let known = cases[first..].iter_mut().find(|case| case.field == field.name);
                    match known {
                        Some(case) => case.places.push((target, *field)),
                        None => cases.push(Case {
                            structure,
                            field: field.name,
                            places: vec![(target, *field)],
                        }),
                    }
                }
            }
        }
        Ok(Self { image, cases, known: Known::new()? })
    }

    /// Number of fields.
    pub fn count(&self) -> usize {
        self.cases.len()
    }

    /// Changes one field in each of `rounds` volumes and has both judge it. The copies are in
    /// `directory`. Differences are told as they come.
    pub fn compare(
        &self,
        directory: &Path,
        rounds: u64,
        seed: u64,
        tell: &(dyn Fn(&Difference) + Sync),
    ) -> Result<Outcome, Box<dyn Error + Send + Sync>> {
        /// As many as the volumes are independent of each other; the judge waits for its disk.
        const THREADS: usize = 3;
        let next = AtomicU64::new(0);
        let work = |name: PathBuf| -> Result<Outcome, Box<dyn Error + Send + Sync>> {
            let (copy, mut outcome) = (Copy::new(self, &name)?, Outcome::default());
            loop {
                let round = next.fetch_add(1, Ordering::Relaxed);
                if round >= rounds {
                    return Ok(outcome);
                }
                self.round(&copy, round, seed, &mut outcome, tell)?;
            }
        };
        let mut total = Outcome::default();
        thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|number| directory.join(format!("copy-{number}.img")))
                .map(|name| scope.spawn(|| work(name)))
                .collect();
            for thread in threads {
                let part = thread.join().map_err(|_| "a comparison panicked")??;
                total.compared += part.compared;
                total.refused += part.refused;
                total.differences.extend(part.differences);
            }
            Ok(total)
        })
    }

    fn round(
        &self,
        copy: &Copy,
        round: u64,
        seed: u64,
        outcome: &mut Outcome,
        tell: &(dyn Fn(&Difference) + Sync),
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        /// Spreads a short run over all structures: a prime, so that every field has its turn.
        const STRIDE: u64 = 7919;
        let count = self.cases.len() as u64;
        let index = round * STRIDE % count;
        let mut random = Random::new(seed ^ round << 20);
        let case = &self.cases[index as usize];
        let (target, field) = case.places[random.below(case.places.len() as u64) as usize];
        let mut bytes = self.image[target.at..target.at + target.len].to_vec();
        let old = field.get(&bytes, target.base);
        let way = (round / count + index) % WAYS;
        field.set(&mut bytes, target.base, changed(old, field.bits, way, &mut random));
        let new = field.get(&bytes, target.base);
        if new == old {
            return Ok(());
        }
        if let Some(crc) = target.crc {
            checksum::stamp(&mut bytes, crc);
        }
        let what = format!(
            "{} {} at byte {} from {old:#x} to {new:#x}",
            case.structure,
            case.field,
            target.at + target.base
        );
        let ((ours, findings), (theirs, complaints)) = copy.judge(self, target, &bytes)?;
        outcome.compared += 1;
        outcome.refused += u64::from(ours != Verdict::Silent && theirs != Verdict::Silent);
        let who = match (ours, theirs) {
            (Verdict::Silent, Verdict::Silent) => return Ok(()),
            (_, Verdict::Silent) => Who::Check,
            (ours, theirs) if ours < theirs && ours != Verdict::Refuses => Who::Repair,
            _ => return Ok(()),
        };
        let is_known = self.known.contains(case.structure, case.field, who);
        let text =
            format!("{who:?} alone: {what}\n    check {findings:?}\n    repair {complaints:?}");
        let difference = Difference { is_known, text };
        tell(&difference);
        outcome.differences.push(difference);
        Ok(())
    }
}

/// Another value for a field of `bits` bits.
fn changed(old: u128, bits: usize, way: u64, random: &mut Random) -> u128 {
    match way {
        0 => 0,
        1 => u128::MAX,
        2 => old.wrapping_add(1),
        3 => old.wrapping_sub(1),
        4 => old ^ 1 << (bits - 1),
        5 => old ^ 1 << random.below(bits as u64),
        _ => u128::from(random.bits()) << 64 | u128::from(random.bits()),
    }
}

/// A file with a copy of the volume.
struct Copy {
    path: PathBuf,
    device: Arc<dyn BlockDevice>,
    tools: Xfsprogs,
}

type Judgements = ((Verdict, Vec<String>), (Verdict, Vec<String>));

impl Copy {
    fn new(fields: &Fields, path: &Path) -> Result<Self, Box<dyn Error + Send + Sync>> {
        std::fs::File::create(path)?.set_len(fields.image.len() as u64)?;
        let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(path, false)?);
        for (index, part) in fields.image.chunks(BLOCK).enumerate() {
            if part.iter().any(|byte| *byte != 0) {
                write_all_at(device.as_ref(), sector(index * BLOCK), part)?;
            }
        }
        Ok(Self { path: path.to_owned(), device, tools: Xfsprogs::newest()? })
    }

    /// Both judgements of the volume with `bytes` in the place of `target`.
    fn judge(
        &self,
        fields: &Fields,
        target: Target,
        bytes: &[u8],
    ) -> Result<Judgements, Box<dyn Error + Send + Sync>> {
        /// Enough to see the subject.
        const LINES: usize = 4;
        write_all_at(self.device.as_ref(), sector(target.at), bytes)?;
        let (mut findings, mut ours) = (Vec::new(), Verdict::Silent);
        let report = check(Arc::clone(&self.device), &CheckOptions::default(), &mut |finding| {
            let severe = finding.severity == Severity::Error;
            let verdict = if severe { Verdict::Refuses } else { Verdict::Warns };
            if verdict > ours {
                ours = verdict;
            }
            findings.push(finding.to_string());
        });
        if let Err(error) = report {
            (ours, findings) = (Verdict::Refuses, vec![error.to_string()]);
        }
        let (theirs, mut complaints) = match self.tools.repair_check(&self.path) {
            Ok(()) => (Verdict::Silent, Vec::new()),
            Err(JudgeError::Complaint(report)) => {
                let content = report.status == "exit status: 0";
                let verdict = if content { Verdict::Warns } else { Verdict::Refuses };
                (verdict, report.complaints)
            }
            Err(error) => return Err(error.into()),
        };
        let pristine = &fields.image[target.at..target.at + target.len];
        write_all_at(self.device.as_ref(), sector(target.at), pristine)?;
        findings.truncate(LINES);
        complaints.truncate(LINES);
        Ok(((ours, findings), (theirs, complaints)))
    }
}

fn sector(byte: usize) -> Sector {
    Sector((byte / SECTOR) as u64)
}
