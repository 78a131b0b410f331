//! A hardware queue as threads share it: requests that wait for the thread that drives it, its
//! tags, and its counters.

use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;

use crossbeam_utils::CachePadded;
use undercroft_tags::TagSet;

use super::deadlines::Deadlines;
use super::mailbox::Mailbox;
use crate::affinity::current_cpu;
use crate::driver::Bell;
use crate::experiments::redirect::Answers;
use crate::queue::gate::Activity;
use crate::request::RequestList;
use crate::statistics::{Counters, QueueLatencyCells, Writers};
use crate::threads::PushList;

/// What submitters, drivers and readers of statistics share of a hardware queue.
pub(crate) struct HardwareQueue {
    pub(crate) index: usize,
    pub(crate) tags: TagSet,
    /// Kept only where requests have a time limit.
    pub(crate) deadlines: Option<Deadlines>,
    pub(crate) mail: Mailbox,
    /// What other threads of the leaf hand to the thread of this queue to be done there.
    answers: PushList<Answers>,
    /// Where a message reaches that thread, if it sleeps in a ring.
    bell: OnceLock<Bell>,
    /// Threads of the queue whose driver has not panicked.
    pub(crate) sound_threads: AtomicUsize,
    pub(crate) activity: CachePadded<Activity>,
    pub(crate) counters: CachePadded<Counters>,
    pub(crate) latencies: QueueLatencyCells,
}

impl HardwareQueue {
    pub(crate) fn new(
        index: usize,
        tags: TagSet,
        max_bytes: u64,
        deadlines: Option<Deadlines>,
    ) -> Self {
        Self {
            index,
            tags,
            deadlines,
            mail: Mailbox::new(max_bytes),
            answers: PushList::new(),
            bell: OnceLock::new(),
            sound_threads: AtomicUsize::new(0),
            activity: CachePadded::default(),
            counters: CachePadded::default(),
            latencies: QueueLatencyCells::default(),
        }
    }

    /// Says where a message reaches the only thread of this queue.
    pub(crate) fn set_bell(&self, bell: Option<Bell>) {
        if let Some(bell) = bell {
            // Set once, when the thread starts.
            let _ = self.bell.set(bell);
        }
    }

    /// Where a message reaches the thread of this queue.
    pub(crate) fn bell(&self) -> Option<&Bell> {
        self.bell.get()
    }

    /// Hands `answers` to the thread of this queue; returns whether it has to be told.
    pub(crate) fn hand_over(&self, answers: Answers) -> bool {
        self.answers.push(answers)
    }

    /// Requests handed to the thread of this queue.
    pub(crate) fn take_answers(&self) -> Vec<Answers> {
        self.answers.take_all()
    }

    /// Whether something was handed to the thread of this queue.
    pub(crate) fn has_answers(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Requests over their time limit that the driver has not let go.
    pub(crate) fn timed_out(&self) -> usize {
        self.deadlines.as_ref().map_or(0, Deadlines::timed_out)
    }

    /// Counts requests that a thread of this queue took, by where they were submitted.
    pub(crate) fn count_taken(&self, requests: &RequestList) {
        if requests.is_empty() {
            return;
        }
        let cpu = current_cpu();
        let (mut local, mut remote) = (0, 0);
        for request in requests.iter() {
            let bios = request.bio_count() as u64;
            *(if request.inner.cpu == cpu { &mut local } else { &mut remote }) += bios;
        }
        for (counter, bios) in
            [(&self.counters.queued_local, local), (&self.counters.queued_remote, remote)]
        {
            if bios > 0 {
                counter.add(bios, Writers::Many);
            }
        }
    }
}
