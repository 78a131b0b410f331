//! Disks in object stores, as block devices.
//!
//! A disk is an object as it is (`s3://bucket/disk.img`, `https://host/disk.img`), or it was published
//! in chunks below a prefix (`s3://bucket/prefix@name`). Both are read in pieces of 1 MiB, which are kept
//! in memory and in a [`DiskCache`](CacheOptions) that processes share. What is promised and how chunks are
//! laid out is in `docs/fleet.md`.
//!
//! ```text
//! driver --> pool (pieces in memory, read-ahead) --> disk cache
//!                 |
//!                 v
//!             origin: whole object, or chunks of a manifest --> client --> store
//!
//! publish, prune, verify --> repository (manifests, names, chunks, markers) --> client
//! ```
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

// Files by floors, from the ground up.
mod digest;
mod traffic;

mod manifest;

mod error;

mod location;

mod client;
mod disk_cache;

mod origin;
mod repository;

mod chunked;
mod marker;
mod whole;

mod pool;
mod prune;
mod publish;
mod verify;

mod driver;

mod register;

pub use client::Client;
pub use digest::Digest;
pub use disk_cache::CacheOptions;
pub use error::{Fault, StoreError};
pub use location::{Location, Reference};
pub use manifest::{CHUNK_BYTES, Manifest, ManifestError};
pub use prune::{PruneOptions, Pruned, prune};
pub use publish::{PublishOptions, Published, publish};
pub use register::{Settings, check, configure, open, register};
pub use repository::Repository;
pub use traffic::{Traffic, traffic};
pub use verify::{ChunkFault, Verified, verify};
