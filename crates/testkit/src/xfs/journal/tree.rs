//! The content of a volume, in a form that can be compared.

use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use undercroft_block::read_exact_at;
use undercroft_xfs::format::FileType;
use undercroft_xfs::inode::ForkKind;
use undercroft_xfs::internals::bmap;
use undercroft_xfs::ops;
use undercroft_xfs::ops::Position;
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::{Error, Volume};

/// Everything below the root, by path, each with all that is known of it.
pub type Tree = BTreeMap<Vec<u8>, String>;

/// Reads all of a volume.
pub fn tree(volume: &Volume) -> Result<Tree, Error> {
    let mut tree = Tree::new();
    let mut todo = vec![(Vec::new(), volume.geometry().root_inode)];
    while let Some((path, number)) = todo.pop() {
        let (text, children) = describe(volume, number)?;
        for (name, child) in children {
            let mut path = path.clone();
            path.push(b'/');
            path.extend(name);
            todo.push((path, child));
        }
        tree.insert(path, text);
    }
    Ok(tree)
}

type Children = Vec<(Vec<u8>, InodeNumber)>;

fn describe(volume: &Volume, number: InodeNumber) -> Result<(String, Children), Error> {
    let inode = volume.inode(number)?;
    let inode = inode.read();
    let core = &inode.core;
    let mut children = Vec::new();
    let mut hash = Sha256::new();
    match inode.file_type() {
        FileType::Directory => {
            ops::entries(volume, &inode, Position::START, |entry| {
                let name = entry.name;
                if name != b"." && name != b".." {
                    children.push((name.to_vec(), entry.inode));
                }
                true
            })?;
        }
        FileType::Symlink => hash.update(ops::read_link(volume, &inode)?),
        FileType::Regular => {
            let mut block = vec![0; volume.geometry().block_size()];
            for extent in bmap::extents(volume, &inode, ForkKind::Data)?.as_slice() {
                let first = volume.geometry().sector(extent.start);
                for index in 0..u64::from(extent.len) {
                    let sectors = index * u64::from(volume.geometry().sectors_per_block());
                    let sector = undercroft_block::Sector(first.0 + sectors);
                    if extent.unwritten {
                        // It reads as zeros.
                        block.fill(0);
                    } else {
                        read_exact_at(volume.cache().device().as_ref(), sector, &mut block)?;
                    }
                    hash.update((extent.offset.0 + index).to_le_bytes());
                    hash.update([extent.unwritten.into()]);
                    hash.update(&block);
                }
            }
        }
        _ => {}
    }
    for (name, value) in ops::attributes(volume, &inode)? {
        hash.update(&name);
        hash.update(&value);
    }
    let text = format!(
        "{number} {:o} links {} size {} blocks {} generation {} content {:x}",
        core.mode,
        core.nlink,
        core.size,
        core.nblocks,
        core.generation,
        hash.finalize()
    );
    Ok((text, children))
}
