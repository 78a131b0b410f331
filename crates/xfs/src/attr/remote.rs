//! Values in blocks of their own.

use crate::da::{DaFork, DaForkMut, identity};
use crate::error::Error;
use crate::format::{
    ATTR_VALUE_MAX, BufferKind, attr_remote_blocks, attr_remote_part, attr_remote_payload,
    write_attr_remote,
};
use crate::units::FileBlock;

/// Reads the value of `len` bytes (at most [`ATTR_VALUE_MAX`], as verified leaves say) that starts
/// at `first`.
pub(super) fn read<F: DaFork + ?Sized>(
    fork: &mut F,
    first: FileBlock,
    len: u32,
) -> Result<Vec<u8>, Error> {
    let len = len as usize;
    debug_assert!(len <= ATTR_VALUE_MAX);
    let mut value = Vec::with_capacity(len);
    for index in 0..u64::from(attr_remote_blocks(fork.geometry(), len)) {
        let block = FileBlock(first.0 + index);
        let Some(buffer) = fork.read(block, BufferKind::AttrRemote)? else {
            return Err(fork.corrupt(block, "a block of an attribute value is a hole".into()));
        };
        let bytes = buffer.read();
        match attr_remote_part(&bytes, fork.geometry(), value.len(), len) {
            Ok(part) => value.extend(part),
            Err(what) => return Err(fork.corrupt(block, what)),
        }
    }
    Ok(value)
}

/// Stores a value in new blocks and returns the first.
pub(super) fn write<F: DaForkMut + ?Sized>(fork: &mut F, value: &[u8]) -> Result<FileBlock, Error> {
    let payload = attr_remote_payload(fork.geometry());
    let blocks = attr_remote_blocks(fork.geometry(), value.len());
    let first = fork.map(FileBlock(0), blocks)?;
    if first.0 + u64::from(blocks) > u64::from(u32::MAX) {
        return Err(Error::Full(format!(
            "the attributes of inode {} have no block numbers left",
            fork.inode()
        )));
    }
    for (index, part) in value.chunks(payload).enumerate() {
        let buffer = fork.fresh(FileBlock(first.0 + index as u64), BufferKind::AttrRemote)?;
        let identity = identity(fork, &buffer);
        let geometry = fork.geometry().clone();
        let mut guard = fork.edit(&buffer);
        write_attr_remote(&mut guard.edit(), &geometry, &identity, index * payload, part);
    }
    Ok(first)
}

/// Frees the blocks of a value.
pub(super) fn free<F: DaForkMut + ?Sized>(
    fork: &mut F,
    first: FileBlock,
    len: u32,
) -> Result<(), Error> {
    let blocks = attr_remote_blocks(fork.geometry(), len as usize);
    if blocks == 0 { Ok(()) } else { fork.unmap(first, blocks) }
}
