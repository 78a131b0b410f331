//! Names that were removed, overwritten.

use super::form::{Form, form, read};
use crate::da::DaForkMut;
use crate::error::Error;
use crate::format::BufferKind;
use crate::format::dir_block;
use crate::format::dir_data;
use crate::format::dir_layout::DirLayout;
use crate::units::FileBlock;

/// Overwrites what removed names left in the first block of entries at or behind `from`; returns what is behind
/// it, `None` where there is no such block.
///
/// # Errors
/// A damaged directory, or one that cannot be read.
pub(crate) fn wipe_names<F: DaForkMut + ?Sized>(
    fork: &mut F,
    from: FileBlock,
) -> Result<Option<FileBlock>, Error> {
    let layout = DirLayout::new(fork.geometry());
    let kind = match form(fork, layout)? {
        // It is written as a whole.
        Form::Short => return Ok(None),
        Form::Block => BufferKind::DirBlock,
        Form::Leaf | Form::Node => BufferKind::DirData,
    };
    let end = fork.geometry().dir_leaf_block();
    let Some(place) = fork.next_mapped(from)?.filter(|place| *place < end) else {
        return Ok(None);
    };
    let buffer = read(fork, place, kind)?;
    let mut guard = fork.edit(&buffer);
    let end = match kind {
        BufferKind::DirBlock => dir_block::table(&guard).base,
        _ => guard.len(),
    };
    let wiped = dir_data::wipe_free(&mut guard.edit(), layout, end);
    drop(guard);
    wiped.map_err(|what| fork.corrupt(place, what))?;
    Ok(Some(FileBlock(place.0 + u64::from(fork.block_blocks()))))
}
