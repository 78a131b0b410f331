//! Hardware queues: requests that wait for the thread that drives one, its requests in flight, and
//! the CPUs that each serves.

mod deadlines;
mod driving;
mod mailbox;
mod map;
mod placement;
mod queue;
mod set;
mod watchdog_wait;

pub(crate) use deadlines::{Deadlines, Expired};
pub(crate) use driving::Driving;
pub(crate) use mailbox::Mail;
pub(crate) use queue::HardwareQueue;
pub(crate) use set::{HardwareSet, Via};
pub(crate) use watchdog_wait::Due;
