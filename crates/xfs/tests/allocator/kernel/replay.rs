//! Repeats on a copy of a volume what a kernel allocated and freed, and compares the choices.

use super::trace::Event;
use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroU64;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use undercroft_block::{BlockDevice, FileDevice};
use undercroft_xfs::Volume;
use undercroft_xfs::format::{AllocRecord, RmapOwner};
use undercroft_xfs::internals::Pool;
use undercroft_xfs::internals::alloc::{self, Mode, Request};
use undercroft_xfs::internals::btree::Bnobt;
use undercroft_xfs::internals::group_tree;
use undercroft_xfs::units::{AgBlock, AgNumber};

/// Reservation of the free list in the field `resv`.
const FREE_LIST: u32 = 1;

/// What a task does between the start of a request and its end.
#[derive(Clone, Debug, Default)]
struct Pending {
    hint: Option<u32>,
    way: Option<Way>,
    /// Groups whose busy ranges changed since the search began.
    cleared: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Exact,
    Near,
    BySize,
}

/// A choice that differs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Difference {
    mode: Mode,
    ag: u32,
    kernel: (u32, u32),
    ours: Option<(u32, u32)>,
    request: (u32, u32, u32),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mode, ag, kernel, ours, request: (min, max, alignment) } = self;
        write!(f, "group {ag}, {mode:?}, {min} to {max} blocks aligned to {alignment}: ")?;
        write!(f, "kernel {kernel:?}, ours {ours:?}")
    }
}

/// The copy and the observations.
pub(crate) struct Replay {
    volume: Volume,
    pending: HashMap<u32, Pending>,
    /// Freed blocks that may not be used for data yet: group, and range of blocks.
    busy: Vec<(u32, Range<u32>)>,
    pub(crate) near: u32,
    pub(crate) exact: u32,
    pub(crate) by_size: u32,
    pub(crate) frees: u32,
    /// Choices that differ because several busy ranges lie in one free extent. The rest of the
    /// extent depends on the range that is looked at first: with a range at its start and another
    /// just behind it, the first leaves all that follows, the second nothing if that is less than
    /// four times the length wanted. The kernel looks in the order in which its tree is balanced at
    /// the time, we from left to right.
    pub(crate) by_order: u32,
    /// Choices that differ where a range of the group ceased to be busy during the kernel's search:
    /// another thread of it ends checkpoints, and the trace does not tell whether the search had
    /// passed the range before.
    pub(crate) by_time: u32,
    pub(crate) differences: Vec<Difference>,
}

