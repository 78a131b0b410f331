//! Acceptance of built images by outside judges: every version of `xfs_repair -n` that knows the
//! format, and a comparison of the whole tree through a kernel mount.

mod archive_writer;
mod archives;
mod bad_input;
mod child;
mod containers;
mod descriptions;
mod determinism;
mod labels;
mod odd;
mod random;
mod scale;
mod shared;
mod sizes;
mod verify;
