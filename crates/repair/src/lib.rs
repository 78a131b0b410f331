//! Damaged XFS volumes put right, in place, with their names, and never half.
//!
//! [`Plan::find`] checks a volume and works out in memory what makes it sound: the superblock from its
//! copies, inodes field by field, maps from reverse mappings, trees and headers of groups from what inodes
//! claim, directories from their blocks and from what their children say of themselves. What it ends with is
//! checked like any volume; if a fault is left, there is no plan. [`Plan::commit`] brings all changes to the
//! device as one transaction of its journal: a cut leaves the volume as it was, or as it is to be.
//!
//! ```no_run
//! use std::sync::Arc;
//! use undercroft_block::FileDevice;
//! use undercroft_repair::Plan;
//!
//! let device = Arc::new(FileDevice::open("disk.img".as_ref(), false)?);
//! let plan = Plan::find(device)?;
//! for action in &plan.actions {
//!     println!("{}: {}", action.place, action.what);
//! }
//! plan.commit(None)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

// Rooms by floors, from the ground up: each uses only those on floors before its own.
mod action;
mod error;

mod legible;

mod scratch;

mod faults;
mod subject;
mod threads;

mod blocks;
mod owners;
mod tree;

mod sizes;

mod chunks;
mod free;
mod inode;
mod superblock;
mod undo;

mod pass;

mod claims;
mod commit;
mod free_inode;

mod journal;

mod group;
mod lost;
mod names;
mod positions;
mod short;

mod structure;

mod writer;

mod plan;
mod upgrade;

pub use action::{Action, Place};
pub use error::RepairError;
pub use plan::Plan;
pub use undo::{UndoFile, UndoState};
pub use upgrade::{Upgrade, Wanted};
