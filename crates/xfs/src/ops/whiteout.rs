//! Whiteouts: what stands in the upper layer of an overlay for a name that is gone, a character
//! device 0:0 without permissions.

use super::create::{NewInode, Times, add_parent_pointer, new_inode};
use super::inherit::Inherited;
use crate::bmap::ForkWriter;
use crate::bmap::worst_case;
use crate::dir::{self, Entry};
use crate::error::Error;
use crate::format::{FileType, Timestamp};
use crate::inode::{ForkKind, InodeGuard, InodeState};
use crate::inode_allocation;
use crate::trans::Transaction;
use crate::units::InodeNumber;

const KIND: FileType = FileType::Character;

/// A whiteout of this user and group.
pub(super) fn new((uid, gid): (u32, u32), now: Timestamp) -> NewInode<'static> {
    let times = Times { access: now, modification: now, change: now, creation: now };
    NewInode { uid, gid, times, ..NewInode::new(KIND, 0) }
}

/// Makes sure of the space for one.
///
/// # Errors
/// There is none.
pub(super) fn reserve(trans: &mut Transaction<'_>) -> Result<(), Error> {
    let blocks =
        worst_case::inode(trans) + worst_case::entry(trans) + worst_case::parent_pointer(trans);
    trans.reserve(blocks)
}

/// A whiteout whose inode is chosen.
pub(super) struct Whiteout<'n> {
    new: NewInode<'n>,
    inherited: Inherited,
    number: InodeNumber,
}

impl<'n> Whiteout<'n> {
    /// Chooses an inode for `new` in `directory`; `None` if there is no room for one.
    ///
    /// # Errors
    /// A damaged structure; the device failed.
    pub(super) fn find(
        trans: &mut Transaction<'_>,
        directory: &InodeState,
        new: &NewInode<'n>,
    ) -> Result<Option<Self>, Error> {
        let mut inherited = Inherited::from(trans.volume(), directory, KIND)?;
        // Its mode allows no access, so a list would add nothing.
        inherited.attributes.clear();
        let new = inherited.apply(new);
        let number = inode_allocation::find(trans, Some(directory.number), false)?;
        Ok(number.map(|number| Self { new, inherited, number }))
    }

    /// Lets `name`, which is in the directory, stand for the whiteout.
    ///
    /// # Errors
    /// No space; a damaged structure; the device failed.
    pub(super) fn enter(
        self,
        trans: &mut Transaction<'_>,
        directory: &mut InodeState,
        name: &[u8],
    ) -> Result<InodeGuard, Error> {
        let mut inode = new_inode(trans, self.number, Some(directory.number), KIND, &self.new)?;
        let entry = Entry { inode: self.number, ftype: KIND.into() };
        dir::replace(&mut ForkWriter::new(trans, directory, ForkKind::Data), name, entry)?;
        add_parent_pointer(trans, &mut inode, directory, name)?;
        self.inherited.give(trans, &mut inode)?;
        Ok(trans.volume().insert_inode(inode))
    }
}
