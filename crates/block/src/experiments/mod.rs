//! For experiments: on which CPUs requests are started and answered, and requests whose order is left
//! to their submitters.
//!
//! Devices of other programs need nothing of this: their requests are started where they are
//! submitted, answered where they end, and keep their order. What a queue does for a [`Placement`] is
//! in `queue/hardware/placement.rs` and `queue/leaf/placed_answers.rs`.

mod overlap_order;
mod placement;
pub(crate) mod redirect;

pub use overlap_order::OverlapOrder;
pub use placement::{CompletionPlace, Placement, QueuePlace, Redirect, RqAffinity};
