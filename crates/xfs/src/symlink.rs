//! Targets of symbolic links: in the inode, or in up to three extents (docs/format/symlinks.md).
//!
//! The fork is the data fork of the link, its blocks are file system blocks. Buffers of kind
//! [`BufferKind::Symlink`] cover the rest of the mapped extent from their file block on, on reading
//! as on writing: an extent has one header, however many blocks it has.

use crate::da::{DaFork, DaForkMut, identity};
use crate::error::Error;
use crate::format::{
    BufferKind, SYMLINK_MAX, symlink_blocks, symlink_part, symlink_payload, write_symlink,
};
use crate::units::FileBlock;

/// Reads the target.
///
/// # Errors
///
/// Damage, or a device error.
pub(crate) fn read<F: DaFork + ?Sized>(fork: &mut F) -> Result<Vec<u8>, Error> {
    let len = usize::try_from(fork.size()).unwrap_or(usize::MAX);
    let target = match fork.local() {
        Some(content) => content.get(..len).map(<[u8]>::to_vec).unwrap_or_default(),
        None => read_blocks(fork, len)?,
    };
    match check(&target) {
        Ok(()) => Ok(target),
        Err(what) => Err(fork.corrupt(FileBlock(0), what)),
    }
}

/// Stores the target of a new link, whose data fork is empty: in the inode if it fits, else in
/// blocks.
///
/// # Errors
///
/// A target that no link can have, no space.
pub(crate) fn write<F: DaForkMut + ?Sized>(fork: &mut F, target: &[u8]) -> Result<(), Error> {
    refuse(target)?;
    fork.set_size(target.len() as u64);
    if target.len() <= fork.inline_size() {
        return fork.set_local(Some(target.to_vec()));
    }
    let geometry = fork.geometry().clone();
    let mut block = fork.map(FileBlock(0), symlink_blocks(&geometry, target.len()))?;
    let mut offset = 0;
    while offset < target.len() {
        let buffer = fork.fresh(block, BufferKind::Symlink)?;
        let extent = buffer.address().len();
        let end = target.len().min(offset + symlink_payload(&geometry, extent));
        let identity = identity(fork, &buffer);
        let mut guard = fork.edit(&buffer);
        write_symlink(&mut guard.edit(), &geometry, &identity, offset, &target[offset..end]);
        offset = end;
        block = FileBlock(block.0 + geometry.blocks_for(extent as u64));
    }
    Ok(())
}

fn read_blocks<F: DaFork + ?Sized>(fork: &mut F, len: usize) -> Result<Vec<u8>, Error> {
    if len > SYMLINK_MAX {
        let what = format!("target of {len} bytes, at most {SYMLINK_MAX} are possible");
        return Err(fork.corrupt(FileBlock(0), what));
    }
    let (mut target, mut block) = (Vec::with_capacity(len), FileBlock(0));
    while target.len() < len {
        let Some(buffer) = fork.read(block, BufferKind::Symlink)? else {
            return Err(fork.corrupt(block, "a block of the target is a hole".into()));
        };
        let bytes = buffer.read();
        match symlink_part(&bytes, fork.geometry(), target.len(), len) {
            Ok(part) => target.extend(part),
            Err(what) => return Err(fork.corrupt(block, what)),
        }
        block = FileBlock(block.0 + fork.geometry().blocks_for(bytes.len() as u64));
    }
    Ok(target)
}

/// Refuses targets that no link can have; says why.
pub(crate) fn check(target: &[u8]) -> Result<(), String> {
    if target.is_empty() || target.len() > SYMLINK_MAX {
        return Err(format!("target of {} bytes, must be 1 to {SYMLINK_MAX}", target.len()));
    }
    if target.contains(&0) {
        return Err("the target contains a zero byte".into());
    }
    Ok(())
}

/// As [`check`], for the target of a new link.
pub(crate) fn refuse(target: &[u8]) -> Result<(), Error> {
    check(target).map_err(|what| {
        let what = format!("symbolic link: {what}");
        if target.len() > SYMLINK_MAX { Error::NameTooLong(what) } else { Error::Invalid(what) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::memory_fork::MemoryFork;

    #[test]
    fn targets_of_all_lengths_come_back() {
        for (block_log, extent_blocks) in [(10, 1), (10, 2), (12, 1), (16, 1)] {
            for len in [1, 191, 192, 193, 967, 968, 969, 1023] {
                let mut fork = MemoryFork::new(block_log, 9);
                fork.extent_blocks = extent_blocks;
                let target: Vec<u8> = (0..len).map(|at| b'a' + (at % 26) as u8).collect();
                write(&mut fork, &target).unwrap();
                assert_eq!(fork.is_local(), len <= fork.inline_size());
                assert_eq!(fork.size(), len as u64);
                let scattered = block_log == 10 && len > 968 && extent_blocks == 1;
                let extents = if fork.is_local() { 0 } else { 1 + usize::from(scattered) };
                assert_eq!(fork.block_count(), extents, "{block_log} {extent_blocks} {len}");
                assert_eq!(read(&mut fork).unwrap(), target);
            }
        }
    }

    #[test]
    fn bad_targets_are_refused() {
        for target in [&b""[..], b"a\0b", &[b'x'; 1024]] {
            let mut fork = MemoryFork::new(12, 9);
            let error = write(&mut fork, target).unwrap_err();
            assert!(matches!(error, Error::Invalid(_) | Error::NameTooLong(_)), "{error}");
        }
        let mut fork = MemoryFork::new(12, 9);
        write(&mut fork, &[b'x'; 500]).unwrap();
        for size in [0, 499, 501, 4000, u64::MAX] {
            fork.set_size(size);
            let message = read(&mut fork).unwrap_err().to_string();
            assert!(message.contains("inode 131"), "{message}");
        }
    }
}
