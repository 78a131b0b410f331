//! Disks in files of a format of their own, and disks of which others are made, as block devices.
//!
//! [`Layers`] finds what is in a disk by its content: partitions, volumes of LVM, arrays of RAID, containers of
//! LUKS, in any order.
//!
//! [`open`] looks at the first bytes of a file. If they are those of a format that is known, the disk in
//! it is a [`BlockDevice`] with threads of its own, so that volumes, partitions and stacks can be on it as
//! on any other. Known is qcow2, versions 2 and 3, read and written by the crate `imago`. VMDK, VHD, VHDX and
//! VDI are only read, and so are raw disks compressed with gzip, xz or zstd. A file that is to be changed is held as [`FileDevice`](undercroft_block::FileDevice)
//! holds it.
//!
//! An image may name other files: one that it has the changes to, or those with its data. Such files are not
//! opened unasked, since an image may come from anyone; with
//! [`DiskFormat::Backed`](undercroft_block::stack::DiskFormat::Backed) they are, if they are in the directory of
//! the image or below that.
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

// Files by floors, from the ground up.
mod disk;
mod error;
mod field;
mod layer_error;

mod blocks;
mod guarded;
mod inflate;
mod neighbours;
mod note;
mod obstacle;
mod reader;

mod formats;
mod header;
mod packed;

mod snapshot;

mod counts;

mod chain;

mod driver;

mod open;

pub mod luks;
pub mod lvm;
pub mod raid;

pub mod layers;

pub use error::ContainerError;
pub use layer_error::LayerError;
pub use note::Note;
pub use open::{format_of, open, register, snapshots_of};
pub use snapshot::Snapshot;

#[cfg(doc)]
use layers::Layers;
#[cfg(doc)]
use undercroft_block::BlockDevice;
