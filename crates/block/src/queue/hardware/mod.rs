//! Hardware queues: requests that wait for the thread that drives one, its requests in flight, and
//! the CPUs that each serves.

mod deadlines;
mod driving;
mod lookout;
mod mailbox;
mod map;
mod queue;
mod set;

pub(crate) use deadlines::{Deadlines, Expired};
pub(crate) use driving::Driving;
pub(crate) use lookout::Sight;
pub(crate) use mailbox::Mail;
pub(crate) use queue::HardwareQueue;
pub(crate) use set::{HardwareSet, Via};
