//! Linux RAID: members recognised by their superblocks, arrays of the levels 0, 1, 10 and linear as
//! devices.
//!
//! Superblocks are never written. An array of which all members are there and the same is read and written;
//! one that can be read without some of them is only read.
//!
//! The formats are known from the page "RAID superblock formats" of the Linux RAID wiki, from md(4), and
//! from arrays that mdadm and a kernel have made.

mod array;
mod superblock;
mod version0;
mod version1;

pub use array::{Array, Member, arrays};
