//! Tag caches: each caller keeps the tag it put last, so that its next get need not take it from the
//! bitmap again.
//!
//! A get and a put that go to the bitmap cost one locked instruction each, and these two are nearly
//! all the time of the pair. With a tag cache the put is a plain store, and only the get, which may
//! have to race for the tag, is locked.
//!
//! # No waiter beside a full tag cache
//!
//! A tag in a tag cache is free, and its bit is busy. For waiters it counts as not put yet; so the
//! bargain is that tag caches are emptied before a thread sleeps or fails:
//!
//! - Tag caches are filled only while the gate is open. A search that finds no tag in the bitmap
//!   closes an open gate, takes the tags out of all tag caches and puts them, with everything that
//!   belongs to a put. From then on the set works without tag caches.
//! - A put stores the tag in the tag cache and looks at the gate again; if it is closed by then, it
//!   takes the tag back, unless the thread that closed the gate was faster, and puts it. That
//!   thread stores the gate and then looks into the tag caches. It is Dekker's pattern again. But
//!   this put has no locked instruction to stand on, and an ordinary barrier would cost as much as
//!   one. So the barriers are unequal: the put has [`sync::light_barrier`], which keeps only the
//!   compiler from reordering; the thread that closes has [`sync::heavy_barrier`], which makes
//!   every running thread of the process execute a full barrier (Linux, `membarrier`). Where there
//!   is none, the gate never opens.
//! - The gate opens again when no caller waits, after some thousand gets without trouble, so the
//!   price of closing vanishes among them. The thread that opens it looks for waiters afterwards,
//!   and a waiter looks at the gate after it is published; one of the two sees the other.
//!
//! A tag moves between holder, tag cache and bitmap in single steps (a swap, the change of a bit),
//! and it is in no two of them at any moment. There is no second place that could disagree with the
//! first, unlike with freed bits that are folded back by word (Linux, 2018 to 2024).

use std::sync::Arc;

use crossbeam_utils::CachePadded;
use smallvec::SmallVec;

use crate::sync::{self, AtomicU32, Mutex, Ordering};

const CLOSED: u32 = 0;
const OPEN: u32 = 1;
/// Gets from the bitmap without trouble, by one caller, after which it opens the gate. A round of
/// closing and opening takes some microseconds.
pub(crate) const CALM: u32 = if cfg!(any(loom, shuttle)) { 2 } else { 4096 };

/// Room for one tag: its bit's number plus one, or zero.
#[derive(Debug)]
pub(crate) struct TagCache(CachePadded<AtomicU32>);

impl TagCache {
    /// Takes the tag out. Acquire and release as for a bit of the bitmap (invariant I2).
    #[inline(always)]
    pub(crate) fn take(&self) -> Option<u32> {
        let kept = self.0.load(Ordering::Relaxed);
        // An exchange for zero writes only when it takes a tag, so the plain store of the owner
        // competes with no other write.
        let taken = kept != 0
            && self.0.compare_exchange(kept, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        taken.then(|| kept - 1)
    }

    /// Puts a tag in, if the tag cache is empty and the gate open. Only the tag cache's caller does
    /// so. If the gate closes meanwhile, the tag may come back to be put into the bitmap.
    #[inline(always)]
    pub(crate) fn keep(&self, bit: u32, gate: &Gate) -> Result<(), u32> {
        if !gate.is_open() || self.0.load(Ordering::Relaxed) != 0 {
            return Err(bit);
        }
        self.0.store(bit + 1, Ordering::Release);
        sync::light_barrier();
        if gate.is_open() {
            return Ok(());
        }
        self.take().map_or(Ok(()), Err)
    }
}

/// Has the kernel prepare this process for tag caches, as the first set does else. In a process with
/// several threads the kernel waits for all processors then, some 20 ms: a program that calls this
/// before it starts another thread does not.
pub fn prepare_process() {
    // Without it the sets have no tag caches.
    let _ = sync::has_heavy_barrier();
}

/// Whether tag caches may be filled; and all tag caches.
#[derive(Debug)]
pub(crate) struct Gate {
    state: CachePadded<AtomicU32>,
    /// Held while the gate moves.
    tag_caches: Mutex<Vec<Arc<TagCache>>>,
    /// False where tag caches are not wanted or there is no heavy barrier.
    may_open: bool,
}

/// Tags that were taken out of tag caches and must be put into the bitmap.
pub(crate) type Emptied = SmallVec<[u32; 16]>;

impl Gate {
    /// Open at first, if tag caches are wanted and possible.
    pub(crate) fn new(wanted: bool) -> Self {
        let may_open = wanted && sync::has_heavy_barrier();
        Self {
            state: CachePadded::new(AtomicU32::new(if may_open { OPEN } else { CLOSED })),
            tag_caches: Mutex::new(Vec::new()),
            may_open,
        }
    }

    #[inline(always)]
    pub(crate) fn is_open(&self) -> bool {
        self.state.load(Ordering::Relaxed) == OPEN
    }

    /// A tag cache for a new caller.
    pub(crate) fn enter(&self) -> Arc<TagCache> {
        let tag_cache = Arc::new(TagCache(CachePadded::new(AtomicU32::new(0))));
        self.tag_caches.lock().push(Arc::clone(&tag_cache));
        tag_cache
    }

    /// A caller goes, with an empty tag cache.
    pub(crate) fn leave(&self, tag_cache: &Arc<TagCache>) {
        self.tag_caches.lock().retain(|other| !Arc::ptr_eq(other, tag_cache));
    }

    /// Closes an open gate and empties all tag caches. `None` when it was closed already; then the
    /// thread that closed it may not have put all of the tags yet, and will wake waiters for them.
    pub(crate) fn close(&self) -> Option<Emptied> {
        if !self.is_open() {
            return None;
        }
        let tag_caches = self.tag_caches.lock();
        if !self.is_open() {
            return None;
        }
        self.state.store(CLOSED, Ordering::Relaxed);
        sync::heavy_barrier();
        Some(tag_caches.iter().filter_map(|tag_cache| tag_cache.take()).collect())
    }

    /// Opens the gate if no caller waits, as `waiting` says. Returns false if a caller began to
    /// wait at the same moment: then it must be closed again.
    pub(crate) fn open(&self, waiting: impl Fn() -> bool) -> bool {
        if !self.may_open {
            return true;
        }
        let tag_caches = self.tag_caches.lock();
        if self.is_open() || waiting() {
            return true;
        }
        self.state.store(OPEN, Ordering::Relaxed);
        sync::barrier_after_change();
        drop(tag_caches);
        !waiting()
    }

    /// The tags in tag caches now.
    pub(crate) fn kept(&self) -> Emptied {
        let tag_caches = self.tag_caches.lock();
        tag_caches
            .iter()
            .filter_map(|tag_cache| tag_cache.0.load(Ordering::Relaxed).checked_sub(1))
            .collect()
    }
}
