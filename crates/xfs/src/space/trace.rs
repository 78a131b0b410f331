//! The steps of the allocator.
//!
//! The events and their fields are those of the kernel's tracepoints `xfs_alloc_*`
//! (docs/algorithms/tracepoints.md#tracepoints), so that a trace of ours and one of a kernel can be
//! compared line by line. A volume without a receiver pays one test of a pointer per event.

use super::Request;
use crate::format::TreeKind;
use crate::units::{AgBlock, AgNumber};

/// Receives events. Called with the group locked: it must not touch the volume.
pub trait AllocationTrace: Send + Sync {
    /// Takes one event.
    fn record(&self, event: &AllocationEvent<'_>);
}

/// One event.
#[derive(Clone, Copy, Debug)]
pub struct AllocationEvent<'a> {
    /// What happened.
    pub step: AllocationStep,
    /// The group at work.
    pub group: AgNumber,
    /// The target until a place is chosen, then that place.
    pub block: AgBlock,
    /// Length of the extent found, 0 before.
    pub len: u32,
    /// Longest extent that may be given: that of the request, cut to what the group can spare.
    pub max_len: u32,
    /// The request, with all its limits.
    pub request: &'a Request,
}

/// A step of an allocation; each is named after the kernel's tracepoint without `xfs_alloc_`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocationStep {
    /// A search for the target block begins: `vextent_exact_bno`.
    Exact,
    /// A search near the target begins: `vextent_near_bno`.
    Near,
    /// A search by size begins in the group: `vextent_this_ag`.
    BySize,
    /// The group cannot spare the space asked for: `vextent_noagbp`.
    Refused,
    /// No group could serve the request: `vextent_allfailed`.
    AllFailed,
    /// Exact mode found the block: `exact_done`.
    ExactDone,
    /// Exact mode did not: `exact_notfound`.
    ExactNotFound,
    /// A free extent was looked at: `cur_check`.
    Check {
        /// The tree it was found in.
        tree: TreeKind,
        /// The extent.
        start: AgBlock,
        /// Its length.
        len: u32,
        /// From the target to the place in it; `u32::MAX` if it was refused before.
        distance: u32,
        /// It is the best so far.
        best: bool,
    },
    /// The scan of the longest extents found one: `near_first`.
    NearFirst,
    /// A round of the search by size and place: `cur_lookup`.
    Lookup,
    /// The walk to the left found an extent: `cur_left`.
    Left,
    /// The walk to the right found an extent: `cur_right`.
    Right,
    /// The search by size is at its end: `cur_lookup_done`.
    LookupDone,
    /// Result of a near search: `cur`.
    Current,
    /// Only busy extents would do: `near_busy`.
    NearBusy,
    /// Nothing will do: `size_neither`.
    SizeNeither,
    /// By-size mode found an extent: `size_done`.
    SizeDone,
    /// By-size mode found nothing: `size_noentry`.
    SizeNoEntry,
    /// What by-size mode found is too short: `size_nominleft`.
    SizeNoMinLeft,
    /// Only busy extents would do: `size_busy`.
    SizeBusy,
    /// The longest extent is taken, it is shorter than asked for: `small_done`.
    SmallDone,
    /// A block of the free list is taken: `small_freelist`.
    SmallFreeList,
    /// The longest extent is too short: `small_notenough`.
    SmallNotEnough,
    /// The request was served: `vextent_finish`.
    Finish,
}
