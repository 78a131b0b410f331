//! The operations on a volume of ours, and the volume against the model.

use super::model::Model;
use super::operation::{Move, Operation, Set, pattern, split};
use crate::xfs::check::{check_image, describe};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use undercroft_block::{BlockDevice, FileDevice};
use undercroft_judges::Xfsprogs;
use undercroft_xfs::format::{DeviceNumber, FileType, Timestamp};
use undercroft_xfs::inode::{ForkContent, InodeState};
use undercroft_xfs::ops::Position;
use undercroft_xfs::ops::SetMode;
use undercroft_xfs::ops::{
    self, DataPlacement, DataWriter, MetadataChange, Name, NewInode, RenameMode, Times,
};
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::volume::LiveOptions;
use undercroft_xfs::{Error, ErrorKind, OpenFile, Volume};

/// An open volume.
pub struct Ours {
    pub volume: Arc<Volume>,
    placement: DataPlacement,
}

fn time(seconds: i64) -> Timestamp {
    Timestamp { seconds, nanoseconds: 0 }
}

/// The inode at a path that has no links in it.
fn find(volume: &Volume, path: &[u8]) -> Result<InodeNumber, Error> {
    let mut names = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
    names.try_fold(volume.geometry().root_inode, |directory, name| {
        let directory = volume.inode(directory)?;
        let found = ops::lookup_in_use(volume, &directory.read(), name)?;
        found.ok_or_else(|| Error::NotFound(ops::path_text(path)))
    })
}

