//! Acceptance of built images by outside judges: every version of `xfs_repair -n` that knows the
//! format, and a comparison of the whole tree through a kernel mount.

#![allow(clippy::unwrap_used, reason = "a failing step fails its test")]

mod archive_writer;
mod archives;
mod bad_input;
mod child;
mod combination;
mod containers;
mod descriptions;
mod determinism;
mod judged;
mod labels;
mod odd;
mod random;
mod scale;
mod shared;
mod sizes;
mod verify;
