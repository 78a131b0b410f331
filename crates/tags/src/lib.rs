//! Hands out small integers, *tags*, to many threads and tasks, makes those wait who find none, and
//! wakes them in batches, so that nobody is lost.

#![forbid(unsafe_code)]

mod batch;
mod bitmap;
mod builder;
mod caller;
mod demand;
mod error;
mod layout;
mod policy;
mod pool;
mod set;
mod shallow;
mod statistics;
#[doc(hidden)]
pub mod sync;
mod tag;
mod user;
mod users;
mod wait;
mod wake_batch;
mod word;

pub use batch::TagBatch;
pub use builder::Builder;
pub use caller::{Attempt, CallbackWait, Caller, GetAsync};
pub use error::ConfigError;
pub use policy::WakePolicy;
pub use set::TagSet;
pub use statistics::Statistics;
pub use tag::Tag;
pub use user::User;
