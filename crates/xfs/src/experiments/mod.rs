//! For experiments: searches in the place of near mode.
//!
//! Nothing else uses them, and nothing of them is stored: the disk looks the same to all. A volume has a
//! search if [`Volume::set_near_search`](crate::Volume::set_near_search) gave it one; what the
//! allocator does then is in `alloc/experiment.rs`.

#[cfg(feature = "internals")]
mod free_index;
#[cfg(feature = "internals")]
mod indexed;
mod near_search;
#[cfg(feature = "internals")]
mod variant;

pub use near_search::{NearSearch, NearSteps};
#[cfg(feature = "internals")]
pub use variant::Variant;
