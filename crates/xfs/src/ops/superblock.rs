//! Changes of the superblock.

use crate::bytes::EditBytes;
use crate::cache::BufferAddress;
use crate::error::Error;
use crate::format::BufferKind;
use crate::trans::Transaction;
use undercroft_block::Sector;

/// Changes the superblock as part of the transaction.
pub(crate) fn change(
    trans: &mut Transaction<'_>,
    edit: impl FnOnce(&mut EditBytes<'_>),
) -> Result<(), Error> {
    let sectors = (trans.geometry().sector_size() / 512) as u32;
    let buffer =
        trans.read(&BufferAddress::contiguous(Sector(0), sectors), BufferKind::Superblock)?;
    let mut guard = trans.edit(&buffer);
    edit(&mut guard.edit());
    Ok(())
}
