//! Hardware queues: where requests wait for the thread that drives one, what it has in flight, and
//! which of them serves whom.

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
