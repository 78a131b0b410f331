//! Common parts of all searches for a free extent: the request as it stands in one group, the
//! judgement of one free extent, and the best one so far.
//!
//! docs/algorithms/allocation.md#candidates and docs/algorithms/near-mode.md#candidates.

use crate::btree::BtreeKind;
use crate::btree::Cursor;
use crate::format::{AllocRecord, TreeKind};
use crate::group::GroupState;
use crate::space::{BusyBlocks, Request};
use crate::units::AgBlock;
use std::ops::ControlFlow;

/// A free extent that can serve a request, and the part of it to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) record: AllocRecord,
    pub(super) start: AgBlock,
    pub(super) len: u32,
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// This part of a free extent.
    Extent(Candidate),
    /// The last resort: a block taken from the free list of the group.
    FromList(AgBlock),
    /// Nothing acceptable.
    Nothing,
    /// Nothing acceptable but extents that were freed and whose freeing is not durable yet.
    OnlyBusy,
}

/// A search in one group.
#[derive(Clone)]
pub(super) struct Search<'r> {
    pub(super) request: &'r Request,
    /// Longest extent that may be given.
    pub(super) max_len: u32,
    /// The target, moved into the acceptable range.
    pub(super) hint: AgBlock,
    pub(super) best: Option<Candidate>,
    /// A busy extent was passed by.
    pub(super) saw_busy: bool,
    low: AgBlock,
    high: AgBlock,
    /// Distance of the best.
    distance: u32,
}

/// The result of a look at a free extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Verdict {
    /// The extent is the best so far.
    hit: bool,
    /// The walk that led here cannot improve any more.
    ends_walk: bool,
}

impl Verdict {
    const NO: Self = Self { hit: false, ends_walk: false };
}

impl<'r> Search<'r> {
    /// A search in `group` near `hint` for at most `max_len` blocks.
    pub(super) fn new(
        group: &GroupState,
        request: &'r Request,
        hint: AgBlock,
        max_len: u32,
    ) -> Self {
        let whole = (AgBlock(0), AgBlock(group.agf.length.saturating_sub(1)));
        let (low, high) = request.range.unwrap_or(whole);
        Self {
            request,
            max_len,
            // The range comes from sizes of the volume and may be empty on a tiny group.
            hint: hint.min(high).max(low),
            best: None,
            saw_busy: false,
            low,
            high,
            distance: u32::MAX,
        }
    }

    /// A search of the whole group: any place is acceptable.
    pub(super) fn anywhere(group: &GroupState, request: &'r Request, max_len: u32) -> Self {
        let search = Self::new(group, request, AgBlock(0), max_len);
        Self { low: AgBlock(0), high: AgBlock::NULL, hint: AgBlock(0), ..search }
    }

    /// The end of the search that has looked at everything.
    pub(super) fn outcome(&self) -> Found {
        match self.best {
            Some(best) => Found::Extent(best),
            None if self.saw_busy => Found::OnlyBusy,
            None => Found::Nothing,
        }
    }

    /// Looks at the record under a cursor of a near search; `true` if it is the best so far. A
    /// cursor that cannot lead to anything better is made inactive.
    pub(super) fn check<K: BtreeKind>(
        &mut self,
        group: &GroupState,
        cursor: &mut Cursor<K>,
        record: AllocRecord,
    ) -> bool {
        let verdict = self.judge(group, K::TREE, record);
        if verdict.ends_walk {
            cursor.set_active(false);
        }
        verdict.hit
    }

