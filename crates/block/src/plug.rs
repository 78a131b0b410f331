//! The plug: a batch of bios in the submitting thread, sorted and merged before a device sees it.
//!
//! While a plug exists, the bios submitted through it are mapped down to leaves and staged there.
//! They leave as requests, in the order of their sectors and merged with their neighbours, when the
//! plug is flushed: at a threshold, on [`flush`](Plug::flush), when the plug is dropped, and before
//! its thread sleeps in this crate (waiting for a completion, a batch or a buffer). So a thread
//! never waits for bios that it holds back itself, and stacked devices need no plug of their own:
//! what they spread over their legs merges on the legs.
//!
//! Order: staged bios of a leaf do not overlap. A bio that overlaps a staged one flushes the plug
//! first, and queues keep the order of overlapping requests, so what one thread submits to one
//! device takes effect as if done in order. A flush bio sends everything staged ahead of it.
//!
//! A plug made while the thread has one for the same device joins it: a function may plug for
//! itself, and its bios still leave with those of its caller.

use std::cell::RefCell;
use std::fmt;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use smallvec::SmallVec;

use crate::bio::{Bio, Operation};
use crate::device::{BlockDevice, Layer, Limits, route};
use crate::error::Reason;
use crate::queue::{RequestList, RequestQueue};
use crate::request::Request;
use crate::sector::{SECTOR_SIZE, Sector};

/// How much a plug stages, over all leaves, before it flushes itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlugThreshold {
    /// Number of bios.
    pub bios: usize,
    /// Sum of their lengths in bytes.
    pub bytes: u64,
}

impl Default for PlugThreshold {
    /// Enough for several of the largest requests of small files, little enough that a plug does
    /// not hold back a noticeable share of a buffer pool.
    fn default() -> Self {
        Self { bios: 1024, bytes: 4 << 20 }
    }
}

/// A handle to this thread's staged bios for one device. The last handle to go flushes.
#[must_use = "dropping a plug flushes it"]
pub struct Plug {
    staging: Rc<Staging>,
}

/// What one thread staged for one device.
struct Staging {
    device: Arc<dyn BlockDevice>,
    threshold: PlugThreshold,
    staged: RefCell<Staged>,
}

/// The staged bios of all leaves that the thread has reached.
#[derive(Default)]
struct Staged {
    leaves: SmallVec<[LeafStage; 1]>,
    bios: usize,
    bytes: u64,
}

/// Bios for one leaf that do not overlap, and their order by sector.
struct LeafStage {
    queue: Arc<dyn RequestQueue>,
    limits: Limits,
    /// In order of submission. `None` never outlives [`LeafStage::move_to_requests`].
    bios: Vec<Option<Bio>>,
    /// Sorted by sector. Kept apart from the bios because inserting moves these small records.
    order: Vec<Place>,
    /// Empty but during a flush; kept for its memory.
    requests: RequestList,
}

/// Where one staged bio lies on the leaf, and in [`LeafStage::bios`].
#[derive(Clone, Copy)]
struct Place {
    start: Sector,
    end: Sector,
    index: usize,
}

thread_local! {
    /// The plugs of this thread, outermost first.
    static ACTIVE: RefCell<Vec<Weak<Staging>>> = const { RefCell::new(Vec::new()) };
}

/// Flushes every plug of this thread. It is called before a thread sleeps in this crate; who sleeps
/// elsewhere, for somebody who may wait for what the thread holds back, calls it too.
pub fn flush_thread() {
    // Copied out: submitting may run callbacks, and those may make plugs.
    let active: SmallVec<[Rc<Staging>; 2]> =
        ACTIVE.with_borrow(|active| active.iter().filter_map(Weak::upgrade).collect());
    for staging in &active {
        staging.flush();
    }
}

/// Submits one bio without staging it.
pub(crate) fn submit_directly(device: &dyn BlockDevice, bio: Bio) {
    if let Some(bio) = screen(bio, device) {
        route(device, bio, |queue, bio| {
            for_each_fitting(bio, &queue.limits(), |bio| {
                queue.submit(&mut RequestList::of(Request::new(bio)));
            });
        });
    }
}

/// Answers bios that no device has to see: those not made of whole sectors, and empty ones.
#[inline]
fn screen(bio: Bio, device: &dyn BlockDevice) -> Option<Bio> {
    if is_regular(&bio) { Some(bio) } else { answer_irregular(bio, device) }
}

/// Whether a bio is made of whole sectors, and of some unless it is a flush.
#[inline]
fn is_regular(bio: &Bio) -> bool {
    bio.end().is_some() && (bio.length() > 0 || bio.operation() == Operation::Flush)
}

#[cold]
fn answer_irregular(bio: Bio, device: &dyn BlockDevice) -> Option<Bio> {
    if bio.end().is_none() {
        bio.fail(device.name(), Reason::Misaligned { unit: SECTOR_SIZE });
    } else {
        bio.succeed();
    }
    None
}

/// Hands `bio` to `stage`, in parts if it is larger than a request may be.
#[inline]
fn for_each_fitting(mut bio: Bio, limits: &Limits, mut stage: impl FnMut(Bio)) {
    while let Some(bytes) = bio.fitting_bytes(limits) {
        stage(bio.split_front(bytes));
    }
    stage(bio);
}

impl Plug {
    /// A plug for `device` with the default threshold.
    pub fn new(device: &Arc<dyn BlockDevice>) -> Self {
        Self::with_threshold(device, PlugThreshold::default())
    }

