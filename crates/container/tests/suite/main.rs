//! Images and disks that QEMU, LVM, cryptsetup and mdadm made, read and changed; and what these say then.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod backing;
mod formats;
mod hostile;
mod luks;
mod lvm;
mod packed;
mod qemu;
mod raid;
mod reads;
mod snapshots;
mod vhdx_log;
mod writes;
