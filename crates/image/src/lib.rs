//! Volume images: packed from directories, archives and container images, unpacked to the first two,
//! compared with any of them.
//!
//! A crate of its own because it joins two that do not know each other: sources (with their
//! decompressors) and the file system.
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

// Rooms by floors, from the ground up: each uses only those on floors before its own.
mod entry_writer;
mod own_image;

pub mod diff;
pub mod disk;
pub mod layer;
pub mod unpack;

pub mod pack;

pub mod copy;

mod found;

pub use own_image::WithoutImage;

pub use found::{
    FoundSource, LateLoss, LateLosses, PutBack, PutBackEvent, PutBackSummary, SourceGone,
    ViewError, found_volume,
};
