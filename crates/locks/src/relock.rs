//! Locks that are taken again for a guard that set them down.
//!
//! `MutexGuard::unlocked(&mut guard, work)` and its like unlock, work, and lock again when the work
//! is done or panics. A panic out of that second lock would leave the guard to a caller that may
//! catch the panic, and then reads and unlocks a lock that it does not hold. So there a violation
//! has to end the process. `lock_api` does not say which call it is, but the place of the caller
//! does: all its functions for users pass on their line, while this call comes from its own. (So
//! does a call through a function pointer, as in `map(OrderedMutex::lock)`: that ends the process,
//! too.)

use std::panic::Location;
use std::sync::OnceLock;
use std::thread;

use crate::held::find;
use crate::{MutexGuard, OrderedMutex, OrderedRwLock, RwLockReadGuard};

/// The files of `lock_api` in which guards take their locks again.
static FILES: OnceLock<Option<[&str; 2]>> = OnceLock::new();

/// Whether a lock that is wanted there may be wanted for a guard that exists.
pub(crate) fn is_at(place: &Location<'_>) -> bool {
    // If they are not known, any place may be one.
    FILES.get_or_init(ask).is_none_or(|files| files.contains(&place.file()))
}

/// Finds out by doing it. In a thread of its own: this one holds locks already.
fn ask() -> Option<[&'static str; 2]> {
    thread::Builder::new().spawn(files).ok()?.join().ok()
}

fn files() -> [&'static str; 2] {
    let file = || find(|lock| Some(lock.place.file())).expect("the guard is held");
    let mutex = OrderedMutex::<_, 0>::new(());
    let mut guard = mutex.lock();
    MutexGuard::unlocked(&mut guard, || ());
    let of_mutex = file();
    drop(guard);
    let lock = OrderedRwLock::<_, 0>::new(());
    let mut guard = lock.read();
    RwLockReadGuard::unlocked(&mut guard, || ());
    [of_mutex, file()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_taken_again_is_told_from_one_taken_first() {
        if !crate::CHECKED {
            return;
        }
        let mutex = OrderedMutex::<_, 0>::new(());
        let guard = mutex.lock();
        assert!(!is_at(find(|lock| Some(lock.place)).expect("the guard is held")));
        drop(guard);
        let files = FILES.get().expect("asked for").expect("found out");
        assert!(files[0].ends_with("mutex.rs") && files[1].ends_with("rwlock.rs"), "{files:?}");
    }
}
