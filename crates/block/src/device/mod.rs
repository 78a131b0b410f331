//! The waist of the stack: the trait of all devices, and its contract.
//!
//! A device is one of two things. A **leaf** takes requests into a [queue](RequestQueue) over a
//! driver. A **stacked** device takes bios one at a time and [maps](Stacked::map) them to devices
//! below, until only bios of leaves remain. Mapping never recurses: the bios of all levels are on
//! one work list of the submitting thread.

mod admit;
mod block_device;
pub(crate) mod claim;
mod request_queue;
mod reservation;
mod route;
mod taken_sectors;

pub(crate) use block_device::visit_leaves;
pub use block_device::{Below, BlockDevice, Layer, Part, Stacked};
pub use claim::Claim;
pub use request_queue::RequestQueue;
pub use reservation::Reserved;
pub(crate) use reservation::shared_leaf;
pub(crate) use route::route;
pub use taken_sectors::Reservations;
