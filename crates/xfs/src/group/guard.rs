//! The lock of a group, and the proof of holding it.

use super::base::GroupBase;
use super::state::GroupState;
use super::summary::GroupSummary;
use crate::busy::BusyExtents;
use crate::error::Error;
use crate::rank;
use crate::units::AgNumber;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use undercroft_locks::{ArcMutexGuard, OrderedMutex, with_key};

type HeldState = ArcMutexGuard<Option<GroupState>, { rank::GROUP }>;

/// How long a thread looks for a group to become free before it sleeps: a transaction holds one for
/// some ten microseconds, and to sleep and be woken costs both threads about as much.
const SPIN: Duration = Duration::from_micros(20);

/// Where a volume keeps the state of a group, behind the group's lock; empty until it is first
/// locked.
#[derive(Debug, Default)]
pub(super) struct GroupLock {
    state: Arc<OrderedMutex<Option<GroupState>, { rank::GROUP }>>,
    /// Threads that wait for it, spinning or asleep.
    waiting: AtomicU32,
}

impl GroupLock {
    /// Takes the lock. Only the first waiter spins. Two threads that take turns then never sleep,
    /// such as one that makes files and the journal's, which gives their data blocks. More than two
    /// do not keep the processors from threads that could go on.
    fn acquire(&self) -> HeldState {
        if let Some(held) = self.state.try_lock_arc() {
            return held;
        }
        // The count is a hint: nothing is ordered by it.
        let others = self.waiting.fetch_add(1, Ordering::Relaxed);
        let held = if others == 0 { self.spin() } else { None };
        let held = held.unwrap_or_else(|| self.state.lock_arc());
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        held
    }

    /// Takes the lock if it becomes free soon.
    fn spin(&self) -> Option<HeldState> {
        let begun = Instant::now();
        while begun.elapsed() < SPIN {
            for _ in 0..8 {
                std::hint::spin_loop();
            }
            if !self.state.is_locked()
                && let Some(held) = self.state.try_lock_arc()
            {
                return Some(held);
            }
        }
        None
    }
}

/// The state that a volume keeps of one group.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// Its lock, and the state that it guards.
    lock: GroupLock,
    /// The figures that can be read without it.
    pub(crate) summary: Arc<GroupSummary>,
    /// Busy extents, which have a lock of their own.
    pub(crate) busy: Arc<BusyExtents>,
}

/// A locked group.
pub(crate) struct GroupGuard {
    /// Never empty: the constructor loads the state.
    state: HeldState,
}

impl GroupGuard {
    /// Locks a group, reading its headers at first use; `None` if another thread holds it and the
    /// caller does not wait.
    ///
    /// # Errors
    /// A header is damaged, or the device failed.
    pub(crate) fn lock(
        base: &GroupBase<'_>,
        group: &Group,
        number: AgNumber,
        wait: bool,
    ) -> Result<Option<Self>, Error> {
        let key = number.0.into();
        let held = with_key(key, || match wait {
            true => Some(group.lock.acquire()),
            false => group.lock.state.try_lock_arc(),
        });
        let Some(mut state) = held else {
            return Ok(None);
        };
        if state.is_none() {
            *state = Some(GroupState::load(base, number, &group.busy, &group.summary)?);
        }
        Ok(Some(Self { state }))
    }

    /// The headers of the group.
    pub(crate) fn state(&mut self) -> &mut GroupState {
        self.state.as_mut().expect("a guard is made only once the state is loaded")
    }
}

impl fmt::Debug for GroupGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupGuard").field("state", &*self.state).finish()
    }
}
