//! A simulated device below a set of tags.
//!
//! It takes commands and completes each some time later, in one of a few threads that stand for
//! interrupt handlers: the thread gives the tag back and tells the owner. Without a service time it
//! is what null_blk is to a kernel, a device that costs nothing but the way there and back. With
//! one, commands wait for a fixed latency after their data went over a channel of limited speed;
//! commands of at most a page do not queue for the channel, as devices slip them in between.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;
use parking_lot::{Condvar, Mutex};
use undercroft_tags::{Tag, TagSet};

use crate::measure::latency::LatencyRecorder;

/// Largest command in bytes that does not queue for the channel.
const SLIPS_IN: u64 = 4096;

/// How long a command takes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Service {
    /// From the end of the transfer to the completion.
    pub(super) latency: Duration,
    /// Speed of the channel that all commands of a lane share; without it transfers take no time.
    pub(super) bytes_per_second: Option<NonZeroU64>,
}

impl Service {
    fn is_null(&self) -> bool {
        self.latency.is_zero() && self.bytes_per_second.is_none()
    }

    /// When `command` is complete if it arrives now; `channel_free` is when the channel is.
    fn due(&self, command: &Command, channel_free: &mut Instant) -> Instant {
        if self.is_null() {
            return command.asked;
        }
        let now = Instant::now();
        match self.bytes_per_second {
            Some(speed) if command.bytes > SLIPS_IN => {
                let transfer = Duration::from_secs_f64(command.bytes as f64 / speed.get() as f64);
                *channel_free = now.max(*channel_free) + transfer;
                *channel_free + self.latency
            }
            _ => now + self.latency,
        }
    }
}

/// One command on its way.
#[derive(Debug)]
pub(super) struct Command {
    /// Its tag; given back on completion.
    pub(super) tag: Tag,
    /// The worker to tell, by index.
    pub(super) owner: usize,
    /// Kind of worker, by index: what latencies and counts are kept for.
    pub(super) class: usize,
    /// Bytes to transfer.
    pub(super) bytes: u64,
    /// When the owner began to ask for the tag.
    pub(super) asked: Instant,
}

/// Learns about the completion of its commands.
pub(super) trait Owner: Sync {
    /// One command is complete and its tag given back.
    fn completed(&self);
}

/// The device: lanes with a thread each.
pub(super) struct Device<'a, O> {
    set: &'a TagSet,
    owners: &'a [O],
    service: Service,
    lanes: Vec<CachePadded<Lane>>,
}

/// Commands for one completing thread, and its count of completed ones.
struct Lane {
    inbox: Mutex<Inbox>,
    filled: Condvar,
    /// Completions by class; written by the thread of the lane alone.
    completed: Vec<AtomicU64>,
}

struct Inbox {
    arrived: Vec<(Instant, Command)>,
    channel_free: Instant,
    closed: bool,
}

impl<'a, O: Owner> Device<'a, O> {
    /// A device of `lanes` lanes for commands of `classes` classes.
    pub(super) fn new(
        set: &'a TagSet,
        owners: &'a [O],
        service: Service,
        lanes: usize,
        classes: usize,
    ) -> Self {
        let lane = || {
            let inbox = Inbox { arrived: Vec::new(), channel_free: Instant::now(), closed: false };
            let completed = (0..classes).map(|_| AtomicU64::new(0)).collect();
            CachePadded::new(Lane { inbox: Mutex::new(inbox), filled: Condvar::new(), completed })
        };
        Self { set, owners, service, lanes: (0..lanes).map(|_| lane()).collect() }
    }

    /// Starts a command. The lane is that of its owner.
    pub(super) fn submit(&self, command: Command) {
        let lane = &self.lanes[command.owner % self.lanes.len()];
        let mut inbox = lane.inbox.lock();
        let due = self.service.due(&command, &mut inbox.channel_free);
        let was_empty = inbox.arrived.is_empty();
        inbox.arrived.push((due, command));
        drop(inbox);
        if was_empty {
            lane.filled.notify_one();
        }
    }

