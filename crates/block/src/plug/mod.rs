//! The plug: a batch of bios in the submitting thread, sorted and merged before a device sees it.
//!
//! While a plug exists, the bios submitted through it are mapped down to leaves and staged there.
//! They leave as requests, in the order of their sectors and merged with their neighbours, when the
//! plug is flushed: at a threshold, on [`flush`](Plug::flush), when the plug is dropped, and before
//! its thread sleeps in this crate (waiting for a completion, a batch or a buffer). So a thread
//! never waits for bios that it holds back itself, and stacked devices need no plug of their own:
//! bios spread over their legs merge on the legs. At the threshold, requests that are much smaller
//! than they may be stay, to grow with what follows: a thread that writes in several places in turn
//! writes each in large pieces.
//!
//! Order: bios that overlap leave in the order in which they were staged, in different lists of
//! requests, and queues keep the order of overlapping requests. So what one thread submits to one
//! device takes effect as if done in order. A flush bio sends everything staged ahead of it.
//!
//! A plug made while the thread has one for the same device joins it: a function may plug for
//! itself, and its bios still leave with those of its caller.

mod leaf_stage;
mod screen;
mod single;
mod splice;
mod staged;
mod thread;
mod threshold;

pub(crate) use single::submit_directly;
pub use single::{flush, read_buffer, read_exact_at, read_into, write_all_at, write_zeroes_at};
pub use splice::{splice_at, splice_target};
pub use thread::{Plug, flush_thread};
pub use threshold::PlugThreshold;
