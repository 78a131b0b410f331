//! Whether what a crash left is one of the states that the log of a worker allows.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::history::{File, History};
use super::operation::{Name, Operation};
use super::sector::{Found, SECTOR, read};
use super::worker::{DONE, ENDED, directories};
use crate::Error;

/// What a log says: the operations, how many of them returned, and the error that ended it.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) history: History,
    pub(super) operations: u64,
    /// Syncs that returned.
    pub(super) syncs: u64,
    pub(super) ended: Option<String>,
}

impl Log {
    /// Reads a log. Its last line may be torn: the worker may have been killed.
    pub(super) fn read(path: &Path) -> Result<Self, Error> {
        let text = fs::read_to_string(path).map_err(Error::io("cannot read", path))?;
        let mut log = Self { history: History::default(), operations: 0, syncs: 0, ended: None };
        let mut begun: Option<Operation> = None;
        for line in text.split_inclusive('\n') {
            let Some(line) = line.strip_suffix('\n') else { continue };
            if let Some(error) = line.strip_prefix(ENDED) {
                log.ended = Some(error.to_owned());
            } else if line == DONE {
                let Some(operation) = begun.take() else { continue };
                log.history.acknowledge(&operation);
                log.operations += 1;
                log.syncs += u64::from(is_sync(&operation));
            } else {
                let operation: Operation = line.parse().map_err(|fault: String| {
                    Error::io("cannot understand", path)(std::io::Error::other(fault))
                })?;
                log.history.begin(&operation);
                begun = Some(operation);
            }
        }
        Ok(log)
    }
}

fn is_sync(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Sync { .. } | Operation::DataSync { .. } | Operation::DirectorySync { .. }
    )
}

/// A file as it was found.
struct Left {
    name: Name,
    bytes: Vec<u8>,
}

/// Compares the directories of a worker below `root` with its history; each fault is one line.
pub(super) fn faults(root: &Path, worker: u64, history: &History) -> Result<Vec<String>, Error> {
    let mut faults = Vec::new();
    let mut owners: BTreeMap<&Name, Vec<u64>> = BTreeMap::new();
    for (number, file) in &history.files {
        for name in file.names.iter().flatten() {
            owners.entry(name).or_default().push(*number);
        }
    }
    let mut found: BTreeMap<u64, Vec<Left>> = BTreeMap::new();
    for (directory, path) in directories(root, worker).iter().enumerate() {
        for entry in fs::read_dir(path).map_err(Error::io("cannot list", path))? {
            let entry = entry.map_err(Error::io("cannot list", path))?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            // In the shared directory are files of others, too; they are numbered by worker.
            let number = name.strip_prefix('f').and_then(|rest| rest.split('-').next());
            let number = number.and_then(|digits| digits.parse::<u64>().ok());
            if number.is_none_or(|number| number >> 32 != worker) {
                continue;
            }
            let bytes = fs::read(entry.path()).map_err(Error::io("cannot read", &entry.path()))?;
            let left = Left { name: Name { directory, name }, bytes };
            let owner = owners.get(&left.name).and_then(|owners| owner_of(&left, owners, history));
            match owner {
                Some(number) => found.entry(number).or_default().push(left),
                None => faults.push(format!("{}: it was gone for good", left.name)),
            }
        }
    }
    for (number, file) in &history.files {
        let left = found.remove(number).unwrap_or_default();
        judge(*number, file, &left, &mut faults);
    }
    Ok(faults)
}

/// The file it is, of those that may have the name: the one that a sector names. Zeros and an empty
/// file can be of each; then it is the one that must be somewhere, and has the fewest names.
fn owner_of(left: &Left, owners: &[u64], history: &History) -> Option<u64> {
    if let [only] = owners {
        return Some(*only);
    }
    let sectors = left.bytes.chunks_exact(SECTOR).map(read);
    match sectors.into_iter().find(|found| *found != Found::Zeros) {
        Some(Found::Version { file, .. }) => owners.contains(&file).then_some(file),
        Some(_) => None,
        None => {
            let names = |owner: &&u64| history.files.get(owner).map(|file| &file.names);
            let rank = |owner: &&u64| names(owner).map(|all| (all.contains(&None), all.len()));
            owners.iter().min_by_key(rank).copied()
        }
    }
}

fn judge(number: u64, file: &File, left: &[Left], faults: &mut Vec<String>) {
    let names = || {
        let all = file.names.iter().map(|name| match name {
            Some(name) => name.to_string(),
            None => "none".to_owned(),
        });
        all.collect::<Vec<_>>().join(", ")
    };
    match left {
        [] if file.names.contains(&None) => {}
        [] => faults.push(format!("file {number} is lost; it must have one of: {}", names())),
        [left] => contents(number, file, left, faults),
        [first, second, ..] => faults.push(format!(
            "file {number} has two names, {} and {}; it must have one of: {}",
            first.name,
            second.name,
            names()
        )),
    }
}

fn contents(number: u64, file: &File, left: &Left, faults: &mut Vec<String>) {
    let (length, rest) = (left.bytes.len() / SECTOR, left.bytes.len() % SECTOR);
    let (least, most) = file.sizes;
    let length = length as u64;
    if rest != 0 || length < least || length > most {
        let bytes = left.bytes.len();
        faults.push(format!(
            "file {number} at {}: {bytes} bytes; {least} to {most} sectors of {SECTOR} are possible",
            left.name
        ));
    }
    for (index, sector) in (0..).zip(left.bytes.chunks_exact(SECTOR)) {
        let version = match read(sector) {
            Found::Zeros => 0,
            Found::Version { file, index: at, version } if (file, at) == (number, index) => version,
            other => {
                faults.push(format!("file {number} at {}, sector {index}: {other:?}", left.name));
                continue;
            }
        };
        if !file.allows(index, version) {
            let allowed = file.sectors.get(usize::try_from(index).unwrap_or(usize::MAX));
            faults.push(format!(
                "file {number} at {}, sector {index}: version {version} of {allowed:?}",
                left.name
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::operation::Way;
    use super::*;

    #[test]
    fn a_file_of_zeros_is_the_one_that_replaced_another() {
        let root = tempfile::tempdir().unwrap();
        let worker = 4;
        let (old, new) = (worker << 32 | 1, worker << 32 | 2);
        let name = |number: u64| Name { directory: 0, name: format!("f{number}-1") };
        let mut history = History::default();
        for operation in [
            Operation::Create { file: old, name: name(old) },
            Operation::Create { file: new, name: name(new) },
            Operation::Write { file: new, first: 0, count: 1, version: 1, way: Way::Cached },
            Operation::Sync { file: new },
            Operation::Replace { file: new, victim: old },
            Operation::Sync { file: new },
            Operation::Punch { file: new, first: 0, count: 1 },
        ] {
            history.begin(&operation);
            history.acknowledge(&operation);
        }
        for path in directories(root.path(), worker) {
            fs::create_dir_all(path).unwrap();
        }
        let found = || faults(root.path(), worker, &history).unwrap();
        assert!(found()[0].contains("is lost"), "{:?}", found());
        let path = directories(root.path(), worker)[0].join(&name(old).name);
        fs::write(&path, [0; SECTOR]).unwrap();
        assert_eq!(found(), [""; 0]);
        fs::write(&path, [7; SECTOR]).unwrap();
        assert_eq!(found().len(), 2);
    }
}
