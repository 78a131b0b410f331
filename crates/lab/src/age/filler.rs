//! Files that keep the space that is not to be free.

use undercroft_xfs::Volume;
use undercroft_xfs::format::{AllocRecord, DeviceNumber, Extent, FileType, RmapOwner};
use undercroft_xfs::inode::ForkKind;
use undercroft_xfs::internals::alloc::{Mode, Request, allocate_in_group};
use undercroft_xfs::internals::bmap;
use undercroft_xfs::ops::{self, NewInode, Times};
use undercroft_xfs::units::{AgNumber, FileBlock, FsBlock, InodeNumber};

use crate::error::LabError;

/// A new inode of root that the experiments make; its times are those of 1970, so that a volume
/// depends on nothing but its options and the seed.
pub(crate) fn plain_inode(file_type: FileType) -> NewInode<'static> {
    NewInode {
        mode: file_type.mode_bits() | 0o755,
        uid: 0,
        gid: 0,
        times: Times::default(),
        device: DeviceNumber::default(),
        target: &[],
    }
}

/// Creates an empty file for each group.
pub(super) fn create(volume: &Volume) -> Result<Vec<InodeNumber>, LabError> {
    let mut root = volume.lock_inode(volume.geometry().root_inode)?;
    let mut trans = volume.begin()?;
    let directory = plain_inode(FileType::Directory);
    let mut directory = ops::create(&mut trans, &mut root, b"filler", &directory)?;
    trans.commit(&mut [&mut root, &mut directory])?;
    let mut fillers = Vec::new();
    for ag in 0..volume.geometry().ag_count {
        let mut trans = volume.begin()?;
        let (name, file) = (format!("group-{ag}"), plain_inode(FileType::Regular));
        let mut file = ops::create(&mut trans, &mut directory, name.as_bytes(), &file)?;
        trans.commit(&mut [&mut directory, &mut file])?;
        fillers.push(file.number);
    }
    Ok(fillers)
}

/// Allocates these pieces of a group in their order; returns those it got. A few may be missing:
/// the trees took blocks as they grew.
pub(crate) fn take(
    volume: &Volume,
    ag: AgNumber,
    pieces: &[AllocRecord],
) -> Result<Vec<AllocRecord>, LabError> {
    let mut taken = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let request = Request {
            owner: None,
            user_data: true,
            ..Request::metadata(FsBlock(0), piece.len, RmapOwner(0))
        };
        let mut trans = volume.begin()?;
        let found = trans.with_group(ag, true, |trans, group| {
            allocate_in_group(trans, group, &request, Mode::Exact(piece.start))
        })?;
        trans.commit(&mut [])?;
        taken.extend(found.flatten().map(|_| *piece));
    }
    Ok(taken)
}

/// Maps pieces of a group, ascending, to the blocks of a file with the same numbers.
pub(super) fn map(
    volume: &Volume,
    filler: InodeNumber,
    ag: AgNumber,
    pieces: &[AllocRecord],
) -> Result<(), LabError> {
    let geometry = volume.geometry();
    let mut file = volume.lock_inode(filler)?;
    for piece in pieces {
        let extent = Extent {
            offset: FileBlock(piece.start.0.into()),
            start: geometry.fs_block(ag, piece.start),
            len: piece.len,
            unwritten: true,
        };
        let mut trans = volume.begin()?;
        bmap::add(&mut trans, &mut file, ForkKind::Data, &[extent])?;
        trans.commit(&mut [&mut file])?;
    }
    let trans = volume.begin()?;
    file.core.size = u64::from(geometry.ag_length(ag)) << geometry.block_log;
    file.touch();
    Ok(trans.commit(&mut [&mut file])?)
}
