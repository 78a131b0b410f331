//! The plug: a batch of bios in the submitting thread, sorted and merged before a device sees it.
//!
//! While a plug exists, the bios submitted through it are mapped down to leaves and staged there.
//! They leave as requests, in the order of their sectors and merged with their neighbours, when the
//! plug is flushed: at a threshold, on [`flush`](Plug::flush), when the plug is dropped, and before
//! its thread sleeps in this crate (waiting for a completion, a batch or a buffer). So a thread
//! never waits for bios that it holds back itself, and stacked devices need no plug of their own:
//! what they spread over their legs merges on the legs. At the threshold, requests that are much
//! smaller than they may be stay, to grow with what follows: who writes in several places in turn
//! writes each in large pieces.
//!
//! Order: bios that overlap leave in the order in which they were staged, in different lists of
//! requests, and queues keep the order of overlapping requests. So what one thread submits to one
//! device takes effect as if done in order. A flush bio sends everything staged ahead of it.
//!
//! A plug made while the thread has one for the same device joins it: a function may plug for
//! itself, and its bios still leave with those of its caller.

mod leaf;
mod staged;

use std::cell::{RefCell, RefMut};
use std::fmt;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use crate::bio::{Bio, Operation};
use crate::clock::Stamp;
use crate::device::{BlockDevice, Layer, Limits, route};
use crate::error::Reason;
use crate::queue::{RequestList, RequestQueue};
use crate::request::Request;
use crate::sector::SECTOR_SIZE;
use staged::{Hints, Staged};

/// How much a plug stages, over all leaves, before it flushes itself. Up to half of that may stay
/// then, in requests that are small yet.
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
    hints: Hints,
}

thread_local! {
    /// The plugs of this thread, outermost first.
    static ACTIVE: RefCell<Vec<Weak<Staging>>> = const { RefCell::new(Vec::new()) };
}

/// Flushes every plug of this thread until none holds anything. It is called before a thread sleeps
/// in this crate; who sleeps elsewhere, for somebody who may wait for what the thread holds back,
/// calls it too.
pub fn flush_thread() {
    // Looked for anew each time: submitting may run callbacks, and those may make plugs and stage
    // more.
    while let Some(staging) = holding() {
        staging.flush();
    }
}

/// A plug of this thread that holds something.
fn holding() -> Option<Rc<Staging>> {
    let holds = |staging: &Rc<Staging>| staging.staged.borrow().bios > 0;
    ACTIVE.with_borrow(|active| active.iter().filter_map(Weak::upgrade).find(holds))
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
            let hints = Hints::new();
            let staging = Staging { device: Arc::clone(device), threshold, staged, hints };
            let staging = Rc::new(staging);
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
    fn stage(&self, queue: &Arc<dyn RequestQueue>, bio: Bio) {
        if bio.operation() == Operation::Flush {
            self.flush();
            return queue.submit(&mut RequestList::of(Request::new(bio)));
        }
        let mut staged = self.staged.borrow_mut();
        let index = staged.leaf(queue, &self.hints);
        let limits = &staged.leaves[index].limits;
        if bio.fitting_bytes(limits).is_none() {
            return self.stage_fitting(staged, index, bio);
        }
        let limits = *limits;
        drop(staged);
        for_each_fitting(bio, &limits, |part| {
            let mut staged = self.staged.borrow_mut();
            let index = staged.leaf(queue, &self.hints);
            self.stage_fitting(staged, index, part);
        });
    }

    /// Stages `bio`, which a request can hold, for the leaf with this index.
    #[inline]
    fn stage_fitting(&self, mut staged: RefMut<'_, Staged>, index: usize, bio: Bio) {
        let leaf = &mut staged.leaves[index];
        let Some(end) = bio.end() else {
            let queue = Arc::clone(&leaf.queue);
            drop(staged);
            return bio.fail(queue.name(), Reason::Misaligned { unit: SECTOR_SIZE });
        };
        let length = bio.length();
        leaf.push(bio, end);
        staged.bios += 1;
        staged.bytes = staged.bytes.saturating_add(length);
        if staged.bios >= self.threshold.bios || staged.bytes >= self.threshold.bytes {
            drop(staged);
            self.relieve();
        }
    }

    /// Sends what need not wait for neighbours.
    #[cold]
    fn relieve(&self) {
        // Where one bio is too much, none waits for neighbours.
        let may_stay = self.threshold.bios > 1;
        let whole = may_stay.then(|| self.staged.borrow_mut().take_whole(self.threshold)).flatten();
        let Some(whole) = whole else { return self.flush() };
        let stamp = Stamp::now();
        // Callbacks that run now find what stays in its place.
        for (queue, mut requests) in whole {
            if !requests.is_empty() {
                requests.stamp = Some(stamp);
                queue.submit(&mut requests);
            }
        }
    }

    fn flush(&self) {
        if self.staged.borrow().bios == 0 {
            return;
        }
        // Taken out first: submitting may run callbacks that submit through this plug.
        let mut staged = self.staged.take();
        // The clock is read once for all leaves.
        let stamp = Stamp::now();
        for leaf in &mut staged.leaves {
            leaf.send(stamp);
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
