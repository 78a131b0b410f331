//! The plugs of a thread.

use std::cell::{RefCell, RefMut};
use std::fmt;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use super::screen::{answer_irregular, for_each_fitting, is_regular};
use super::staged::{Hints, Staged};
use super::threshold::PlugThreshold;
use crate::affinity::Stamp;
use crate::bio::{Bio, Operation, Reason};
use crate::device::{BlockDevice, Layer, RequestQueue, route};
use crate::request::{Request, RequestList};
use crate::threads::plugged;
use crate::units::SECTOR_SIZE;

/// A handle to this thread's staged bios for one device. The last handle to go flushes.
#[must_use = "dropping a plug flushes it"]
pub struct Plug {
    staging: Rc<Staging>,
}

/// The bios that one thread staged for one device.
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
/// in this crate; a thread that sleeps elsewhere calls it too, if its wake-up may depend on the
/// bios that it holds back.
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
            plugged::send_by(flush_thread);
            Self { staging }
        })
    }

    /// Stages `bio`. Its receiver is told in any case.
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
