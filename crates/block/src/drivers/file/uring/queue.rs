//! A driver queue on one ring: requests in flight by tag, completions as they arrive.
#![allow(unsafe_code, reason = "promises that memory in flight stays where it is")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use io_uring::{opcode, squeue, types};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::UringDriver;
use super::command::{Slot, Target};
use super::ring::{Event, Ring};
use crate::bio::Operation;
use crate::driver::{Bell, Completions, Driver, DriverQueue, QueueContext, Wait, drain};
use crate::drivers::file::transfer;
use crate::memory::BufferPool;
use crate::request::{Request, RequestList};
use crate::threads::Wakeup;

/// Numbers of events that are not those of requests, which have their tag (below 2^32).
mod number {
    /// The event descriptor became readable.
    pub(super) const WOKEN: u64 = 1 << 32;
    /// A request to cancel was dealt with.
    pub(super) const CANCEL: u64 = 2 << 32;
    /// Another ring sent a message.
    pub(super) const RUNG: u64 = 3 << 32;
    /// A message of ours was not delivered; the low half says to which bell.
    pub(super) const BELL: u64 = 4 << 32;
}

/// Entries beside those of requests: listening to the event descriptor, cancelling, messages.
const SPARE_ENTRIES: u32 = 32;

/// What one thread drives.
pub(crate) struct UringQueue {
    driver: Arc<UringDriver>,
    ring: Ring,
    target: Target,
    /// A transfer came.
    has_transferred: bool,
    /// By tag.
    slots: Vec<Slot>,
    in_flight: usize,
    /// Collected and not yet looked at; empty between calls.
    events: Vec<Event>,
    wakeup: Arc<Wakeup>,
    /// Of every entry of a request.
    flags: squeue::Flags,
    /// Whether the ring listens to the event descriptor.
    listening: bool,
    bell: Bell,
    /// Bells rung so far; messages refer to them.
    rung: Vec<Bell>,
}

impl UringQueue {
    /// Opens a ring for `driver` in this thread, which will be the only one to use it.
    pub(super) fn open(driver: &Arc<UringDriver>, context: &QueueContext) -> io::Result<Self> {
        let entries = context.depth.saturating_add(SPARE_ENTRIES);
        let ring = Ring::open(entries, driver.polled)?;
        ring.register_file(driver.file.file())?;
        let file = Arc::clone(&driver.file);
        let target = Target { arena: None, block: file.block(), file };
        let wakeup = Wakeup::new()?;
        // A thread that is stuck in a transfer could neither stop it nor start others.
        let flags = match driver.file.blocks_submitters() {
            true => squeue::Flags::ASYNC,
            false => squeue::Flags::empty(),
        };
        let bell = Bell::new(ring.as_fd().try_clone_to_owned()?, &wakeup);
        Ok(Self {
            driver: Arc::clone(driver),
            ring,
            target,
            has_transferred: false,
            slots: (0..context.depth).map(|_| Slot::default()).collect(),
            in_flight: 0,
            events: Vec::new(),
            wakeup,
            flags,
            listening: false,
            bell,
            rung: Vec::new(),
        })
    }

    /// Registers the memory of the pool, which the kernel clears for that: not before the first
    /// transfer, for some volumes see none.
    #[cold]
    fn register_memory(&mut self) {
        self.has_transferred = true;
        if let Some(arena) = self.driver.pool.as_ref().and_then(BufferPool::arena) {
            // Refused where little memory may be locked; transfers work without.
            let _ = self.ring.register_arena(arena);
            self.target.arena = self.ring.arena().cloned();
        }
    }

    /// Whether the memory of the pool is registered with the ring.
    #[cfg(all(test, not(loom)))]
    pub(super) fn is_registered(&self) -> bool {
        self.target.arena.is_some()
    }

    /// Sends the next entry of the request with `tag`.
    fn push(&mut self, tag: u32) {
        let Some(entry) = self.slots[tag as usize].entry(&self.target) else { return };
        // SAFETY: the memory belongs to the request, which stays in its slot until the event is
        // collected, as does the list of pieces.
        let pushed = unsafe { self.ring.push(&entry.user_data(tag.into()).flags(self.flags)) };
        debug_assert!(pushed, "room is kept for one entry of every request");
    }

    /// Appends an entry that is none of a request's; returns whether there was room.
    fn push_spare(&mut self, entry: &squeue::Entry) -> bool {
        if self.ring.room() <= self.slots.len() && self.ring.enter(Wait::No).is_err() {
            return false;
        }
        // SAFETY: such entries name no memory.
        self.ring.room() > self.slots.len() && unsafe { self.ring.push(entry) }
    }

    /// Looks at what arrived. Returns whether anything did.
    fn collect(&mut self, completions: &mut Completions) -> bool {
        let mut events = std::mem::take(&mut self.events);
        self.ring.collect(&mut events);
        let arrived = !events.is_empty();
        for Event { number, result } in events.drain(..) {
            match u32::try_from(number) {
                Ok(tag) => self.advance(tag, result, completions),
                Err(_) if number == number::WOKEN => {
                    self.listening = false;
                    self.wakeup.reset();
                }
                Err(_) if number & number::BELL != 0 => {
                    // No message for this kernel, or the thread is gone.
                    self.rung[number as u32 as usize].wake();
                }
                Err(_) => debug_assert!(matches!(number, number::CANCEL | number::RUNG)),
            }
        }
        self.events = events;
        arrived
    }

    /// Takes in the result of an entry of the request with `tag`.
    fn advance(&mut self, tag: u32, result: i32, completions: &mut Completions) {
        let slot = &mut self.slots[tag as usize];
        match slot.advance(result, &self.target) {
            Some((request, result)) => {
                self.in_flight -= 1;
                completions.push(request, result);
            }
            None => self.push(tag),
        }
    }

