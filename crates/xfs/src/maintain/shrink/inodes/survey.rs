//! Inodes that will move looked at, before anything is written.

use super::owned::Owned;
use super::renumbering::expect_all_names;
use super::share::{Share, limit};
use super::tail_inodes::TailInodes;
use crate::error::Error;
use crate::maintain::shrink::size::Size;
use crate::maintain::shrink::tail_contents::Obstacle;
use crate::ops::{self, Parent};
use crate::units::InodeNumber;
use crate::volume::Volume;
use std::ops::ControlFlow;

/// Reads the inodes in what goes, with their names and what says whose it is; returns the first for
/// which the journal is too small.
///
/// # Errors
/// One is damaged, or a name does not lead to it; the device failed.
pub(in crate::maintain::shrink) fn survey(
    volume: &Volume,
    size: Size,
) -> Result<Option<Obstacle>, Error> {
    let mut obstacle = None;
    let pointers = volume.geometry().features.parent_pointers();
    let most = limit(volume);
    TailInodes::new(volume, size)?.for_each(volume, |number| {
        let inode = volume.inode(number).map_err(Error::into_damage)?;
        let inode = inode.read();
        let owned = Owned::of(volume, &inode)?;
        let share = if pointers {
            let names = ops::parents(volume, &inode)?;
            expect_all_names(volume, &inode, &names)?;
            names.iter().try_for_each(|name| expect_name(volume, name, number))?;
            Share::of(volume, &inode, &owned, &names)?
        } else {
            Share::without_names(volume, &inode, &owned)?
        };
        let needed = share.0;
        if needed > most && obstacle.is_none() {
            obstacle = Some(Obstacle::Names { inode: number, needed, limit: most });
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(obstacle)
}

/// Fails unless a name leads to an inode.
fn expect_name(volume: &Volume, name: &Parent, number: InodeNumber) -> Result<(), Error> {
    let parent = volume.lock_inode(name.directory).map_err(Error::into_damage)?;
    if ops::lookup(volume, &parent, &name.name)? == Some(number) {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&name.name);
    let what = format!(
        "its parent pointer names {text:?} in directory {}, which does not lead to it",
        name.directory
    );
    Err(Error::Inode { inode: number, what })
}
