//! Which of several names of one file comes first.
//!
//! Threads read ahead out of order, so none of them can know whether the name it has at hand is the
//! first. Each claims the file for its place in the order; the claim that is earliest when the
//! consumer arrives, which takes names in order, is final. A thread whose place is not the earliest
//! so far knows that it need not read the file's data.

use crate::EntryPath;
use parking_lot::Mutex;
use std::collections::HashMap;

/// What tells files apart: device and inode number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

/// A name of a file that has several.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LinkedName {
    pub(crate) identity: Identity,
    /// Place in the order of the walk.
    pub(crate) order: u64,
    /// How many names the file has, in or outside of the tree.
    pub(crate) links: u64,
}

#[derive(Debug)]
struct First {
    order: u64,
    path: EntryPath,
    delivered: u64,
}

/// Files with several names, from the first claim until all their names are delivered.
#[derive(Debug, Default)]
pub(crate) struct LinkTable {
    files: Mutex<HashMap<Identity, First>>,
}

impl LinkTable {
    /// Claims the file for this name; whether no earlier name is known.
    pub(crate) fn claim(&self, name: LinkedName, path: &EntryPath) -> bool {
        let mut files = self.files.lock();
        let first = files.entry(name.identity).or_insert_with(|| First {
            order: name.order,
            path: path.clone(),
            delivered: 0,
        });
        if name.order < first.order {
            first.order = name.order;
            first.path = path.clone();
        }
        first.order == name.order
    }

    /// The path of the first name, or `None` if this is it. Called in the order of the walk, after
    /// the claims of this name and all before it.
    pub(crate) fn resolve(&self, name: LinkedName) -> Option<EntryPath> {
        let mut files = self.files.lock();
        let first = files.get_mut(&name.identity)?;
        first.delivered += 1;
        let path = (first.order != name.order).then(|| first.path.clone());
        if first.delivered == name.links {
            files.remove(&name.identity);
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(order: u64) -> LinkedName {
        LinkedName { identity: Identity { device: 1, inode: 2 }, order, links: 3 }
    }

    #[test]
    fn the_earliest_claim_wins_whatever_the_order_of_claims() {
        let table = LinkTable::default();
        let path = |text: &str| EntryPath::from_checked(text.into());
        assert!(table.claim(name(7), &path("seven")));
        assert!(table.claim(name(3), &path("three")));
        assert!(!table.claim(name(9), &path("nine")));
        assert_eq!(table.resolve(name(3)), None);
        assert_eq!(table.resolve(name(7)), Some(path("three")));
        assert_eq!(table.resolve(name(9)), Some(path("three")));
        assert!(table.files.lock().is_empty());
    }
}
