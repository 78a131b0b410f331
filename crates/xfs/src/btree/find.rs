//! Lookups and steps that give the record they arrive at.

use super::cursor::Cursor;
use super::insert::Insertion;
use super::kind::BtreeKind;
use super::lookup::Lookup;
use super::store::ReadTree;
use crate::error::Error;

impl<K: BtreeKind> Cursor<K> {
    /// [`lookup`](Self::lookup), and the record found.
    ///
    /// # Errors
    /// A block cannot be read, or the tree is corrupt.
    pub fn find<S: ReadTree<Kind = K>>(
        &mut self,
        store: &mut S,
        key: &K::Key,
        wanted: Lookup,
    ) -> Result<Option<K::Record>, S::Error> {
        if self.lookup(store, key, wanted)? { self.record(store) } else { Ok(None) }
    }

    /// Steps to the next record and gives it; `None` behind the last.
    ///
    /// # Errors
    /// A block cannot be read, or the tree is corrupt.
    pub fn next<S: ReadTree<Kind = K>>(
        &mut self,
        store: &mut S,
    ) -> Result<Option<K::Record>, S::Error> {
        if self.increment(store)? { self.record(store) } else { Ok(None) }
    }

    /// Steps to the previous record and gives it; `None` before the first.
    ///
    /// # Errors
    /// A block cannot be read, or the tree is corrupt.
    pub fn previous<S: ReadTree<Kind = K>>(
        &mut self,
        store: &mut S,
    ) -> Result<Option<K::Record>, S::Error> {
        if self.decrement(store)? { self.record(store) } else { Ok(None) }
    }
}

impl Insertion {
    /// Turns "no space" into an error, where the caller has no other place to try.
    ///
    /// # Errors
    /// [`Error::NoSpace`] for [`Insertion::NoSpace`].
    pub fn or_no_space(self, block_size: usize) -> Result<(), Error> {
        match self {
            Self::Done => Ok(()),
            Self::NoSpace => Err(Error::NoSpace { needed: 1, block_size }),
        }
    }
}
