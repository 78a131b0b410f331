//! The driver under a leaf device: it moves bytes, one driver queue at a time.
//!
//! ```text
//! queue layer:  requests with tags --start-->  driver queue  --completions-->  bios answered
//!                                   <--reap--
//! ```
//!
//! A driver knows nothing of bios, order, tags in use, waiting or threads. It is handed requests
//! that lie inside the device, are aligned as it asked, and do not conflict with each other, and
//! it gives each back once, in [`Completions`], with how it ended. A driver queue is used by the
//! one thread that opened it; the requests may go to threads of the driver, which hand them in
//! through a [`Completer`]. A request that is dropped instead fails with
//! [`Reason::Dropped`](crate::Reason::Dropped). `examples/driver.rs` is a whole driver.
//!
//! A driver that has a request longer than the device allows
//! ([`QueueOptions::time_limit`](crate::QueueOptions::time_limit)) is asked to
//! [`cancel`](DriverQueue::cancel) it and may keep it as long as it likes: tag and memory stay the
//! request's until it is handed in or dropped, and how it ended is not heard any more.

mod bell;
mod completer;
mod completions;
mod contract;
mod drain;
mod open_error;
mod synchronous;
mod taken;

pub use bell::Bell;
pub use completer::Completer;
pub use completions::Completions;
pub use contract::{Driver, DriverQueue, QueueContext, Wait};
pub(crate) use drain::drain;
pub use open_error::OpenError;
pub use synchronous::Synchronous;
pub use taken::{Holder, Taken};
