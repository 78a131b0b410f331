//! Near mode: a long enough extent close to the target.
//!
//! As Linux does it since 5.5 (docs/algorithms/near-mode.md#search): first the extents in the last
//! leaf of the by-size tree, which on a young group are all; then three cursors at once. Two walk
//! the by-block tree away from the target, the third probes the by-size tree with a growing key,
//! one size a round, until two of them have nothing more to offer or one of the walks arrives. A
//! shorter extent never displaces a longer one, and a farther one never a nearer one.
//!
//! Experiments take its parts in another order ([`steps`](super::steps)).

use super::search::{Found, Search};
use super::small::{self, Small};
use crate::btree::{BlockKey, Bnobt, BtreeKind, Cntbt, Cursor, Lookup, SizeKey};
use crate::error::Error;
use crate::format::AllocRecord;
use crate::group::GroupState;
use crate::group_tree::AgTree;
use crate::space::Request;
use crate::trans::Transaction;
use crate::units::AgBlock;

/// Finds an extent near `hint`.
pub(super) fn find(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    request: &Request,
    hint: AgBlock,
    max_len: u32,
) -> Result<Found, Error> {
    let mut near = Near::new(group, request, hint, max_len);
    if let Some(found) = near.longest_first(trans, group, true)? {
        return Ok(found);
    }
    near.combined(trans, group)?;
    Ok(near.search.outcome())
}

/// The walk that is left to do once a walk arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    /// To the left through the by-block tree.
    Left,
    /// To the right through the by-block tree.
    Right,
    /// Down through the by-size tree.
    Smaller,
}

/// The state of a near search.
pub(super) struct Near<'r> {
    pub(super) search: Search<'r>,
    size: Cursor<Cntbt>,
    left: Cursor<Bnobt>,
    right: Cursor<Bnobt>,
    /// The length that the next probe of the by-size tree asks for.
    key: u32,
    rest: Option<Rest>,
}

/// Which way a walk goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

/// Steps a walk on; off the tree it ends.
fn step<K: BtreeKind<Pointer = AgBlock>>(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    cursor: &mut Cursor<K>,
    way: Way,
) -> Result<(), Error> {
    let mut tree = AgTree::<K>::new(trans, group);
    let more = match way {
        Way::Up => cursor.increment(&mut tree)?,
        Way::Down => cursor.decrement(&mut tree)?,
    };
    if !more {
        cursor.set_active(false);
    }
    Ok(())
}

/// The record under a cursor.
fn record<K: BtreeKind<Pointer = AgBlock, Record = AllocRecord>>(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    cursor: &Cursor<K>,
) -> Result<Option<AllocRecord>, Error> {
    cursor.record(&AgTree::<K>::new(trans, group))
}

impl<'r> Near<'r> {
    pub(super) fn new(
        group: &GroupState,
        request: &'r Request,
        hint: AgBlock,
        max_len: u32,
    ) -> Self {
        Self {
            search: Search::new(group, request, hint, max_len),
            size: Cursor::new(),
            left: Cursor::new(),
            right: Cursor::new(),
            key: max_len,
            rest: None,
        }
    }

    /// Looks up the extents of full length; with `scan`, considers them if they are in the last leaf
    /// of the by-size tree. `None` if the search goes on.
    pub(super) fn longest_first(
        &mut self,
        trans: &mut Transaction<'_>,
        group: &mut GroupState,
        scan: bool,
    ) -> Result<Option<Found>, Error> {
        let key = SizeKey { start: AgBlock(0), len: self.search.max_len };
        let mut tree = AgTree::<Cntbt>::new(trans, group);
        let found = self.size.lookup(&mut tree, &key, Lookup::GreaterOrEqual)?;
        if !found {
            match small::find(trans, group, &mut self.size, &self.search)? {
                Small::Record(_) => {}
                Small::FromList(block) => return Ok(Some(Found::FromList(block))),
                Small::Nothing => return Ok(Some(Found::Nothing)),
            }
        }
        let tree = AgTree::<Cntbt>::new(trans, group);
        if !scan || !self.size.is_rightmost_leaf(&tree) {
            return Ok(None);
        }
        if !found || self.search.request.alignment > 1 {
            self.first_long_enough(trans, group)?;
        } else if let Some(found) = self.at_hint(trans, group)? {
            return Ok(Some(found));
        }
        // A lookup that found nothing of full length has ended this walk before it began.
        if self.size.is_active() {
            let (search, tree) = (&mut self.search, AgTree::<Cntbt>::new(trans, group));
            self.size.walk_leaf(&tree, |record| search.look(tree.group(), record))?;
        }
        Ok(self.search.best.map(Found::Extent))
    }

    /// The extent at the hint, if all of the request fits there: no other can be better, so the scan of
    /// a leaf with any number of others would end at it.
    fn at_hint(
        &self,
        trans: &mut Transaction<'_>,
        group: &mut GroupState,
    ) -> Result<Option<Found>, Error> {
        let mut tree = AgTree::<Bnobt>::new(trans, group);
        let key = BlockKey::at(self.search.hint);
        let record = Cursor::<Bnobt>::new().find(&mut tree, &key, Lookup::LessOrEqual)?;
        let Some(record) = record else { return Ok(None) };
        let mut search = self.search.clone();
        search.consider(group, record);
        let best = search.best.filter(|_| search.is_at_hint(self.search.max_len));
        Ok(best.map(Found::Extent))
    }

