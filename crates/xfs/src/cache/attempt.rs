//! Operations that go as far as the metadata in memory lets them.
//!
//! A thread that [attempts](Attempts) an operation does not wait for metadata: the first buffer
//! that is missing is on its way then, and its reader gets [`Error::NotInMemory`]. When it has
//! arrived the operation is attempted again from its start, and finds what the attempts before it
//! brought. That is cheap, since operations that only read leave nothing to be undone, and few of
//! them need more than three or four buffers one after the other.
//!
//! Tasks that need the same buffer wait for one read of it. A buffer that was begun ahead is not
//! read again either. One that is damaged, or cannot be read, is so in all later attempts of an
//! operation, which may go on elsewhere.

use super::buffer::{BufferRef, MetaBuffer};
use super::table::Cache;
use crate::address::BufferAddress;
use crate::error::Error;
use crate::format::BufferKind;
use crate::read_ahead::{AwaitedRead, ReadState};
use parking_lot::Mutex;
use std::cell::RefCell;
use std::sync::Arc;
use std::task::{Context, Poll};
use undercroft_block::Plug;

thread_local! {
    /// What the thread attempts now.
    static ATTEMPT: RefCell<Option<Attempt>> = const { RefCell::new(None) };
}

#[derive(Debug)]
struct Attempt {
    /// What the attempts before lacked: the last of it, and what is of no use.
    arrived: Vec<Arc<AwaitedRead>>,
    /// The first buffer that was missing.
    missing: Option<Arc<AwaitedRead>>,
    /// It waits all the same from now on.
    waits: bool,
}

/// What an operation met in its attempts.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    arrived: Vec<Arc<AwaitedRead>>,
}

impl Attempts {
    /// Ready when there is no buffer to be waited for.
    pub(crate) fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        self.arrived.last().map_or(Poll::Ready(()), |read| read.poll(context))
    }

    /// Runs the operation without waiting for metadata. `None` if a buffer is missing, which is on
    /// its way then; what the operation returned means nothing.
    pub(crate) fn attempt<R>(&mut self, operation: impl FnOnce() -> R) -> Option<R> {
        /// Ends the attempt, also when the operation panics.
        struct Outer(Option<Attempt>);
        impl Drop for Outer {
            fn drop(&mut self) {
                ATTEMPT.set(self.0.take());
            }
        }
        let arrived = std::mem::take(&mut self.arrived);
        let new = Attempt { arrived, missing: None, waits: false };
        let outer = Outer(ATTEMPT.replace(Some(new)));
        let result = operation();
        let ended = ATTEMPT.take();
        drop(outer);
        let Some(Attempt { mut arrived, missing: Some(missing), .. }) = ended else {
            return Some(result);
        };
        arrived.retain(|read| read.is_useless());
        arrived.push(missing);
        self.arrived = arrived;
        None
    }
}

/// Has the rest of an attempt wait for what it reads: it changes something, and must not end in the
/// middle of that.
pub(crate) fn wait_from_here() {
    ATTEMPT.with_borrow_mut(|attempt| {
        if let Some(attempt) = attempt {
            attempt.waits = true;
        }
    });
}

impl Cache {
    /// In an [attempt](Attempts::attempt): the buffer if it has arrived; else it is on its way. `None` to a caller
    /// that waits.
    pub(super) fn read_in_attempt(
        &self,
        address: &BufferAddress,
        kind: BufferKind,
        evictions: u64,
    ) -> Option<Result<BufferRef, Error>> {
        let arrived = ATTEMPT.with_borrow_mut(|attempt| {
            let attempt = attempt.as_mut().filter(|attempt| !attempt.waits)?;
            Some(attempt.arrived.iter().rfind(|read| read.is_of(self.place(), address)).cloned())
        })?;
        let is_again = arrived.is_some();
        if let Some(found) = arrived.and_then(|read| self.take_arrived(&read, kind)) {
            return Some(found);
        }
        ATTEMPT.with_borrow_mut(|attempt| {
            let attempt = attempt.as_mut()?;
            let begin = || self.begin_awaited(address, evictions, is_again);
            attempt.missing.get_or_insert_with(begin);
            Some(Err(Error::NotInMemory))
        })
    }

    /// The buffer of a read that has ended; `None` if it is to be read again.
    fn take_arrived(
        &self,
        read: &AwaitedRead,
        kind: BufferKind,
    ) -> Option<Result<BufferRef, Error>> {
        let mut state = read.state.lock();
        let bytes = match std::mem::replace(&mut *state, ReadState::InMemory) {
            ReadState::OnItsWay(arrival) => match arrival.wait(read.address.len()) {
                Ok(bytes) => bytes,
                Err(_) if read.was_ahead => return None,
                Err(error) => {
                    *state = ReadState::Failed(error.clone());
                    return Some(Err(error.into()));
                }
            },
            ReadState::Damaged(bytes) => bytes,
            ReadState::Failed(error) => {
                *state = ReadState::Failed(error.clone());
                return Some(Err(error.into()));
            }
            // It may have gone since.
            ReadState::InMemory => return None,
        };
        let address = &read.address;
        match self.verify(address, kind, &bytes) {
            Ok(kind) => {
                let buffer = MetaBuffer::new(address.clone(), kind, bytes);
                self.keep_and_shrink(buffer, read.evictions).map(Ok)
            }
            Err(error) => {
                // It may be older than what the cache had since.
                let found = self.find(address.first());
                let is_new = matches!(found, Err(evictions) if evictions == read.evictions);
                is_new.then(|| {
                    *state = ReadState::Damaged(bytes);
                    Err(error)
                })
            }
        }
    }

    /// Tells this cache from others.
    fn place(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Begins the read of a buffer, or joins one that is under way. One that is read again is read for
    /// itself: the operation may begin it ahead in each of its attempts, and would never meet its
    /// error.
    fn begin_awaited(
        &self,
        address: &BufferAddress,
        evictions: u64,
        is_again: bool,
    ) -> Arc<AwaitedRead> {
        if let Some(read) =
            self.ahead.awaited().find(address).filter(|read| !(is_again && read.was_ahead))
        {
            return read;
        }
        let (ahead, around) = if is_again {
            self.ahead.forget(address);
            (None, None)
        } else {
            self.begun_now(address)
        };
        let (evictions, was_ahead, arrival, bios) = match ahead {
            Some((arrival, evictions)) => (evictions, true, arrival, around.into_iter().collect()),
            None => {
                let (bios, arrival) = self.ahead.reads_of(address);
                (evictions, false, arrival, bios)
            }
        };
        let (address, cache) = (address.clone(), self.place());
        let state = Mutex::new(ReadState::OnItsWay(arrival));
        let read = Arc::new(AwaitedRead { address, cache, evictions, was_ahead, state });
        self.ahead.awaited().add(&read);
        let plug = Plug::new(&self.device);
        bios.into_iter().for_each(|bio| plug.submit(bio));
        // Not beside those of other tasks, whose errors it would share.
        plug.flush();
        read
    }
}
