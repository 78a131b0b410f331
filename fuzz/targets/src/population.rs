//! The content of a sample volume: every form of directory, attribute fork, mapping and link.

use std::sync::Arc;
use undercroft_xfs::Transaction;
use undercroft_xfs::format::{DeviceNumber, FileType};
use undercroft_xfs::inode::{Inode, InodeGuard, InodeState};
use undercroft_xfs::ops::{self, DataPlacement, NewInode, Times};
use undercroft_xfs::{Error, Volume};

/// Entries of the directories: short form, one block, one hash block, several.
const DIRECTORIES: [(&[u8], usize); 4] =
    [(b"short", 3), (b"block", 40), (b"leaf", 200), (b"node", 600)];
/// Data ranges of the files: in the inode, and in a tree.
const FILES: [(&[u8], u64); 3] = [(b"one-extent", 1), (b"few-extents", 5), (b"many-extents", 150)];
/// Targets of links: in the inode, in one block, in more where blocks are small.
const LINKS: [(&[u8], usize); 3] = [(b"inline", 20), (b"remote", 700), (b"longest", 1023)];

/// A directory that is about to be made.
pub(crate) fn directory() -> NewInode<'static> {
    new(FileType::Directory, &[])
}

fn new(kind: FileType, target: &[u8]) -> NewInode<'_> {
    NewInode {
        mode: kind.mode_bits() | 0o755,
        uid: 1,
        gid: 2,
        times: Times::default(),
        device: DeviceNumber::default(),
        target,
    }
}

/// Fills an empty volume.
pub(crate) fn fill(volume: &Volume) -> Result<(), Error> {
    let root = volume.inode(volume.geometry().root_inode)?;
    let linked = create(volume, &root, b"linked", &new(FileType::Regular, &[]), |_, _| Ok(()))?;
    for (name, entries) in DIRECTORIES {
        let directory = create(volume, &root, name, &directory(), |_, _| Ok(()))?;
        for number in 0..entries {
            link(volume, &directory, format!("entry-{number}").as_bytes(), &linked)?;
        }
        create(volume, &directory, b"child", &self::directory(), |_, _| Ok(()))?;
    }
    for (name, ranges) in FILES {
        create(volume, &root, name, &new(FileType::Regular, &[]), |trans, inode| {
            let step = 2 * trans.geometry().block_size() as u64;
            let ranges = (0..ranges).map(|index| index * step..index * step + step / 2);
            let size = ranges.clone().next_back().map_or(0, |range| range.end + 100);
            let mut placement = DataPlacement::new(trans.geometry());
            ops::allocate_file(trans, inode, size, ranges, &mut placement).map(drop)
        })?;
    }
    for (name, len) in LINKS {
        let target: Vec<u8> = (0..len).map(|at| b'a' + (at % 26) as u8).collect();
        create(volume, &root, name, &new(FileType::Symlink, &target), |_, _| Ok(()))?;
    }
    let specials = [FileType::Character, FileType::Block, FileType::Fifo, FileType::Socket];
    for (index, kind) in specials.into_iter().enumerate() {
        let mut special = new(kind, &[]);
        if index < 2 {
            special.device = DeviceNumber { major: 8, minor: 1 };
        }
        create(volume, &root, format!("special-{index}").as_bytes(), &special, |_, _| Ok(()))?;
    }
    attributes(volume, &root)
}

/// Files with attributes in the inode, in a leaf, in blocks of their own, and in a tree of leaves.
fn attributes(volume: &Volume, root: &Arc<Inode>) -> Result<(), Error> {
    let named = |count: usize, len: usize| {
        let one = move |number| (format!("user.attribute-{number}").into_bytes(), vec![b'v'; len]);
        (0..count).map(one).collect::<Vec<_>>()
    };
    let list: &[u8] = b"\x02\0\0\0\x01\0\x07\0\xff\xff\xff\xff\x02\0\x05\0\x09\0\0\0\
        \x04\0\x05\0\xff\xff\xff\xff\x10\0\x05\0\xff\xff\xff\xff\x20\0\x05\0\xff\xff\xff\xff";
    let mut lists = named(1, 5);
    lists.push((b"system.posix_acl_access".to_vec(), list.to_vec()));
    lists.push((b"trusted.overlay.opaque".to_vec(), b"y".to_vec()));
    lists.push((b"security.selinux".to_vec(), b"system_u:object_r:file_t:s0".to_vec()));
    let sets = [lists, named(20, 60), named(2, 20_000), named(600, 40)];
    for (index, set) in sets.iter().enumerate() {
        let name = format!("attributes-{index}");
        create(volume, root, name.as_bytes(), &new(FileType::Regular, &[]), |trans, inode| {
            let set = set.iter().map(|(name, value)| (&name[..], &value[..]));
            ops::set_attributes(trans, inode, set)
        })?;
    }
    Ok(())
}

fn create(
    volume: &Volume,
    parent: &Arc<Inode>,
    name: &[u8],
    new: &NewInode<'_>,
    complete: impl FnOnce(&mut Transaction<'_>, &mut InodeState) -> Result<(), Error>,
) -> Result<Arc<Inode>, Error> {
    let mut trans = volume.begin()?;
    let mut parent = InodeGuard::new(parent);
    let mut inode = ops::create(&mut trans, &mut parent, name, new)?;
    complete(&mut trans, &mut inode)?;
    let number = inode.number;
    trans.commit(&mut [&mut parent, &mut inode])?;
    drop(inode);
    volume.inode(number)
}

fn link(
    volume: &Volume,
    parent: &Arc<Inode>,
    name: &[u8],
    inode: &Arc<Inode>,
) -> Result<(), Error> {
    let mut trans = volume.begin()?;
    let own = parent.read().number;
    let number = inode.read().number;
    let (mut parent, mut inode) = (volume.lock_inode(own)?, volume.lock_inode(number)?);
    ops::add_link(&mut trans, &mut parent, name, &mut inode)?;
    trans.commit(&mut [&mut parent, &mut inode])
}
