//! Threads that begin together.

use std::thread::{Builder, Scope, ScopedJoinHandle};

use parking_lot::{Condvar, Mutex};

use crate::error::LabError;

/// Stack of a thread of a crew in bytes; a thousand of them shall fit.
const STACK_BYTES: usize = 256 << 10;

/// Holds threads back until all are there.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum GateState {
    #[default]
    Closed,
    Open,
    /// There is nothing to begin.
    Cancelled,
}

impl Gate {
    /// Lets all threads begin.
    pub(crate) fn open(&self) {
        self.set(GateState::Open);
    }

    fn set(&self, state: GateState) {
        *self.state.lock() = state;
        self.changed.notify_all();
    }

    /// Waits; false when there is nothing to begin.
    fn pass(&self) -> bool {
        let mut state = self.state.lock();
        self.changed.wait_while(&mut state, |state| *state == GateState::Closed);
        *state == GateState::Open
    }
}

/// Starts `count` threads that wait at `gate` and then run `life` with their index.
///
/// # Errors
/// A thread could not be started; the others end without having begun.
pub(crate) fn muster<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    gate: &'scope Gate,
    count: usize,
    life: impl Fn(usize) -> T + Send + Sync + Copy + 'scope,
) -> Result<Vec<ScopedJoinHandle<'scope, Option<T>>>, LabError> {
    let mut threads = Vec::with_capacity(count);
    for index in 0..count {
        let begin = move || gate.pass().then(|| life(index));
        match Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, begin) {
            Ok(thread) => threads.push(thread),
            Err(source) => {
                gate.set(GateState::Cancelled);
                return Err(LabError::Thread { index, count, source });
            }
        }
    }
    Ok(threads)
}

/// Waits for the threads of a crew that was let through its gate; what each returned, in order.
pub(crate) fn dismiss<T>(threads: Vec<ScopedJoinHandle<'_, Option<T>>>) -> Vec<T> {
    let join = |thread: ScopedJoinHandle<'_, Option<T>>| match thread.join() {
        Ok(result) => result,
        // A defect of the experiment or of the measured code; the panic goes on in this thread.
        Err(panic) => std::panic::resume_unwind(panic),
    };
    threads.into_iter().filter_map(join).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn no_thread_begins_before_the_gate_opens() {
        let begun = AtomicUsize::new(0);
        let gate = Gate::default();
        std::thread::scope(|scope| {
            let begun = &begun;
            let life = |index| {
                begun.fetch_add(1, Ordering::SeqCst);
                index
            };
            let threads = muster(scope, &gate, 5, life).unwrap();
            assert_eq!(begun.load(Ordering::SeqCst), 0);
            gate.open();
            assert_eq!(dismiss(threads), [0, 1, 2, 3, 4]);
        });
        assert_eq!(begun.load(Ordering::SeqCst), 5);
    }

    #[test]
    fn a_cancelled_crew_does_nothing() {
        let gate = Gate::default();
        std::thread::scope(|scope| {
            let threads = muster(scope, &gate, 2, |index| index).unwrap();
            gate.set(GateState::Cancelled);
            assert!(dismiss(threads).is_empty());
        });
    }
}
