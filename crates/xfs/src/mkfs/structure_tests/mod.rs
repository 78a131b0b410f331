//! Structures of the format on planned volumes.

mod agf;
mod agfl;
mod agi;
mod heights;
mod superblock;
