//! Damaged volumes put right, with xfs_repair and the kernel as judges, and xfs_repair as the peer.
#![allow(clippy::unwrap_used, reason = "tests")]

mod cuts;
mod damages;
mod files;
mod forms;
mod mutants;
mod places;
mod short;
mod sound;
mod unreadable;
mod upgrade;
mod upgrade_cuts;
mod upgrade_random;
mod wrecks;
