//! LVM2: physical volumes recognised, their metadata read, logical volumes as devices.
//!
//! Metadata is never written. It is text, in a ring on each physical volume (`physical`), of sections and
//! values (`text`); the section of a volume group says which extents are which logical volume
//! (`group`), and these become windows on the physical volumes, linear, in stripes or mirrored
//! (`assemble`).
//!
//! The format is known from the description that Joachim Metz has published with libvslvm, from the
//! manual pages of LVM and from experiments with its programs.

mod assemble;
mod checks;
mod group;
mod members;
mod mirror;
mod physical;
mod segment;
mod text;

pub use members::{LogicalVolume, PhysicalVolume, VolumeGroup, groups};
