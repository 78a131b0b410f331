//! The inodes of one operation, locked in the order of their numbers
//! (docs/decisions/locks.md#order-of-locks).

use super::{directory, lookup, path_text};
use crate::error::Error;
use crate::inode::{InodeGuard, InodeState};
use crate::trans::Transaction;
use crate::units::InodeNumber;
use crate::volume::Volume;
use smallvec::SmallVec;

/// Locked inodes, each once.
#[derive(Debug)]
pub(super) struct Locked {
    guards: SmallVec<[InodeGuard; 4]>,
}

impl Locked {
    /// Locks these inodes; naming one twice is the same as naming it once.
    ///
    /// # Errors
    /// One does not exist or is damaged.
    pub(super) fn new(volume: &Volume, numbers: &[InodeNumber]) -> Result<Self, Error> {
        let mut numbers = SmallVec::<[InodeNumber; 4]>::from_slice(numbers);
        numbers.sort_unstable();
        numbers.dedup();
        let guards = numbers.into_iter().map(|number| volume.lock_inode_in_order(number));
        Ok(Self { guards: guards.collect::<Result<_, _>>()? })
    }

    /// Takes a new inode, which is locked already.
    pub(super) fn add(&mut self, guard: InodeGuard) {
        self.guards.push(guard);
    }

    /// One of the inodes, by its number.
    pub(super) fn get(&mut self, number: InodeNumber) -> &mut InodeGuard {
        let found = self.guards.iter_mut().find(|guard| guard.number == number);
        found.expect("an operation asks only for inodes that it has locked")
    }

    /// One of the inodes, for reading.
    pub(super) fn read(&self, number: InodeNumber) -> &InodeState {
        let found = self.guards.iter().find(|guard| guard.number == number);
        found.expect("an operation asks only for inodes that it has locked")
    }

    /// Two different inodes.
    pub(super) fn pair(
        &mut self,
        first: InodeNumber,
        second: InodeNumber,
    ) -> (&mut InodeGuard, &mut InodeGuard) {
        debug_assert_ne!(first, second, "an inode cannot be changed as two");
        let place = |number| self.guards.iter().position(|guard| guard.number == number);
        let (a, b) = (place(first), place(second));
        let (a, b) = a.zip(b).expect("an operation asks only for inodes that it has locked");
        let (low, high) = self.guards.split_at_mut(a.max(b));
        let (low, high) = (&mut low[a.min(b)], &mut high[0]);
        if a < b { (low, high) } else { (high, low) }
    }

    /// Commits a transaction with all of them.
    pub(super) fn commit(&mut self, trans: Transaction<'_>) -> Result<(), Error> {
        let mut inodes: SmallVec<[&mut InodeGuard; 4]> = self.guards.iter_mut().collect();
        trans.commit(&mut inodes)
    }
}

/// What `name` stands for in a directory; it must exist.
pub(super) fn entry(
    volume: &Volume,
    directory: &InodeState,
    name: &[u8],
) -> Result<InodeNumber, Error> {
    lookup(volume, directory, name)?.ok_or_else(|| Error::NotFound(path_text(name)))
}

/// Refuses a directory that is none, or that was removed, or that may not be changed.
pub(super) fn expect_directory(inode: &InodeState) -> Result<(), Error> {
    directory::expect_directory(inode)?;
    expect_linked(inode)
}

/// Refuses an inode that was removed meanwhile. One that stays because it is open has no name any
/// more, and gets none: to Linux, too, that is another error than an inode that is gone.
pub(super) fn expect_linked(inode: &InodeState) -> Result<(), Error> {
    inode.expect_in_use()?;
    if inode.core.nlink == 0 {
        return Err(Error::NotFound(format!("inode {}", inode.number)));
    }
    Ok(())
}