    /// Looks at a record on a walk through the by-size tree; the walk ends where nothing better can
    /// follow.
    pub(super) fn look(&mut self, group: &GroupState, record: AllocRecord) -> ControlFlow<()> {
        let verdict = self.judge(group, TreeKind::Cntbt, record);
        if verdict.ends_walk { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Looks at a free extent that was not found through a cursor; `true` if it is the best so far.
    pub(super) fn consider(&mut self, group: &GroupState, record: AllocRecord) -> bool {
        self.judge(group, TreeKind::Bnobt, record).hit
    }

    /// Whether the best so far begins at the hint and has `len` blocks: nothing is nearer.
    pub(super) fn is_at_hint(&self, len: u32) -> bool {
        self.distance == 0 && self.best.is_some_and(|best| best.len >= len)
    }

    fn judge(&mut self, group: &GroupState, tree: TreeKind, record: AllocRecord) -> Verdict {
        let by_size = tree == TreeKind::Cntbt;
        if record.len < self.request.min_len {
            return Verdict { ends_walk: by_size, ..Verdict::NO };
        }
        let usable = self.usable(group, record);
        if usable.start < self.low || usable.start > self.high {
            return Verdict { ends_walk: !by_size, ..Verdict::NO };
        }
        if usable.len < self.request.min_len {
            return Verdict::NO;
        }
        let len = self.request.fix_length(usable.len.min(self.max_len), self.max_len);
        if self.best.is_some_and(|best| len < best.len) {
            return Verdict::NO;
        }
        let Some(place) = self.place(len, usable) else {
            return Verdict::NO;
        };
        let distance = place.0.abs_diff(self.hint.0);
        if distance > self.distance {
            return Verdict { ends_walk: !by_size, ..Verdict::NO };
        }
        self.best = Some(Candidate { record, start: place, len });
        self.distance = distance;
        Verdict { hit: true, ends_walk: self.is_at_hint(self.max_len) }
    }

    /// The part of a free extent that is not busy, in the wanted range, and starts at a multiple
    /// of the wanted alignment. Its length may be 0.
    pub(super) fn usable(&mut self, group: &GroupState, record: AllocRecord) -> AllocRecord {
        let Request { min_len, alignment, .. } = *self.request;
        let mut part = record;
        if !group.busy.is_empty() {
            part = group.busy.in_front_of_limit(record);
            let aligned = min_len.saturating_add(alignment - 1);
            part = group.busy.spared().trim(part, aligned, self.max_len.max(aligned));
            if self.request.busy != BusyBlocks::Take {
                let open = part;
                part = group.busy.trim(open, min_len, self.max_len);
                self.saw_busy |= part != open;
            }
        }
        let end = part.start.0.saturating_add(part.len);
        if part.start < self.low && self.low.0 < end {
            part = AllocRecord { start: self.low, len: end - self.low.0 };
        }
        if alignment > 1 && part.len >= min_len {
            let start = part.start.0.checked_next_multiple_of(alignment).unwrap_or(end);
            part = AllocRecord { start: AgBlock(start), len: end.saturating_sub(start) };
        }
        part
    }

    /// Where in a usable extent a part of `want` blocks goes; `None` if there is no place. File
    /// data takes the front of an extent in front of the hint, so that the file can grow into the
    /// rest; metadata takes the end, which is nearest.
    fn place(&self, want: u32, usable: AllocRecord) -> Option<AgBlock> {
        let align = self.request.alignment;
        let (start, end) = (usable.start.0, usable.start.0 + usable.len);
        let wanted_end = u64::from(self.hint.0) + u64::from(want);
        let reaches = u64::from(end) >= wanted_end;
        let place = if usable.start >= self.hint || (self.request.user_data && !reaches) {
            start.checked_next_multiple_of(align)?
        } else if reaches && align > 1 {
            // The usable part starts at a multiple in front of the hint, so the multiple below
            // the hint is in it, with room behind.
            let below = self.hint.0 / align * align;
            let above = self.hint.0.checked_next_multiple_of(align)?;
            let fits = above <= self.high.0 && u64::from(above) + u64::from(want) <= u64::from(end);
            if fits && above - self.hint.0 <= self.hint.0 - below { above } else { below }
        } else if reaches {
            self.hint.0
        } else {
            (end - want) / align * align
        };
        let fits = place >= start && u64::from(place) + u64::from(want) <= u64::from(end);
        fits.then_some(AgBlock(place))
    }
}
