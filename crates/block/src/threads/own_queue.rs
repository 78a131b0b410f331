//! A queue that a thread drives itself, as its sleep sees it.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Instant;

use super::alarm::Alarm;

/// A queue that this thread drives itself: what ends in it is collected by the thread, also instead
/// of sleeping.
pub(crate) trait OwnQueue {
    /// Whether something submitted by this thread has not ended.
    fn is_busy(&self) -> bool;

    /// Collects requests that have ended and starts waiting ones. Sleeps until one of them happens
    /// or `alarm` is rung, if `limit` allows it. May return early for no reason.
    fn step(&self, alarm: &Arc<Alarm>, limit: WaitLimit);

    /// Announces that this thread is going to sleep for several queues, until `event` is readable or
    /// the time has come that this returns, if it does. An error, if there is something to do.
    fn fall_asleep(
        &self,
        alarm: &Arc<Alarm>,
        event: BorrowedFd<'_>,
    ) -> Result<Option<Instant>, Busy>;

    /// Takes the announcement back.
    fn is_awake(&self, alarm: &Arc<Alarm>);
}

/// There is something to do in a queue.
pub(crate) struct Busy;

/// How long a step may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitLimit {
    /// It does not wait.
    None,
    /// As long as it takes.
    Unlimited,
}