    /// Moves the by-size cursor to the first extent of its leaf that is long enough at all.
    fn first_long_enough(
        &mut self,
        trans: &mut Transaction<'_>,
        group: &mut GroupState,
    ) -> Result<(), Error> {
        let tree = AgTree::<Cntbt>::new(trans, group);
        for index in 1..=self.size.leaf_len(&tree) {
            self.size.set_index(&tree, index);
            let record = self.size.record(&tree)?;
            if record.is_some_and(|record| record.len >= self.search.request.min_len) {
                break;
            }
        }
        Ok(())
    }

    /// Sets the walks off from the hint.
    pub(super) fn start_walks(
        &mut self,
        trans: &mut Transaction<'_>,
        group: &mut GroupState,
    ) -> Result<(), Error> {
        let mut tree = AgTree::<Bnobt>::new(trans, group);
        let key = BlockKey::at(self.search.hint);
        self.left.lookup(&mut tree, &key, Lookup::LessOrEqual)?;
        self.right.lookup(&mut tree, &key, Lookup::GreaterOrEqual)?;
        Ok(())
    }

    /// One look of each walk; `true` if one of them arrived.
    pub(super) fn walk(
        &mut self,
        trans: &mut Transaction<'_>,
        group: &mut GroupState,
    ) -> Result<bool, Error> {
        if self.left.is_active()
            && let Some(record) = record(trans, group, &self.left)?
        {
            if self.search.check(group, &mut self.left, record) {
                self.rest = Some(Rest::Right);
                return Ok(true);
            }
            step(trans, group, &mut self.left, Way::Down)?;
        }
        if self.right.is_active()
            && let Some(record) = record(trans, group, &self.right)?
        {
            if self.search.check(group, &mut self.right, record) {
                self.rest = Some(Rest::Left);
                return Ok(true);
            }
            step(trans, group, &mut self.right, Way::Up)?;
        }
        Ok(false)
    }

    /// Walks and probes in turn, to the end of the search.
    pub(super) fn combined(
        &mut self,
        trans: &mut Transaction<'_>,
        group: &mut GroupState,
    ) -> Result<(), Error> {
        self.start_walks(trans, group)?;
        let mut tree = AgTree::<Cntbt>::new(trans, group);
        let key = SizeKey { start: self.search.hint, len: self.key };
        self.size.lookup(&mut tree, &key, Lookup::GreaterOrEqual)?;
        while self.left.is_active() || self.right.is_active() || self.size.is_active() {
            if self.walk(trans, group)? {
                return self.finish(trans, group);
            }
            self.probe(trans, group)?;
            if !self.size.is_active() {
                break;
            }
        }
        let nothing = self.search.best.is_none() && !self.search.saw_busy;
        if !self.size.is_active() && nothing {
            // No extent of full length: the longest that is acceptable.
            let mut tree = AgTree::<Cntbt>::new(trans, group);
            let found = self.size.seek_last(&mut tree)?;
            self.size.set_active(found);
            self.rest = Some(Rest::Smaller);
        }
        self.finish(trans, group)
    }

    /// Probes the by-size tree for the length of this round, nearest to the hint.
    fn probe(&mut self, trans: &mut Transaction<'_>, group: &mut GroupState) -> Result<(), Error> {
        if !self.size.is_active() {
            return Ok(());
        }
        let mut tree = AgTree::<Cntbt>::new(trans, group);
        let key = SizeKey { start: self.search.hint, len: self.key };
        let Some(found) = self.size.find(&mut tree, &key, Lookup::GreaterOrEqual)? else {
            return Ok(());
        };
        self.search.check(group, &mut self.size, found);
        if found.start > self.search.hint {
            // The extent of the same length in front of the hint may be nearer.
            let mut tree = AgTree::<Cntbt>::new(trans, group);
            let before = self.size.previous(&mut tree)?;
            if let Some(before) = before.filter(|before| before.len == found.len) {
                self.search.check(group, &mut self.size, before);
            }
        }
        let doubled = self.key.saturating_mul(2);
        // Every length until there is a candidate, then ever fewer.
        self.key = if self.search.best.is_none() || found.len >= doubled {
            found.len.saturating_add(1)
        } else {
            doubled
        };
        Ok(())
    }

    /// Whether a walk can go on.
    pub(super) fn is_walking(&self) -> bool {
        self.left.is_active() || self.right.is_active()
    }

    /// Follows the walk that is left until it finds something or leaves the useful range.
    pub(super) fn finish(
        &mut self,
        trans: &mut Transaction<'_>,
        group: &mut GroupState,
    ) -> Result<(), Error> {
        let search = &mut self.search;
        match self.rest {
            Some(Rest::Left) => follow(trans, group, search, &mut self.left, Way::Down),
            Some(Rest::Right) => follow(trans, group, search, &mut self.right, Way::Up),
            Some(Rest::Smaller) => follow(trans, group, search, &mut self.size, Way::Down),
            None => Ok(()),
        }
    }
}

fn follow<K: BtreeKind<Pointer = AgBlock, Record = AllocRecord>>(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    search: &mut Search<'_>,
    cursor: &mut Cursor<K>,
    way: Way,
) -> Result<(), Error> {
    while cursor.is_active() {
        let Some(record) = record(trans, group, cursor)? else { break };
        if search.check(group, cursor, record) {
            break;
        }
        step(trans, group, cursor, way)?;
    }
    Ok(())
}
