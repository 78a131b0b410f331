//! The staged bios of a plug, leaf by leaf.

use std::cell::Cell;
use std::sync::Arc;

use smallvec::SmallVec;

use super::PlugThreshold;
use super::leaf_stage::{LeafStage, is_whole};
use crate::device::RequestQueue;
use crate::request::RequestList;

/// Where each leaf was last found in [`Staged::leaves`], by a hash of its address: devices of many
/// leaves need no search for each bio. A hint may be wrong.
pub(super) struct Hints([Cell<u16>; 1 << HINT_BITS]);

/// Few leaves share a hint in devices of up to a hundred leaves.
const HINT_BITS: u32 = 8;

impl Hints {
    /// For a device of which nothing is known yet.
    pub(super) fn new() -> Self {
        Self([const { Cell::new(0) }; 1 << HINT_BITS])
    }

    #[inline]
    fn of(&self, queue: &Arc<dyn RequestQueue>) -> &Cell<u16> {
        // Fibonacci hashing (Knuth, volume 3, 6.4): the highest bits of the product are mixed best.
        let address = Arc::as_ptr(queue).addr() as u64;
        let hash = address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - HINT_BITS);
        &self.0[hash as usize]
    }
}

/// The staged bios of all leaves that the thread has reached.
#[derive(Default)]
pub(super) struct Staged {
    pub(super) leaves: Vec<LeafStage>,
    pub(super) bios: usize,
    pub(super) bytes: u64,
}

/// Requests, and the queue that they go to.
pub(super) type Outgoing = SmallVec<[(Arc<dyn RequestQueue>, RequestList); 4]>;

impl Staged {
    /// The index of the leaf `queue`.
    #[inline]
    pub(super) fn leaf(&mut self, queue: &Arc<dyn RequestQueue>, hints: &Hints) -> usize {
        let hint = hints.of(queue);
        let known = usize::from(hint.get());
        if self.leaves.get(known).is_some_and(|leaf| leaf.is_of(queue)) {
            return known;
        }
        let index = self.search(queue);
        // A wrong hint costs a search, no more.
        hint.set(index as u16);
        index
    }

    #[cold]
    fn search(&mut self, queue: &Arc<dyn RequestQueue>) -> usize {
        self.leaves.iter().position(|leaf| leaf.is_of(queue)).unwrap_or_else(|| {
            self.leaves.push(LeafStage::new(queue));
            self.leaves.len() - 1
        })
    }

    /// Takes the bios that make whole requests, and leaves those staged that may yet grow with what
    /// follows; takes those too if they are more than half of what `threshold` allows. `None` when
    /// bios overlap: they have to leave in the order of their submission.
    pub(super) fn take_whole(&mut self, threshold: PlugThreshold) -> Option<Outgoing> {
        let mut outgoing = Outgoing::new();
        for leaf in &mut self.leaves {
            match leaf.merged() {
                Some(requests) => outgoing.push((Arc::clone(&leaf.queue), requests)),
                None => {
                    self.restage(&mut outgoing, |_| true);
                    return None;
                }
            }
        }
        (self.bios, self.bytes) = (0, 0);
        for (leaf, (_, requests)) in self.leaves.iter().zip(&outgoing) {
            for request in requests.iter().filter(|request| !is_whole(request, &leaf.limits)) {
                self.bios += request.bio_count();
                self.bytes += request.length();
            }
        }
        if self.bios <= threshold.bios / 2 && self.bytes <= threshold.bytes / 2 {
            self.restage(&mut outgoing, |is_whole| !is_whole);
        } else {
            (self.bios, self.bytes) = (0, 0);
        }
        Some(outgoing)
    }

    /// Puts the bios of requests for the first leaves back, if `goes_back` says so of whole ones or
    /// of others.
    fn restage(&mut self, outgoing: &mut Outgoing, goes_back: impl Fn(bool) -> bool) {
        for (leaf, (_, requests)) in self.leaves.iter_mut().zip(outgoing) {
            let limits = leaf.limits;
            let leaves = |request: &mut _| !goes_back(is_whole(request, &limits));
            requests.keep(leaves, |request| leaf.restage(request));
        }
    }
}
