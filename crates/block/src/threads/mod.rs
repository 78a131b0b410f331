//! Threads: how they sleep and are woken, the queues they drive, the bios they hold back, time, and
//! the shared state that models check.

mod alarm;
pub(crate) mod clock;
mod event;
mod own_queue;
pub(crate) mod own_queues;
pub(crate) mod plugged;
mod push_list;
pub(crate) mod role;
mod several;
pub(crate) mod sync;
pub(crate) mod timer;
mod wakeup;

pub(crate) use alarm::Alarm;
pub(crate) use event::Event;
pub(crate) use own_queue::{Busy, OwnQueue, WaitLimit};
pub(crate) use push_list::PushList;
pub(crate) use wakeup::Wakeup;