impl Ours {
    pub fn open(image: &Path) -> Self {
        let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(image, false).unwrap());
        let volume = Arc::new(Volume::open_live(device, &LiveOptions::default()).unwrap());
        let placement = DataPlacement::new(volume.geometry());
        Self { volume, placement }
    }

    /// Does it; an error of the request is an answer, any other ends the test.
    pub fn apply(&mut self, operation: &Operation, now: i64) -> Result<(), ErrorKind> {
        self.attempt(operation, time(now)).map_err(|error| match error.kind() {
            ErrorKind::Io
            | ErrorKind::Busy
            | ErrorKind::NoSpace
            | ErrorKind::ReadOnly
            | ErrorKind::Stale
            | ErrorKind::Damaged => panic!("{operation:?}: {error}"),
            kind => kind,
        })
    }

    fn attempt(&mut self, operation: &Operation, now: Timestamp) -> Result<(), Error> {
        let volume = &self.volume;
        let inode = |path: &[u8]| find(volume, path);
        match operation {
            Operation::Make { path, kind, mode, device, target } => {
                let mode = if *kind == FileType::Symlink { 0o777 } else { *mode };
                let (major, minor) = *device;
                let device = DeviceNumber { major, minor };
                let new = new_inode(*kind, mode, now);
                self.make(path, &NewInode { device, target, ..new }).map(|_| ())
            }
            Operation::File { path, mode, ranges, seed } => {
                let new = new_inode(FileType::Regular, *mode, now);
                let number = self.make(path, &new)?;
                self.fill(number, ranges, *seed)
            }
            Operation::Link { from, to } => {
                let (directory, name) = split(to);
                ops::link(volume, inode(from)?, inode(directory)?, name, now)
            }
            Operation::Unlink { path } => {
                let (directory, name) = split(path);
                ops::unlink(volume, inode(directory)?, name, now).map(|_| ())
            }
            Operation::Rmdir { path } => {
                let (directory, name) = split(path);
                ops::rmdir(volume, inode(directory)?, name, now).map(|_| ())
            }
            Operation::Rename { from, to, mode } => {
                let [from, to] = [split(from), split(to)];
                let from = Name { parent: inode(from.0)?, name: from.1 };
                let to = Name { parent: inode(to.0)?, name: to.1 };
                let mode = match mode {
                    Move::Replace => RenameMode::Replace,
                    Move::NoReplace => RenameMode::NoReplace,
                    Move::Exchange => RenameMode::Exchange,
                };
                ops::rename(volume, from, to, mode, now)
            }
            _ => self.change(operation, now),
        }
    }

    /// Operations on one inode.
    fn change(&self, operation: &Operation, now: Timestamp) -> Result<(), Error> {
        let inode = |path: &[u8]| find(&self.volume, path);
        let (path, change) = match operation {
            Operation::Mode { path, mode } => {
                (path, MetadataChange { mode: Some(*mode), ..MetadataChange::default() })
            }
            Operation::Owner { path, uid, gid } => {
                let change = MetadataChange::default();
                (path, MetadataChange { uid: Some(*uid), gid: Some(*gid), ..change })
            }
            Operation::Times { path, access, modification } => {
                let [access, modification] = [*access, *modification].map(|at| Some(time(at)));
                (path, MetadataChange { access, modification, ..MetadataChange::default() })
            }
            Operation::SetAttribute { path, name, value, mode } => {
                let mode = match mode {
                    Set::Either => SetMode::Either,
                    Set::Create => SetMode::Create,
                    Set::Replace => SetMode::Replace,
                };
                let attribute = (name.as_bytes(), &value[..]);
                return ops::set_xattr(&self.volume, inode(path)?, attribute, mode, now);
            }
            Operation::RemoveAttribute { path, name } => {
                let found = ops::remove_xattr(&self.volume, inode(path)?, name.as_bytes(), now)?;
                return if found { Ok(()) } else { Err(Error::NoAttribute(name.clone())) };
            }
            other => panic!("{other:?} is not about one inode"),
        };
        ops::change_metadata(&self.volume, inode(path)?, &change, now)
    }

    fn make(&self, path: &[u8], new: &NewInode<'_>) -> Result<InodeNumber, Error> {
        let (directory, name) = split(path);
        ops::make(&self.volume, find(&self.volume, directory)?, name, new)
    }

    fn fill(
        &mut self,
        number: InodeNumber,
        ranges: &[std::ops::Range<u64>],
        seed: u8,
    ) -> Result<(), Error> {
        let size = ranges.last().map_or(0, |range| range.end);
        let mut trans = self.volume.begin()?;
        let mut inode = self.volume.lock_inode(number)?;
        let data = ranges.iter().cloned();
        let map = ops::allocate_file(&mut trans, &mut inode, size, data, &mut self.placement)?;
        trans.commit(&mut [&mut inode])?;
        let writer = DataWriter::new(self.volume.geometry(), self.volume.cache().device());
        let mut file = writer.file(map);
        for range in ranges {
            let bytes: Vec<u8> = range.clone().map(|at| pattern(seed, at)).collect();
            let len = bytes.len();
            file.put(range.start, &Arc::new(bytes), 0..len)?;
        }
        file.finish();
        writer.finish()
    }

    /// Compares every file with the model.
    pub fn compare(&self, model: &Model) {
        let mut numbers: BTreeMap<usize, InodeNumber> = BTreeMap::new();
        for (path, node) in model.walk() {
            let at = ops::path_text(&path);
            let number = find(&self.volume, &path).unwrap();
            // Names of one file lead to one inode.
            assert_eq!(*numbers.entry(node).or_insert(number), number, "{at}");
            let inode = self.volume.inode(number).unwrap();
            self.compare_inode(model, node, &inode.read(), &at);
            let node = &model.nodes[node];
            if node.kind == FileType::Regular {
                self.compare_content(node, number, &at);
            }
        }
    }

    fn compare_inode(&self, model: &Model, node: usize, inode: &InodeState, at: &str) {
        let node = &model.nodes[node];
        let core = &inode.core;
        assert_eq!(inode.file_type(), node.kind, "{at}");
        assert_eq!(core.mode & 0o7777, node.mode, "{at}");
        assert_eq!(((core.uid, core.gid), core.nlink), (node.owner, node.links), "{at}");
        assert_eq!(core.mtime, time(node.times.1), "{at}");
        let attributes = ops::attributes(&self.volume, inode).unwrap();
        let attributes: BTreeMap<String, Vec<u8>> = attributes
            .into_iter()
            .map(|(name, value)| (String::from_utf8(name).unwrap(), value))
            .filter(|(name, _)| !name.starts_with("trusted.xfs:"))
            .collect();
        assert_eq!(attributes, node.attributes, "{at}");
        match node.kind {
            FileType::Directory => {
                let mut names = Vec::new();
                ops::entries(&self.volume, inode, Position::START, |entry| {
                    names.push(entry.name.to_vec());
                    true
                })
                .unwrap();
                names.sort();
                let expected: Vec<_> = node.names.keys().cloned().collect();
                assert_eq!(names, expected, "{at}");
            }
            FileType::Symlink => {
                assert_eq!(ops::read_link(&self.volume, inode).unwrap(), node.target, "{at}");
            }
            FileType::Character => {
                let (major, minor) = node.device;
                let device = DeviceNumber { major, minor };
                assert_eq!(inode.data.content, ForkContent::Device(device), "{at}");
            }
            FileType::Regular => assert_eq!(core.size, node.size(), "{at}"),
            _ => {}
        }
    }

    fn compare_content(&self, node: &super::model::Node, number: InodeNumber, at: &str) {
        let mut content = vec![0; node.size() as usize];
        for range in &node.ranges {
            for offset in range.clone() {
                content[offset as usize] = pattern(node.seed, offset);
            }
        }
        let file = OpenFile::open(&self.volume, number).unwrap();
        // More than there is: it ends where the file does.
        let mut found = vec![0xff; content.len() + 5000];
        let len = file.read(0, &mut found).unwrap();
        assert!(found[..len] == content, "{at}: contents");
        for range in file.data_ranges().unwrap() {
            let mut found = vec![0xff; (range.end - range.start) as usize];
            assert_eq!(file.read(range.start, &mut found).unwrap(), found.len(), "{at}");
            let range = range.start as usize..range.end as usize;
            assert!(found == content[range.clone()], "{at}: contents of {range:?}");
            content[range].fill(0);
        }
        assert!(content.iter().all(|byte| *byte == 0), "{at}: data where the map has none");
    }

    /// Ends the session: everything on the disk, and judged.
    pub fn close(self, image: &Path) {
        self.volume.close().unwrap();
        drop(self);
        Xfsprogs::newest().unwrap().repair_check(image).unwrap();
        let (report, findings) = check_image(image).unwrap();
        assert!(report.is_clean(), "{report:?}\n{}", describe(&findings));
    }
}

fn new_inode(kind: FileType, mode: u16, now: Timestamp) -> NewInode<'static> {
    let times = Times { access: now, modification: now, change: now, creation: now };
    NewInode { times, ..NewInode::new(kind, mode) }
}