impl Replay {
    /// Opens the copy as it was before the trace.
    pub(crate) fn open(image: &Path) -> Self {
        let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(image, false).unwrap());
        let volume = Volume::open_bulk(device).unwrap();
        // Everything that is freed stays busy until the trace says otherwise.
        volume.set_open_checkpoint(NonZeroU64::MIN);
        Self {
            volume,
            pending: HashMap::new(),
            busy: Vec::new(),
            near: 0,
            exact: 0,
            by_size: 0,
            frees: 0,
            by_order: 0,
            by_time: 0,
            differences: Vec::new(),
        }
    }

    /// Repeats one event.
    pub(crate) fn event(&mut self, event: &Event) {
        let pending = self.pending.entry(event.task).or_default();
        match event.name.as_str() {
            "xfs_alloc_near_first" | "xfs_alloc_cur_lookup" => {
                pending.hint = Some(event.get("agbno"));
            }
            "xfs_alloc_cur" => pending.way = Some(Way::Near),
            "xfs_alloc_exact_done" => pending.way = Some(Way::Exact),
            "xfs_alloc_size_done" if event.get("resv") != FREE_LIST => {
                pending.way = Some(Way::BySize);
            }
            "xfs_alloc_vextent_finish" => {
                let pending = std::mem::take(pending);
                self.allocate(event, &pending);
            }
            // Surplus blocks of the free list are freed by the allocation itself here.
            "xfs_free_extent" if event.get("resv") != FREE_LIST => self.free(event),
            "xfs_extent_busy_clear" => self.clear(event),
            _ => {}
        }
    }

    fn allocate(&mut self, event: &Event, pending: &Pending) {
        let (number, start, len) =
            (event.get("agno"), AgBlock(event.get("agbno")), event.get("len"));
        let ag = AgNumber(number);
        let mode = match pending.way {
            Some(Way::Exact) => Mode::Exact(start),
            Some(Way::Near) => Mode::Near(AgBlock(pending.hint.unwrap())),
            Some(Way::BySize) => Mode::BySize,
            None => panic!("a request that ended without a search: {event:?}"),
        };
        let pool = if event.get("resv") == 0 { Pool::Ordinary } else { Pool::Metadata };
        let request = Request {
            min_len: event.get("minlen"),
            max_len: event.get("maxlen"),
            multiple: event.get("prod"),
            remainder: event.get("mod"),
            alignment: event.get("alignment"),
            alignment_slop: event.get("minalignslop"),
            min_left: event.get("minleft"),
            total: event.get("total"),
            user_data: event.get("datatype") & 1 == 1,
            pool,
            owner: None,
            ..Request::metadata(
                self.volume.geometry().fs_block(ag, start),
                event.get("maxlen"),
                RmapOwner::GROUP,
            )
        };
        match mode {
            Mode::Near(_) => self.near += 1,
            Mode::Exact(_) => self.exact += 1,
            Mode::BySize => self.by_size += 1,
        }
        let mut trans = self.volume.begin().unwrap();
        let ours = trans.with_group(ag, true, |trans, group| {
            let ours = alloc::allocate_in_group(trans, group, &request, mode)?;
            let ours = ours.map(|found| (found.start.0, found.len));
            if ours != Some((start.0, len)) {
                // Go on from the kernel's choice.
                if let Some((start, len)) = ours {
                    alloc::free_in_group(trans, group, AgBlock(start), len, None)?;
                    group.busy.reuse(AgBlock(start), len);
                }
                let exact = Request { min_len: len, max_len: len, alignment: 1, ..request.clone() };
                let taken = alloc::allocate_in_group(trans, group, &exact, Mode::Exact(start))?;
                assert!(taken.is_some(), "the kernel's choice is not free here: {event:?}");
            }
            if pool == Pool::Metadata {
                // Only the count matters here: how much of the reservation is used.
                group.agi.finobt_blocks += len;
            }
            Ok(ours)
        });
        let ours = ours.unwrap().unwrap();
        trans.commit(&mut []).unwrap();
        if ours != Some((start.0, len)) {
            if ours.is_some_and(|ours| self.depends_on_order(ag, ours, &request)) {
                self.by_order += 1;
                return;
            }
            if pending.cleared.contains(&number) {
                self.by_time += 1;
                return;
            }
            let request = (request.min_len, request.max_len, request.alignment);
            let kernel = (start.0, len);
            self.differences.push(Difference { mode, ag: number, kernel, ours, request });
        }
    }

    /// Whether the free extent with `ours` was of no use to a kernel that looks at its busy ranges
    /// in another order.
    fn depends_on_order(&self, ag: AgNumber, ours: (u32, u32), request: &Request) -> bool {
        let extents = self.free_extents().swap_remove(ag.0 as usize);
        let mut extents = extents.iter().map(|free| free.start.0..free.start.0 + free.len);
        let Some(extent) = extents.find(|extent| extent.contains(&ours.0)) else { return false };
        let here = self.busy.iter().filter(|(group, _)| *group == ag.0);
        let busy: Vec<_> = here.map(|(_, busy)| busy.clone()).collect();
        can_be_useless(extent, &busy, (request.min_len, request.max_len))
    }

    fn free(&mut self, event: &Event) {
        let (ag, start) = (AgNumber(event.get("agno")), AgBlock(event.get("agbno")));
        let mut trans = self.volume.begin().unwrap();
        let freed = trans.with_group(ag, true, |trans, group| {
            alloc::free_in_group(trans, group, start, event.get("fsbcount"), None)
        });
        freed.unwrap().unwrap();
        trans.commit(&mut []).unwrap();
        self.busy.push((ag.0, start.0..start.0 + event.get("fsbcount")));
        self.frees += 1;
    }

    fn clear(&mut self, event: &Event) {
        let (ag, start) = (AgNumber(event.get("agno")), AgBlock(event.get("agbno")));
        let mut trans = self.volume.begin().unwrap();
        let cleared = trans.with_group(ag, true, |_, group| {
            group.busy.reuse(start, event.get("fsbcount"));
            Ok(())
        });
        cleared.unwrap().unwrap();
        let range = start.0..start.0 + event.get("fsbcount");
        self.busy.retain(|busy| *busy != (ag.0, range.clone()));
        let searches = self.pending.values_mut();
        searches
            .filter(|search| search.hint.is_some())
            .for_each(|search| search.cleared.push(ag.0));
    }

    /// The free extents of all groups.
    pub(crate) fn free_extents(&self) -> Vec<Vec<AllocRecord>> {
        free_extents(&self.volume)
    }
}

/// Whether nothing is left of a free extent for `min_len` to `max_len` blocks when its busy ranges
/// are looked at in some order (docs/algorithms/busy-extents.md#rules).
fn can_be_useless(free: Range<u32>, busy: &[Range<u32>], (min_len, max_len): (u32, u32)) -> bool {
    if (free.len() as u32) < min_len {
        return true;
    }
    busy.iter().filter(|busy| busy.start < free.end && free.start < busy.end).any(|first| {
        let (left, right) = (free.start..first.start, first.end..free.end);
        let rest = match (left.is_empty(), right.is_empty()) {
            (true, true) => return true,
            (true, false) => right,
            (false, true) => left,
            _ if left.len() as u32 >= max_len => left,
            _ if right.len() as u64 >= 4 * u64::from(max_len) => right,
            _ if left.len() as u32 >= min_len => left,
            _ => return true,
        };
        can_be_useless(rest, busy, (min_len, max_len))
    })
}

fn free_extents(volume: &Volume) -> Vec<Vec<AllocRecord>> {
    (0..volume.geometry().ag_count)
        .map(|number| {
            let mut extents = Vec::new();
            let push = |extent| extents.push(extent);
            group_tree::free_extents::<Bnobt>(volume, AgNumber(number), push).unwrap();
            extents
        })
        .collect()
}

/// The free extents of all groups of an image.
pub(crate) fn free_extents_of(image: &Path) -> Vec<Vec<AllocRecord>> {
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(image, true).unwrap());
    free_extents(&Volume::open(device).unwrap())
}
