//! How a thread sleeps that drives several queues of its own: for all of them at once.
//!
//! The thread has one event descriptor. A ring of its alarm makes it readable, and so does the
//! kernel when something ends in one of its rings, as long as the thread says that it sleeps. (To
//! poll the descriptors of the rings is not enough: where completions are run by the thread that
//! asks for them, such a poll can sleep through them, seen on Linux 6.18.)

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::alarm::Alarm;
use super::own_queue::OwnQueue;
use super::wakeup::Wakeup;

/// Sleeps until something happens in one of `queues`, which are busy and were just looked at, or
/// until `alarm` is rung. May return early for no reason.
pub(super) fn sleep(queues: &[Rc<dyn OwnQueue>], alarm: &Arc<Alarm>) {
    let Some(wakeup) = wakeup() else {
        // No descriptor is left in this process: the queues are looked at again and again.
        return std::thread::yield_now();
    };
    let mut due: Option<Instant> = None;
    let mut asleep = 0;
    for queue in queues {
        let Ok(time) = queue.fall_asleep(alarm, wakeup.event()) else { break };
        due = due.into_iter().chain(time).min();
        asleep += 1;
    }
    if asleep == queues.len() {
        wait(&wakeup, due, alarm);
    }
    queues[..asleep].iter().for_each(|queue| queue.is_awake(alarm));
}

/// Sleeps until the descriptor is readable, or until the time `due`.
fn wait(wakeup: &Arc<Wakeup>, due: Option<Instant>, alarm: &Alarm) {
    alarm.sleep_in(Arc::clone(wakeup).into(), || {
        if wakeup.fall_asleep() {
            let left = due.map(|due| due.saturating_duration_since(Instant::now()));
            // A time too far for the system is none.
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            let event = PollFd::from_borrowed_fd(wakeup.event(), PollFlags::IN);
            // A signal is as good as a wake-up.
            let _ = poll(&mut [event], left.as_ref());
        }
        wakeup.awake();
    });
    wakeup.reset();
}

/// The events that end the sleep of this thread.
fn wakeup() -> Option<Arc<Wakeup>> {
    thread_local! {
        static WAKEUP: RefCell<Option<Arc<Wakeup>>> = const { RefCell::new(None) };
    }
    let known = WAKEUP.try_with(|known| {
        let mut known = known.borrow_mut();
        if known.is_none() {
            *known = Wakeup::new().ok();
        }
        known.clone()
    });
    known.ok().flatten()
}
