//! Threads that wait.

use std::time::{Duration, Instant};

use super::Caller;
use crate::sync::Sleeper;
use crate::tag::Tag;
use crate::wait::Signal;

impl Caller {
    /// A tag; sleeps until there is one.
    ///
    /// ```
    /// # use undercroft_tags::TagSet;
    /// let set = TagSet::new(1)?;
    /// let tag = set.caller().get_blocking();
    /// std::thread::scope(|scope| {
    ///     let waiter = scope.spawn(|| set.caller().get_blocking());
    ///     set.put(tag);
    ///     assert_eq!(waiter.join().unwrap(), tag);
    /// });
    /// # Ok::<(), undercroft_tags::ConfigError>(())
    /// ```
    ///
    /// The thread parks ([`std::thread::park`]) and may use up an unpark meant for code around it.
    pub fn get_blocking(&mut self) -> Tag {
        self.get_until(None).expect("a wait without a deadline ends with a tag")
    }

    /// A tag, or `None` when there was none for so long.
    pub fn get_timeout(&mut self, timeout: Duration) -> Option<Tag> {
        if let Some(tag) = self.try_get() {
            return Some(tag);
        }
        // A deadline beyond the end of the clock is none.
        self.get_until(Instant::now().checked_add(timeout))
    }

    fn get_until(&mut self, deadline: Option<Instant>) -> Option<Tag> {
        if let Some(tag) = self.try_get() {
            return Some(tag);
        }
        let sleeper = Sleeper::current();
        let mut place = self.publish(Signal::Thread(sleeper.wake()));
        let mut woken_before = false;
        loop {
            if let Some(tag) = self.second_look() {
                return Some(self.end_wait(place, tag));
            }
            if woken_before {
                place.sleep_again();
            }
            self.count_sleep();
            while !place.is_woken() {
                if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                    return None;
                }
                sleeper.sleep(deadline);
            }
            if let Some(tag) = self.answer(&mut place) {
                return Some(self.end_wait(place, tag));
            }
            woken_before = true;
            place.publish_again(Signal::Thread(sleeper.wake()));
        }
    }
}