    /// A plug for `device` that flushes itself at `threshold`. If the thread has a plug for the
    /// device already, joins it, and its threshold stays.
    pub fn with_threshold(device: &Arc<dyn BlockDevice>, threshold: PlugThreshold) -> Self {
        let same_device = |staging: &Rc<Staging>| {
            std::ptr::addr_eq(Arc::as_ptr(&staging.device), Arc::as_ptr(device))
        };
        ACTIVE.with_borrow_mut(|active| {
            if let Some(staging) = active.iter().filter_map(Weak::upgrade).find(same_device) {
                return Self { staging };
            }
            active.retain(|plug| plug.strong_count() > 0);
            let staged = RefCell::default();
            let staging = Rc::new(Staging { device: Arc::clone(device), threshold, staged });
            active.push(Rc::downgrade(&staging));
            Self { staging }
        })
    }

    /// Stages `bio`. Whatever becomes of it, its receiver is told.
    pub fn submit(&self, bio: Bio) {
        let staging = &*self.staging;
        if !is_regular(&bio) {
            answer_irregular(bio, &*staging.device);
            return;
        }
        match staging.device.layer() {
            Layer::Leaf(queue) => staging.stage(queue, bio),
            Layer::Stacked(_) => {
                route(&*staging.device, bio, |queue, bio| staging.stage(queue, bio));
            }
        }
    }

    /// Hands everything staged to the device.
    pub fn flush(&self) {
        self.staging.flush();
    }

    /// The device behind the plug.
    #[must_use]
    pub fn device(&self) -> &Arc<dyn BlockDevice> {
        &self.staging.device
    }
}

impl fmt::Debug for Plug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plug")
            .field("device", &self.staging.device.name())
            .field("threshold", &self.staging.threshold)
            .finish_non_exhaustive()
    }
}

impl Staging {
    /// Stages `bio` for the leaf `queue`.
    #[inline]
    fn stage(&self, queue: &Arc<dyn RequestQueue>, bio: Bio) {
        if bio.operation() == Operation::Flush {
            self.flush();
            return queue.submit(&mut RequestList::of(Request::new(bio)));
        }
        let limits = self.staged.borrow_mut().leaf(queue).limits;
        if bio.fitting_bytes(&limits).is_some() {
            return for_each_fitting(bio, &limits, |part| self.stage_fitting(queue, part));
        }
        self.stage_fitting(queue, bio);
    }

    /// Stages `bio`, which a request can hold.
    #[inline]
    fn stage_fitting(&self, queue: &Arc<dyn RequestQueue>, bio: Bio) {
        let Some(end) = bio.end() else {
            return bio.fail(queue.name(), Reason::Misaligned { unit: SECTOR_SIZE });
        };
        let place = Place { start: bio.sector(), end, index: 0 };
        loop {
            let mut staged = self.staged.borrow_mut();
            let leaf = staged.leaf(queue);
            if let Some(position) = leaf.position(place) {
                let length = bio.length();
                leaf.insert(position, place, bio);
                staged.bios += 1;
                staged.bytes = staged.bytes.saturating_add(length);
                if !staged.reaches(self.threshold) {
                    return;
                }
                drop(staged);
                return self.flush();
            }
            drop(staged);
            // It overlaps a staged one. Again after each flush: the flush may have run callbacks
            // that staged bios of their own.
            self.flush();
        }
    }

    fn flush(&self) {
        // Taken out first: submitting may run callbacks that submit through this plug.
        let mut staged = self.staged.take();
        for leaf in &mut staged.leaves {
            leaf.move_to_requests();
            if !leaf.requests.is_empty() {
                leaf.queue.submit(&mut leaf.requests);
            }
        }
        // The memory is used again, if nothing was staged meanwhile.
        let mut now = self.staged.borrow_mut();
        if now.leaves.is_empty() {
            now.leaves = staged.leaves;
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        self.flush();
    }
}

impl Staged {
    fn reaches(&self, threshold: PlugThreshold) -> bool {
        self.bios >= threshold.bios || self.bytes >= threshold.bytes
    }

    fn leaf(&mut self, queue: &Arc<dyn RequestQueue>) -> &mut LeafStage {
        let same = |leaf: &LeafStage| Arc::ptr_eq(&leaf.queue, queue);
        let index = self.leaves.iter().position(same).unwrap_or_else(|| {
            self.leaves.push(LeafStage::new(queue));
            self.leaves.len() - 1
        });
        &mut self.leaves[index]
    }
}

impl LeafStage {
    fn new(queue: &Arc<dyn RequestQueue>) -> Self {
        Self {
            queue: Arc::clone(queue),
            limits: queue.limits(),
            bios: Vec::new(),
            order: Vec::new(),
            requests: RequestList::new(),
        }
    }

    /// Where in `order` a bio at `place` belongs; `None` when it overlaps a staged one.
    fn position(&self, place: Place) -> Option<usize> {
        // Staged bios do not overlap, so only the two neighbours can overlap the new one. Most
        // bios continue where the last one ended, so the end is tried before searching.
        let position = match self.order.last() {
            Some(last) if last.end > place.start => {
                self.order.partition_point(|staged| staged.end <= place.start)
            }
            _ => self.order.len(),
        };
        let free = self.order.get(position).is_none_or(|next| place.end <= next.start);
        free.then_some(position)
    }

    fn insert(&mut self, position: usize, place: Place, bio: Bio) {
        self.order.insert(position, Place { index: self.bios.len(), ..place });
        self.bios.push(Some(bio));
    }

    /// Makes requests of the staged bios, by sector, neighbours merged.
    fn move_to_requests(&mut self) {
        for place in &self.order {
            let Some(bio) = self.bios[place.index].take() else { continue };
            match self.requests.last_mut() {
                Some(last) if last.accepts(&bio, &self.limits) => last.merge(bio),
                _ => self.requests.push(Request::new(bio)),
            }
        }
        self.order.clear();
        self.bios.clear();
    }
}
