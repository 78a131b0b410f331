//! What is in a disk, found by its content: partitions and volume managers, in any order, until there are
//! volumes.
//!
//! [`Layers::look`] is the one place that does it. What is on a device is recognised; if it is something
//! that other devices are made of, these are made and looked at in their turn. Devices that belong together
//! are put together when all have been found, wherever they are.

mod choice;
mod look;
mod node;
mod select;

pub use choice::{Choice, PartitionChoice};
pub use node::{Layers, Node, Place};
pub use select::{Depth, Selected, Unselected};
