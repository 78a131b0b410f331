//! What tests of several crates and the long runs of `cargo xtask soak` share: loads, models of what
//! they leave, and how it is judged. Judges of others are in `undercroft-judges`.
//!
//! Each crate's tests find theirs in a room of its name, behind a feature of that name, so that none
//! builds what it does not need.
//!
//! Nothing here is part of what the project ships.

#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "read by tests alone")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

pub mod disk;

#[cfg(feature = "nbd")]
pub mod nbd;
#[cfg(feature = "xfs")]
pub mod xfs;

#[cfg(feature = "fs")]
pub mod fs;
#[cfg(feature = "image")]
pub mod image;