    /// Enters the ring; when that fails, every request fails with it.
    fn enter(&mut self, wait: Wait, completions: &mut Completions) -> io::Result<()> {
        let entered = self.ring.enter(wait);
        if let Err(error) = &entered {
            let error = Arc::new(io::Error::new(error.kind(), error.to_string()));
            for request in self.slots.iter_mut().filter_map(Slot::abandon) {
                completions.push(request, Err(Arc::clone(&error).into()));
            }
            self.in_flight = 0;
        }
        entered
    }

    /// Sleeps in the ring, or if nothing is in flight in a polled one, which cannot listen, outside.
    fn sleep(&mut self, wait: Wait, completions: &mut Completions) -> io::Result<()> {
        if !self.ring.is_polled() {
            if !self.listening {
                let event = types::Fd(self.wakeup.event().as_raw_fd());
                let listen = opcode::PollAdd::new(event, libc::POLLIN as u32).build();
                self.listening = self.push_spare(&listen.user_data(number::WOKEN));
            }
            return self.enter(wait, completions);
        }
        if self.in_flight > 0 {
            return self.enter(wait, completions);
        }
        let timeout = match wait {
            Wait::Until(time) => {
                let left = time.saturating_duration_since(Instant::now());
                Some(Timespec::try_from(left).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 }))
            }
            Wait::Forever | Wait::No => None,
        };
        // A signal: as good as a wake-up.
        let _ = poll(&mut [PollFd::new(&self.wakeup.event(), PollFlags::IN)], timeout.as_ref());
        self.wakeup.reset();
        Ok(())
    }

    /// Whether the ring takes `request`; a polled one takes only transfers.
    fn takes(&self, request: &Request) -> bool {
        let operation = request.operation();
        let transfer = matches!(operation, Operation::Read | Operation::Write);
        let polled = self.ring.is_polled();
        // Rings have no clones, and polled ones nothing but transfers.
        operation != Operation::CloneRange
            && (!polled || (transfer && !request.is_force_unit_access()))
    }
}

impl DriverQueue for UringQueue {
    const BATCH: usize = 64;

    fn start(&mut self, requests: &mut RequestList, completions: &mut Completions) {
        // The ring has room for one entry of every request, so a batch is never cut in two.
        while let Some(mut request) = requests.pop() {
            if !self.takes(&request) {
                let result = transfer::execute(&self.driver.file, &mut request);
                completions.push(request, result);
                continue;
            }
            if !self.has_transferred
                && matches!(request.operation(), Operation::Read | Operation::Write)
            {
                self.register_memory();
            }
            let tag = request.tag();
            self.slots[tag as usize].begin(request);
            self.in_flight += 1;
            self.push(tag);
            // The kernel keeps what one call sends until it has taken all of it. A disk with little
            // to do starts earlier if it gets the first ones at once: as many as it has, each time.
            // What ended in between counts no more, so a fast disk gets short lists.
            if !requests.is_empty() && 2 * self.ring.unsent() >= self.in_flight {
                // When it fails all have failed; the next sleep says so, too.
                let _ = self.enter(Wait::No, completions);
                self.collect(completions);
            }
        }
    }

    fn reap(&mut self, completions: &mut Completions, wait: Wait) -> io::Result<()> {
        let arrived = self.collect(completions);
        if arrived || !completions.is_empty() || wait == Wait::No || !self.wakeup.fall_asleep() {
            self.enter(Wait::No, completions)?;
        } else {
            let slept = self.sleep(wait, completions);
            self.wakeup.awake();
            slept?;
        }
        self.collect(completions);
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn waker(&self) -> Waker {
        Arc::clone(&self.wakeup).into()
    }

    fn cancel(&mut self, tag: u32) {
        let slot = &mut self.slots[tag as usize];
        // A polled ring has nothing that could be stopped.
        if slot.is_busy() && !self.ring.is_polled() {
            slot.cancel();
            let cancel = opcode::AsyncCancel::new(tag.into()).build();
            self.push_spare(&cancel.user_data(number::CANCEL));
        }
    }

    fn bell(&self) -> Option<Bell> {
        Some(self.bell.clone())
    }

    fn expect(&mut self, event: BorrowedFd<'_>) -> Option<Instant> {
        // Requests that ended before the kernel was asked to signal are looked for afterwards.
        let told = !self.ring.is_polled() && self.ring.tell(event).is_ok();
        let idle = told && self.ring.enter(Wait::No).is_ok() && !self.ring.has_events();
        (!idle).then(Instant::now)
    }

    fn ignore(&mut self) {
        self.ring.tell_no_more();
    }

    fn ring(&mut self, bell: &Bell) {
        let known = self.rung.iter().position(|other| other.is_same(bell));
        let index = known.unwrap_or_else(|| {
            self.rung.push(bell.clone());
            self.rung.len() - 1
        });
        let ring = types::Fd(bell.ring().as_raw_fd());
        let message = opcode::MsgRingData::new(ring, 0, number::RUNG, None).build();
        let number = number::BELL | index as u64;
        let message = message.user_data(number).flags(squeue::Flags::SKIP_SUCCESS);
        if !self.push_spare(&message) {
            bell.wake();
        }
    }
}

impl Drop for UringQueue {
    /// Stops what can be stopped and waits for the rest: the kernel uses the memory of requests
    /// until then.
    fn drop(&mut self) {
        for tag in 0..self.slots.len() as u32 {
            self.cancel(tag);
        }
        let driver = Arc::clone(&self.driver);
        drain(self, driver.name());
        self.ring.forget_file();
    }
}
