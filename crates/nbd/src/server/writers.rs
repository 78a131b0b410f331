//! One writer of an export at a time: a program that says which one it is, or all the others together.
//!
//! A program that keeps its own copy of what it changes, as a file system does, names itself beside the
//! contexts that it chooses ([`WRITER`](crate::protocol::WRITER)), and all its connections say the same.
//! While they live, nothing else changes the export. Clients that do not name themselves keep to what
//! several connections promise, and are one writer from their first change to their last connection.
//! The writer holds the device as well, so that nothing else in this program changes a volume there, nor
//! the writer of another export of the same sectors.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use undercroft_block::{BlockDevice, Reserved};

/// Programs that are remembered after others have followed them.
const PAST: usize = 256;

/// Connections that may change an export beside each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Party {
    /// Those of the program that calls itself so.
    Program(String),
    /// Those that do not name themselves.
    Unnamed,
}

/// Who changes an export.
#[derive(Debug)]
pub(crate) struct Writers {
    device: Arc<dyn BlockDevice>,
    state: Mutex<State>,
    left: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The party that changes the export, or did last.
    party: Option<Party>,
    /// Its connections.
    connections: usize,
    /// The device, while there are any.
    reserved: Option<Reserved>,
    /// Programs that others have followed. What they have not flushed is older than what is there.
    past: VecDeque<String>,
}

/// Why an export cannot be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Another party changes it.
    Taken,
    /// The program of the server changes it, or a client of another export of it.
    Held,
    /// Another party has changed it since this one did.
    Past,
}

impl Refusal {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Taken => {
                "another client changes it: end that first, open it for reading alone, or have the \
                 server share it (undercroft serve --shared)"
            }
            Self::Held => {
                "the server itself, or a client of another export, changes it: end that first"
            }
            Self::Past => "another client has changed it since this one lost its connection",
        }
    }
}

impl Writers {
    /// Of an export of `device`.
    pub(crate) fn new(device: Arc<dyn BlockDevice>) -> Self {
        Self { device, state: Mutex::default(), left: Condvar::new() }
    }

    /// Counts a connection of `party` among those that change the export; waits `patience` for those
    /// of another to end.
    pub(crate) fn join(&self, party: &Party, patience: Duration) -> Result<(), Refusal> {
        let until = Instant::now() + patience;
        let mut state = self.state.lock();
        while state.connections > 0 && state.party.as_ref() != Some(party) {
            if self.left.wait_until(&mut state, until).timed_out() {
                return Err(Refusal::Taken);
            }
        }
        if let Party::Program(name) = party
            && state.past.contains(name)
        {
            return Err(Refusal::Past);
        }
        if state.reserved.is_none() {
            let left = until.saturating_duration_since(Instant::now());
            let reserved = Reserved::within(Arc::clone(&self.device), left);
            state.reserved = Some(reserved.map_err(|_| Refusal::Held)?);
        }
        if state.party.as_ref() != Some(party)
            && let Some(Party::Program(name)) = state.party.replace(party.clone())
        {
            state.past.push_back(name);
            if state.past.len() > PAST {
                state.past.pop_front();
            }
        }
        state.connections += 1;
        Ok(())
    }

    pub(crate) fn leave(&self) {
        let mut state = self.state.lock();
        state.connections -= 1;
        if state.connections == 0 {
            state.reserved = None;
        }
        self.left.notify_all();
    }

    /// Whether a program changes the export that is not `party`.
    pub(crate) fn keep_out(&self, party: &Party) -> bool {
        let state = self.state.lock();
        let other = state.party.as_ref().is_some_and(|holder| holder != party);
        other && state.connections > 0 && matches!(state.party, Some(Party::Program(_)))
    }
}
