//! Network block devices (NBD): devices of this machine for others, devices of others here.
//!
//! - [`protocol`] has the messages as bytes, both directions, without I/O.
//! - [`client`] makes an export a block device.
//! - [`server`] makes devices exports.
//!
//! The crate knows no file system. Design and promises are in `docs/decisions/nbd.md`.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

// Rooms by floors, from the ground up: each uses only those on floors before its own.
pub mod protocol;

pub mod client;
pub mod server;
