//! Images that QEMU made, read and changed; and what QEMU says of them then.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod backing;
mod hostile;
mod luks;
mod lvm;
mod qemu;
mod reads;
mod writes;
