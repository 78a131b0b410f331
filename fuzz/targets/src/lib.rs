//! Fuzz targets, as plain functions of bytes: every decoder, and whole volumes.
//!
//! Everything here is fed bytes from outside and must answer with an error or a result: a panic, an
//! endless loop or memory without bound is a defect. The functions are the bodies of the fuzz
//! targets in `fuzz/`; the tests of this crate run all of them over fixed inputs.
//!
//! Block decoders and volumes do not take the block from the input as it is: nearly all random
//! blocks fail at the magic number. The input chooses a block of a sound [`Sample`] volume and
//! patches it ([`Patches`]); an empty input is the sound block itself. Checksums of the whole
//! volume are repaired after patching, so that damage gets past them.

#![forbid(unsafe_code)]

// Rooms by floors, from the ground up: each uses only those on floors before its own.
mod archive;
mod container;
mod description;
mod input;
mod manifest;
mod policy;
mod population;
mod rules;

mod disk_image;
mod formats;
mod managers;
mod mount;
mod nbd;
mod partitions;
mod sample;

mod device;
mod seeds;

mod blocks;
mod log;
mod log_replay;
mod visit;

mod groups;
mod names;
mod removed;
mod superblock;
mod trees;
mod volume;

mod inodes;
mod repair;
mod salvage;

pub use archive::with_checksums;
pub use device::PatchedDevice;
pub use input::{Change, Patch, Patches};
pub use sample::{Content, Piece, Sample, samples};
pub use seeds::seeds;

/// A fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, that of its program in `fuzz/fuzz_targets`.
    pub name: &'static str,
    /// Feeds it one input.
    pub run: fn(&[u8]),
}

/// All targets; the one with the most state comes last.
pub const TARGETS: [Target; 29] = [
    Target { name: "superblock", run: superblock::run },
    Target { name: "group_header", run: groups::run },
    Target { name: "tree_block", run: trees::run },
    Target { name: "inode", run: inodes::run },
    Target { name: "directory", run: names::directory },
    Target { name: "attribute", run: names::attribute },
    Target { name: "symlink", run: names::symlink },
    Target { name: "acl", run: names::acl },
    Target { name: "log_record", run: log::run },
    Target { name: "log_replay", run: log_replay::run },
    Target { name: "tar", run: archive::run },
    Target { name: "mount", run: mount::run },
    Target { name: "container_image", run: container::run },
    Target { name: "mtree", run: description::mtree },
    Target { name: "composefs", run: description::composefs },
    Target { name: "prototype", run: description::prototype },
    Target { name: "file_contexts", run: policy::run },
    Target { name: "rules", run: rules::run },
    Target { name: "disk_image", run: disk_image::run },
    Target { name: "disk_formats", run: formats::run },
    Target { name: "partition_table", run: partitions::run },
    Target { name: "volume_managers", run: managers::run },
    Target { name: "nbd_requests", run: nbd::requests },
    Target { name: "nbd_answers", run: nbd::answers },
    Target { name: "manifest", run: manifest::run },
    Target { name: "removed_files", run: removed::run },
    Target { name: "salvage", run: salvage::run },
    Target { name: "repair", run: repair::run },
    Target { name: "open_and_walk", run: volume::run },
];

/// Feeds one input to the target `name`.
///
/// # Panics
/// There is no such target, or the target found a defect.
pub fn run(name: &str, input: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target.expect("a target has the name of its program").run)(input);
}
