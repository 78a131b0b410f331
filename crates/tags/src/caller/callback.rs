//! Dispatchers that wait: they cannot sleep, and are called back.

use std::fmt;
use std::sync::Arc;

use super::Caller;
use crate::membership::Membership;
use crate::place::Place;
use crate::tag::Tag;
use crate::wait::{Callback, Signal};

/// Outcome of [`Caller::get_or_call`] and [`CallbackWait::retry`].
#[derive(Debug)]
#[must_use = "a tag that is forgotten stays busy"]
pub enum Attempt {
    /// A tag.
    Tag(Tag),
    /// None for now; the callback will be called.
    Waiting(CallbackWait),
}

/// A dispatcher's place in the wait queue. Dropping it gives the place up; if the callback has been
/// called since the last try, the wake-up goes to the next waiter.
#[must_use = "dropping it ends the wait"]
pub struct CallbackWait {
    place: Place,
    callback: Callback,
    /// Keeps the user's number its own while it stands in the queue.
    _user: Option<Arc<Membership>>,
}

impl Caller {
    /// A tag, or a place in the wait queue. For dispatchers, which have other work and must not
    /// sleep.
    ///
    /// `callback` is called, once for each try that failed, when there may be a tag: by a thread
    /// that puts, without locks held, and possibly before this function returns. It should only
    /// cause a call of [`CallbackWait::retry`] soon (or drop the [`CallbackWait`]). Until then the
    /// wake-up is this waiter's, and others may sleep beside a free tag.
    ///
    /// ```
    /// # use std::sync::{Arc, atomic::{AtomicBool, Ordering}};
    /// # use undercroft_tags::{Attempt, TagSet};
    /// let set = TagSet::new(1)?;
    /// let tag = set.caller().get_blocking();
    ///
    /// let run_again = Arc::new(AtomicBool::new(false));
    /// let flag = Arc::clone(&run_again);
    /// let mut caller = set.caller();
    /// let attempt = caller.get_or_call(Arc::new(move || flag.store(true, Ordering::Release)));
    /// let Attempt::Waiting(wait) = attempt else { panic!("the only tag is taken") };
    ///
    /// set.put(tag);
    /// assert!(run_again.load(Ordering::Acquire));
    /// assert!(matches!(wait.retry(&mut caller), Attempt::Tag(_)));
    /// # Ok::<(), undercroft_tags::ConfigError>(())
    /// ```
    pub fn get_or_call(&mut self, callback: Arc<dyn Fn() + Send + Sync>) -> Attempt {
        if let Some(tag) = self.try_get() {
            return Attempt::Tag(tag);
        }
        let place = self.publish(Signal::Callback(Arc::clone(&callback)));
        if let Some(tag) = self.second_look() {
            return Attempt::Tag(self.end_wait(place, tag));
        }
        self.count_sleep();
        Attempt::Waiting(CallbackWait { place, callback, _user: self.user.clone() })
    }
}

impl CallbackWait {
    /// Tries again, with the caller that waits. Without a tag it waits on at its old place, with the
    /// same callback; before the callback was called, it only tries.
    pub fn retry(mut self, caller: &mut Caller) -> Attempt {
        let woken = self.place.is_woken();
        let tag = if woken { caller.answer(&mut self.place) } else { caller.search() };
        if let Some(tag) = tag {
            return Attempt::Tag(caller.end_wait(self.place, tag));
        }
        if woken {
            self.place.publish_again(Signal::Callback(Arc::clone(&self.callback)));
            if let Some(tag) = caller.second_look() {
                return Attempt::Tag(caller.end_wait(self.place, tag));
            }
            self.place.sleep_again();
            caller.count_sleep();
        }
        Attempt::Waiting(self)
    }

    /// Whether the callback has been called, or is about to be, since the last try.
    #[must_use]
    pub fn is_woken(&self) -> bool {
        self.place.is_woken()
    }
}

impl fmt::Debug for CallbackWait {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("CallbackWait").field("place", &self.place).finish_non_exhaustive()
    }
}
