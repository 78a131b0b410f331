//! Whether a change of a directory fits the blocks that it has.

use super::{Entry, Found, Slot, SlotBlock, SpaceHint, block, find, leaf, node, shortform};
use crate::da::DaFork;
use crate::error::Error;
use crate::format::dir_layout::DirLayout;
use crate::units::FileBlock;

/// Whether `name` can stand for `target` without a new block, be it new or there already.
/// [`add`](super::add) with the same `hint`, and [`replace`](super::replace), allocate nothing then.
///
/// # Errors
/// The directory is damaged or cannot be read.
pub(crate) fn fits<F: DaFork + ?Sized>(
    fork: &mut F,
    name: &[u8],
    target: Entry,
    hint: SpaceHint,
) -> Result<bool, Error> {
    let layout = DirLayout::new(fork.geometry());
    let len = layout.entry_size(name.len());
    let Slot { place, .. } = match find(fork, name)? {
        Found::Absent(slot) => slot,
        Found::Entry(old) if fork.local().is_some() => {
            let content = shortform::replaced(fork, layout, name, old, target)?;
            return Ok(content.len() <= fork.inline_size());
        }
        // Entries in blocks have room for any inode.
        Found::Entry(_) => return Ok(true),
    };
    match place {
        SlotBlock::Short => Ok(shortform::room(fork, layout, name, target.inode)?.is_some()),
        SlotBlock::Block(buffer) => block::has_room(&buffer.read(), layout, len)
            .map_err(|what| fork.corrupt(FileBlock(0), what)),
        SlotBlock::Leaf(leaf) => {
            Ok(leaf::room(&leaf.read(), layout, len).is_some_and(|room| room.exists))
        }
        SlotBlock::Node(path) => node::has_room(fork, layout, &path, len, hint),
    }
}
