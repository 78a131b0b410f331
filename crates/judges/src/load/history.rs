//! What the operations so far allow a crash to leave: of each file the names it may have, the sizes,
//! and the versions of each sector. A sync that was acknowledged leaves one of each.

use std::collections::BTreeMap;

use super::operation::{Name, Operation, Way};

/// A file of one worker.
#[derive(Debug, Default)]
pub(super) struct File {
    /// Names one after the other; none is before it was created, or when it is gone. The last is the
    /// present one, each may be what a crash leaves.
    pub(super) names: Vec<Option<Name>>,
    /// The present length in sectors.
    pub(super) size: u64,
    /// The least and the largest length that a crash may leave.
    pub(super) sizes: (u64, u64),
    /// By sector: the versions that a crash may leave, the last is the present one; 0 is zeros.
    pub(super) sectors: Vec<Vec<u64>>,
}

impl File {
    pub(super) fn name(&self) -> Option<&Name> {
        self.names.last().and_then(Option::as_ref)
    }

    /// The versions of a sector that may be found.
    pub(super) fn allows(&self, index: u64, version: u64) -> bool {
        let sector = usize::try_from(index).ok().and_then(|index| self.sectors.get(index));
        sector.map_or(version == 0, |versions| versions.contains(&version))
    }

    fn put(&mut self, first: u64, count: u64, version: u64) {
        let end = usize::try_from(first + count).unwrap_or(0);
        if self.sectors.len() < end {
            self.sectors.resize(end, vec![0]);
        }
        for versions in &mut self.sectors[usize::try_from(first).unwrap_or(0)..end] {
            versions.push(version);
        }
    }

    fn resize(&mut self, size: u64) {
        self.size = size;
        self.sizes = (self.sizes.0.min(size), self.sizes.1.max(size));
    }

    /// The data is durable as it is now.
    fn settle_data(&mut self) {
        self.sectors.truncate(usize::try_from(self.size).unwrap_or(0));
        for versions in &mut self.sectors {
            versions.drain(..versions.len() - 1);
        }
        self.sizes = (self.size, self.size);
    }

    /// All names before the one at `index` are past.
    fn settle_names(&mut self, index: usize) {
        self.names.drain(..index);
    }
}

/// All files of one worker, by number.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) files: BTreeMap<u64, File>,
}

impl History {
    /// An operation begins: from now on a crash may leave its effect or that of a part of it.
    pub(super) fn begin(&mut self, operation: &Operation) {
        match operation {
            Operation::Create { file, name } => {
                let names = vec![None, Some(name.clone())];
                self.files.insert(*file, File { names, ..File::default() });
            }
            Operation::Write { file, first, count, version, .. } => {
                let Some(file) = self.files.get_mut(file) else { return };
                file.put(*first, *count, *version);
                file.resize(file.size.max(first + count));
            }
            Operation::Truncate { file, count } => {
                let Some(file) = self.files.get_mut(file) else { return };
                let behind = file.size.saturating_sub(*count);
                file.put(*count, behind, 0);
                file.resize(*count);
            }
            Operation::Punch { file, first, count } => {
                if let Some(file) = self.files.get_mut(file) {
                    file.put(*first, *count, 0);
                }
            }
            Operation::Rename { file, name } => self.move_to(*file, Some(name.clone())),
            Operation::Replace { file, victim } => {
                let name = self.files.get(victim).and_then(File::name).cloned();
                self.move_to(*victim, None);
                self.move_to(*file, name);
            }
            Operation::Unlink { file } => self.move_to(*file, None),
            Operation::Sync { .. }
            | Operation::DataSync { .. }
            | Operation::DirectorySync { .. } => {}
        }
    }

    fn move_to(&mut self, file: u64, name: Option<Name>) {
        if let Some(file) = self.files.get_mut(&file) {
            file.names.push(name);
        }
    }

    /// An operation has returned with success.
    pub(super) fn acknowledge(&mut self, operation: &Operation) {
        match operation {
            Operation::Write { file, first, count, way: Way::Durable | Way::Direct, .. } => {
                let Some(file) = self.files.get_mut(file) else { return };
                let range = usize::try_from(*first).unwrap_or(0)..;
                let count = usize::try_from(*count).unwrap_or(0);
                for versions in file.sectors[range].iter_mut().take(count) {
                    versions.drain(..versions.len() - 1);
                }
                // The length that is needed to find the data again is durable with it.
                file.sizes.0 = file.sizes.0.max(first + u64::try_from(count).unwrap_or(0));
                file.settle_creation();
            }
            Operation::Sync { file } => {
                let Some(file) = self.files.get_mut(file) else { return };
                file.settle_data();
                file.settle_names(file.names.len() - 1);
            }
            Operation::DataSync { file } => {
                let Some(file) = self.files.get_mut(file) else { return };
                file.settle_data();
                file.settle_creation();
            }
            Operation::DirectorySync { directory } => {
                for file in self.files.values_mut() {
                    file.settle_directory(*directory);
                }
            }
            _ => {}
        }
    }
}

