//! Inodes in what goes: each gets a new number in what stays.
//!
//! A transaction gives one inode its number, everywhere (`renumbering`), so that a crash leaves the
//! old number or the new one. What names an inode is known from its parent pointers, or found by a
//! scan of the directories (`scan`). The inodes that are left to do are those in use in what goes.

mod children;
mod owned;
mod renumbering;
mod scan;
mod share;
mod survey;
mod tail_inodes;

pub(super) use survey::survey;
use tail_inodes::TailInodes;

use super::size::Size;
use crate::error::Error;
use crate::inode_allocation::free_empty_chunks;
use crate::ops;
use crate::units::InodeNumber;
use crate::volume::Volume;
use std::ops::ControlFlow;

/// Gives all inodes in use in what goes new numbers, and frees the chunks without one that the last
/// group has behind its new end. The volume gives out nothing there. `moved` is told of each inode.
pub(super) fn move_out(volume: &Volume, size: Size, moved: &mut dyn FnMut()) -> Result<(), Error> {
    let tail = TailInodes::new(volume, size)?;
    if volume.geometry().features.parent_pointers() {
        tail.for_each(volume, |number| {
            let names = ops::parents(volume, &volume.inode(number)?.read())?;
            renumbering::renumber(volume, size, number, &names)?;
            moved();
            Ok(ControlFlow::Continue(()))
        })?;
    } else {
        scan::move_out(volume, size, &tail, moved)?;
    }
    match tail.first_of_tail() {
        Some((ag, first)) => free_empty_chunks(volume, ag, first),
        None => Ok(()),
    }
}

/// Whether the superblock leads to an inode, which then has no name.
fn is_quota_file(volume: &Volume, number: InodeNumber) -> bool {
    renumbering::quota_fields(volume).into_iter().any(|(_, file)| file == number)
}
