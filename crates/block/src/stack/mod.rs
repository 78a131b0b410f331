//! Devices made of devices: [`Linear`], [`Stripe`], [`Mirror`], [`Delay`], and their
//! [`Description`] in words; [`Overlay`], a device with changes that it never sees; [`Gaps`], one of which
//! parts are lost; [`Patchwork`], one of which parts are those of another; and [`Together`], disks that are
//! something by what is on them.
//!
//! They map bios and hold no queue: a bio that one leg can serve is moved to it without an
//! allocation, another is cut into parts that answer it together. What follows each other on a leg
//! merges there, since plugs stage by leaf.

mod bytes;
mod delay;
mod description;
mod error;
mod gaps;
mod legs;
mod linear;
mod mirror;
mod overlay;
mod patchwork;
mod report;
mod stripe;
mod together;
pub(crate) mod window;

pub use delay::{Delay, Slowness};
pub use description::{
    Allotment, Description, DescriptionError, DiskFormat, FileLeaf, LeafDescription, LeafOptions,
    MAX_DEPTH, MirrorLeg, NetworkKind, NetworkLeaf, NoRoom, OpenContainer, OpenLeaf, OpenNetwork,
    StackObserver, register_containers, register_network,
};
pub use error::StackError;
pub use gaps::Gaps;
pub use linear::Linear;
pub use mirror::{LegState, LegStatus, Mirror, MirrorEvent, ResyncError, ResyncProgress};
pub use overlay::Overlay;
pub use patchwork::{Patch, Patchwork};
pub use report::DeviceReport;
pub use stripe::Stripe;
pub use together::Together;
