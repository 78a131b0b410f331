//! The trees found behind a crash, by us and by the kernel.

use crate::xfs::serve_crash::model::{Found, Tree};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use undercroft_xfs::format::FileType;
use undercroft_xfs::ops::Position;
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::{Error, OpenFile, Volume, ops};

/// All files of a volume, by path, read by us.
pub fn ours(volume: &Arc<Volume>) -> Result<Tree, Error> {
    let mut tree = Tree::new();
    let mut left = vec![(String::new(), volume.geometry().root_inode)];
    while let Some((path, number)) = left.pop() {
        let inode = volume.inode(number)?;
        if inode.read().file_type() != FileType::Directory {
            tree.insert(path, file(volume, number)?);
            continue;
        }
        let before = if path.is_empty() { path } else { path + "/" };
        let state = inode.read();
        ops::entries(volume, &state, Position::START, |entry| {
            left.push((format!("{before}{}", String::from_utf8_lossy(entry.name)), entry.inode));
            true
        })?;
    }
    Ok(tree)
}

fn file(volume: &Arc<Volume>, number: InodeNumber) -> Result<Found, Error> {
    let open = OpenFile::open(volume, number)?;
    let mut bytes = vec![0xee; open.size() as usize];
    let len = open.read(0, &mut bytes)?;
    bytes.truncate(len);
    let core = &open.inode().read().core;
    let (mode, links) = (u32::from(core.mode) & 0o7777, core.nlink);
    Ok(Found { inode: number.0, mode, links, bytes })
}

/// All files below a directory, read by the kernel.
pub fn kernels(root: &Path) -> Tree {
    let mut tree = Tree::new();
    let mut left = vec![root.to_owned()];
    while let Some(path) = left.pop() {
        let metadata = std::fs::symlink_metadata(&path).unwrap();
        if metadata.is_dir() {
            left.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let (inode, mode, links) =
            (metadata.ino(), metadata.mode() & 0o7777, metadata.nlink() as u32);
        let path = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        tree.insert(path, Found { inode, mode, links, bytes });
    }
    tree
}
