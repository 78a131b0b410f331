//! The staged bios of one leaf, and the requests that they become.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::affinity::Stamp;
use crate::bio::Bio;
use crate::device::RequestQueue;
use crate::request::{Request, RequestList};
use crate::units::{Limits, Sector};

/// Bios for one leaf.
pub(super) struct LeafStage {
    pub(super) queue: Arc<dyn RequestQueue>,
    pub(super) limits: Limits,
    /// In order of submission; all there, but during a flush.
    bios: Vec<Option<Bio>>,
    /// Whether each starts where the one before ends, or behind; and where the last one ends.
    ascending: bool,
    end: Sector,
    /// Empty but during a flush; kept for its memory.
    spare: Spare,
}

/// Lists that a flush needs.
#[derive(Default)]
struct Spare {
    order: Vec<Key>,
    requests: RequestList,
}

/// First sector and number of a bio, in one integer: sorting compares them without a branch.
type Key = u128;

fn key(bio: &Bio, number: usize) -> Key {
    u128::from(bio.sector().0) << 64 | number as u128
}

impl LeafStage {
    pub(super) fn new(queue: &Arc<dyn RequestQueue>) -> Self {
        Self {
            queue: Arc::clone(queue),
            limits: queue.limits(),
            bios: Vec::new(),
            ascending: true,
            end: Sector::ZERO,
            spare: Spare::default(),
        }
    }

    pub(super) fn is_of(&self, queue: &Arc<dyn RequestQueue>) -> bool {
        Arc::ptr_eq(&self.queue, queue)
    }

    #[inline]
    pub(super) fn push(&mut self, bio: Bio, end: Sector) {
        self.ascending &= self.end <= bio.sector();
        self.end = end;
        self.bios.push(Some(bio));
    }

    /// Takes the bios of `request` back.
    pub(super) fn restage(&mut self, mut request: Request) {
        for bio in request.take_bios() {
            let end = last(&bio);
            self.push(bio, end);
        }
    }

    /// Hands everything staged to the queue: by sector, neighbours merged, and what overlaps in the
    /// order of submission.
    pub(super) fn send(&mut self, stamp: Stamp) {
        if self.bios.is_empty() {
            return;
        }
        if let Some(requests) = self.merged() {
            return self.submit(requests, stamp);
        }
        // Rare: most callers do not write sectors that they have just written or asked for.
        let mut bios = std::mem::take(&mut self.bios);
        self.ascending = true;
        let mut rest = &mut bios[..];
        while !rest.is_empty() {
            let (round, behind) = rest.split_at_mut(apart(rest));
            let requests = self.sorted(round);
            debug_assert!(requests.is_some(), "they lie apart");
            self.submit(requests.unwrap_or_default(), stamp);
            rest = behind;
        }
        bios.clear();
        self.bios = bios;
    }

    /// Takes everything staged as requests, unless some bios overlap: by sector, neighbours merged.
    pub(super) fn merged(&mut self) -> Option<RequestList> {
        self.end = Sector::ZERO;
        if self.ascending {
            let mut requests = std::mem::take(&mut self.spare.requests);
            let bios = self.bios.drain(..).flatten();
            bios.for_each(|bio| append(&mut requests, bio, &self.limits));
            return Some(requests);
        }
        let mut bios = std::mem::take(&mut self.bios);
        let requests = self.sorted(&mut bios);
        if requests.is_some() {
            bios.clear();
            self.ascending = true;
        }
        self.bios = bios;
        requests
    }

    /// Takes `bios` as requests, unless some overlap.
    fn sorted(&mut self, bios: &mut [Option<Bio>]) -> Option<RequestList> {
        let mut order = std::mem::take(&mut self.spare.order);
        order.extend(bios.iter().enumerate().filter_map(|(n, bio)| Some(key(bio.as_ref()?, n))));
        order.sort_unstable();
        // The low half is the number.
        let number = |key: &Key| *key as u64 as usize;
        let mut end = Sector::ZERO;
        let is_apart = |key| {
            let bio = bios[number(key)].as_ref();
            bio.is_none_or(|bio| bio.sector() >= std::mem::replace(&mut end, last(bio)))
        };
        let apart = order.iter().all(is_apart);
        let requests = apart.then(|| {
            let mut requests = std::mem::take(&mut self.spare.requests);
            let sorted = order.iter().filter_map(|key| bios[number(key)].take());
            sorted.for_each(|bio| append(&mut requests, bio, &self.limits));
            requests
        });
        order.clear();
        self.spare.order = order;
        requests
    }

    /// Hands `requests` to the queue, and keeps the memory of the list.
    fn submit(&mut self, mut requests: RequestList, stamp: Stamp) {
        requests.stamp = Some(stamp);
        self.queue.submit(&mut requests);
        self.spare.requests = requests;
    }
}

/// Whether a request is so large that it need not wait for neighbours.
pub(super) fn is_whole(request: &Request, limits: &Limits) -> bool {
    request.length() >= limits.max_request_bytes / 4 * 3
}

/// The sector behind the last one of a staged bio, which is made of whole sectors.
fn last(bio: &Bio) -> Sector {
    bio.end().unwrap_or(Sector::MAX)
}

/// How many of the first of `bios` do not overlap with each other; at least one.
fn apart(bios: &[Option<Bio>]) -> usize {
    let mut taken = BTreeMap::new();
    let overlapping = bios.iter().flatten().position(|bio| {
        let (start, end) = (bio.sector(), last(bio));
        let before = taken.range(..end).next_back();
        let overlaps = before.is_some_and(|(_, taken_until)| *taken_until > start);
        taken.insert(start, end);
        overlaps
    });
    overlapping.unwrap_or(bios.len())
}

/// Puts `bio` in the last request, if that goes on with it, or in a new one.
#[inline]
fn append(requests: &mut RequestList, bio: Bio, limits: &Limits) {
    match requests.last_mut() {
        Some(last) if last.accepts(&bio, limits) => last.merge(bio),
        _ => requests.push(Request::new(bio)),
    }
}