impl File {
    /// That the file is there is durable; which of its names since is not said.
    fn settle_creation(&mut self) {
        if self.names.first() == Some(&None) && self.names.len() > 1 {
            self.settle_names(1);
        }
    }

    /// The last change of a name in a directory is durable, and with it all before.
    fn settle_directory(&mut self, directory: usize) {
        let there = |name: &Option<Name>| name.as_ref().is_some_and(|at| at.directory == directory);
        let last = (1..self.names.len())
            .rev()
            .find(|index| there(&self.names[index - 1]) || there(&self.names[*index]));
        if let Some(index) = last {
            self.settle_names(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(directory: usize, name: &str) -> Name {
        Name { directory, name: name.to_owned() }
    }

    fn write(first: u64, count: u64, version: u64, way: Way) -> Operation {
        Operation::Write { file: 1, first, count, version, way }
    }

    /// A history in which each operation has returned.
    fn history(operations: &[Operation]) -> History {
        let mut history = History::default();
        for operation in operations {
            history.begin(operation);
            history.acknowledge(operation);
        }
        history
    }

    #[test]
    fn only_syncs_settle_data() {
        let create = Operation::Create { file: 1, name: name(0, "a") };
        let mut all = vec![create, write(0, 2, 1, Way::Cached)];
        let loose = history(&all);
        assert_eq!((loose.files[&1].sizes, loose.files[&1].names.len()), ((0, 2), 2));
        assert!(loose.files[&1].allows(1, 0) && loose.files[&1].allows(1, 1));
        all.extend([Operation::Sync { file: 1 }, write(1, 2, 2, Way::Durable)]);
        let settled = history(&all);
        let file = &settled.files[&1];
        assert_eq!((file.sizes, file.names.len()), ((3, 3), 1));
        assert!(file.allows(0, 1) && !file.allows(0, 0));
        assert!(file.allows(1, 2) && !file.allows(1, 1));
        // What was cut off does not come back behind a sync.
        all.extend([Operation::Truncate { file: 1, count: 1 }, Operation::DataSync { file: 1 }]);
        all.push(write(1, 1, 3, Way::Cached));
        let file = &history(&all).files[&1];
        assert!(file.allows(1, 3) && file.allows(1, 0) && !file.allows(1, 2));
    }

    #[test]
    fn a_directory_settles_the_names_it_saw() {
        let all = [
            Operation::Create { file: 1, name: name(0, "a") },
            Operation::Sync { file: 1 },
            Operation::Rename { file: 1, name: name(1, "b") },
            Operation::Rename { file: 1, name: name(2, "c") },
            Operation::DirectorySync { directory: 0 },
        ];
        let names = |history: &History| {
            let names = &history.files[&1].names;
            names.iter().map(|at| at.as_ref().map_or(9, |at| at.directory)).collect::<Vec<_>>()
        };
        assert_eq!(names(&history(&all[..4])), [0, 1, 2]);
        assert_eq!(names(&history(&all)), [1, 2]);
        let mut gone = history(&all);
        gone.begin(&Operation::Unlink { file: 1 });
        assert_eq!(names(&gone), [1, 2, 9]);
        gone.acknowledge(&Operation::DirectorySync { directory: 2 });
        assert_eq!(names(&gone), [9]);
    }

    #[test]
    fn a_file_that_is_replaced_goes_as_the_other_comes() {
        let all = [
            Operation::Create { file: 1, name: name(0, "a") },
            Operation::Create { file: 2, name: name(0, "b") },
            Operation::DirectorySync { directory: 0 },
            Operation::Replace { file: 2, victim: 1 },
        ];
        let replaced = history(&all);
        assert_eq!(replaced.files[&1].names, [Some(name(0, "a")), None]);
        assert_eq!(replaced.files[&2].names, [Some(name(0, "b")), Some(name(0, "a"))]);
    }
}
