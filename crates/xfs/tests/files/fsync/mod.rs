//! Data of files in memory, and tickets for its durability; judged by the kernel and
//! `xfs_repair -n`.

mod cuts;
mod failures;
mod files;
mod remapped;
mod tickets;
