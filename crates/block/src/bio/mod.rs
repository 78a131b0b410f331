//! A bio: one operation a caller asks for, on consecutive sectors, with the memory it uses.
//!
//! The bio owns its memory while it is in flight: a write holds shared read-only segments, a read
//! holds its buffer alone and gives it back in the [`Completion`]. Exactly one completion reaches
//! the receiver of every bio. A bio that is dropped unanswered completes with
//! [`Reason::Abandoned`].
//!
//! A bio without a receiver loses its error (debug builds panic then), so every bio that can fail
//! needs one of [`on_complete`](Bio::on_complete), [`in_batch`](Bio::in_batch),
//! [`waited`](Bio::waited), [`future`](Bio::future), [`in_queue`](Bio::in_queue).

mod batch;
mod body;
mod callback;
mod completion;
mod completion_queue;
mod end;
mod error;
mod file_range;
mod flags;
mod future;
mod intercept;
mod join;
mod operation;
mod receivers;
mod shape;
mod shared_read;
mod splice;
mod split;
mod waiter;

pub use batch::{Batch, FirstErrorHandler};
pub use body::Bio;
pub use completion::Completion;
pub use completion_queue::{CompletionQueue, Finished};
pub use error::{BlockError, FailedBio, Reason};
pub use file_range::FileRange;
pub use future::CompletionFuture;
pub use operation::Operation;
pub use shared_read::SharedRead;
pub use splice::Splice;
pub use waiter::Waiter;