    /// Commands of `class` completed so far.
    pub(super) fn completed(&self, class: usize) -> u64 {
        self.lanes.iter().map(|lane| lane.completed[class].load(Ordering::Relaxed)).sum()
    }

    /// Lets the lanes end when everything is complete.
    pub(super) fn close(&self) {
        for lane in &self.lanes {
            lane.inbox.lock().closed = true;
            lane.filled.notify_one();
        }
    }

    /// The life of lane `index`: completes commands until the device is closed and empty. Returns
    /// the latencies by class.
    pub(super) fn serve(&self, index: usize) -> Vec<LatencyRecorder> {
        // Best effort: without it sleeps are some 50 microseconds longer.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let lane = &*self.lanes[index];
        let mut latencies: Vec<LatencyRecorder> =
            lane.completed.iter().map(|_| LatencyRecorder::default()).collect();
        let mut arrived = Vec::new();
        let mut pending = BinaryHeap::new();
        loop {
            let next_due = pending.peek().map(|Reverse(pending): &Reverse<Pending>| pending.due);
            if !lane.wait(&mut arrived, next_due) && pending.is_empty() {
                return latencies;
            }
            if self.service.is_null() {
                for (_, command) in arrived.drain(..) {
                    self.complete(lane, &command, &mut latencies);
                }
                continue;
            }
            pending
                .extend(arrived.drain(..).map(|(due, command)| Reverse(Pending { due, command })));
            let now = Instant::now();
            while pending.peek().is_some_and(|Reverse(first)| first.due <= now) {
                let Some(Reverse(first)) = pending.pop() else { break };
                self.complete(lane, &first.command, &mut latencies);
            }
        }
    }

    fn complete(&self, lane: &Lane, command: &Command, latencies: &mut [LatencyRecorder]) {
        self.set.put(command.tag);
        latencies[command.class].record(command.asked.elapsed());
        let completed = &lane.completed[command.class];
        completed.store(completed.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.owners[command.owner].completed();
    }
}

impl Lane {
    /// Waits for commands or until `due`, and moves what arrived to `arrived`, which is empty.
    /// False when the device is closed and nothing arrived.
    fn wait(&self, arrived: &mut Vec<(Instant, Command)>, due: Option<Instant>) -> bool {
        let mut inbox = self.inbox.lock();
        while inbox.arrived.is_empty() {
            match due {
                Some(due) => {
                    if due <= Instant::now() || self.filled.wait_until(&mut inbox, due).timed_out()
                    {
                        break;
                    }
                }
                None if inbox.closed => return false,
                None => self.filled.wait(&mut inbox),
            }
        }
        std::mem::swap(&mut inbox.arrived, arrived);
        true
    }
}

/// A command that is not due yet, ordered by when it is.
struct Pending {
    due: Instant,
    command: Command,
}

impl PartialEq for Pending {
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due
    }
}

impl Eq for Pending {}

impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Pending {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.due.cmp(&other.due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(bytes: u64) -> Command {
        let set = TagSet::new(1).unwrap();
        let tag = set.caller().try_get().unwrap();
        Command { tag, owner: 0, class: 0, bytes, asked: Instant::now() }
    }

    #[test]
    fn large_commands_queue_for_the_channel_and_small_ones_slip_in() {
        let speed = NonZeroU64::new(1 << 20);
        let service = Service { latency: Duration::from_secs(10), bytes_per_second: speed };
        let begin = Instant::now();
        let mut free = begin;
        let after = |due: Instant| (due - begin).as_secs();
        assert_eq!(after(service.due(&command(1 << 20), &mut free)), 11);
        assert_eq!(after(service.due(&command(1 << 20), &mut free)), 12);
        assert_eq!(after(service.due(&command(512), &mut free)), 10);
    }

    #[test]
    fn without_a_service_time_everything_is_due_at_once() {
        let mut free = Instant::now();
        let one = command(1 << 20);
        assert_eq!(Service::default().due(&one, &mut free), one.asked);
    }
}
