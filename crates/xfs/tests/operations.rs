//! Operations on names and inodes: random streams of them against a model and against the kernel,
//! on volumes of all formats.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "operations/mod.rs"]
mod operations;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use undercroft_block::{BlockDevice, FileDevice};
use undercroft_judges::kernel::available_or_report;
use undercroft_judges::matrix::FORMATS;
use undercroft_xfs::format::{DeviceNumber, FileType};
use undercroft_xfs::mkfs::{self, MkfsOptions};
use undercroft_xfs::ops::{NewInode, Times};
use uuid::Uuid;

/// An empty volume of ours.
fn empty(directory: &Path, options: &MkfsOptions) -> PathBuf {
    let image = directory.join("volume.img");
    let file = std::fs::File::create(&image).unwrap();
    file.set_len(options.size).unwrap();
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(&image, false).unwrap());
    let root = NewInode {
        mode: FileType::Directory.mode_bits() | 0o755,
        uid: 0,
        gid: 0,
        times: Times::default(),
        device: DeviceNumber { major: 0, minor: 0 },
        target: &[],
    };
    let volume = mkfs::begin(&device, mkfs::plan(options).unwrap(), &root).unwrap();
    mkfs::finish(&volume, false).unwrap();
    image
}

fn options(block_size: u32) -> MkfsOptions {
    MkfsOptions { block_size, ..MkfsOptions::new(1 << 30, Uuid::from_u128(0x09e5)) }
}

#[test]
fn operations_do_what_the_model_does() {
    for (seed, block_size) in [(1, 4096), (2, 1024), (3, 4096), (4, 16384), (5, 1024)] {
        let directory = tempfile::tempdir().unwrap();
        let image = empty(directory.path(), &options(block_size));
        operations::against_model(&image, seed, 3, 2500);
    }
}

#[test]
fn operations_do_what_the_kernel_does() {
    if !available_or_report("xfs::operations::operations_do_what_the_kernel_does") {
        return;
    }
    // A metadata directory is known for reading only.
    let formats =
        FORMATS.iter().filter(|format| format.mounts && !format.features.contains(&"metadir"));
    for (seed, format) in (100..).zip(formats) {
        let directory = tempfile::tempdir().unwrap();
        let image = directory.path().join("volume.img");
        format.make(&image, &[]).unwrap();
        println!("{}", format.name);
        operations::against_kernel(&image, seed, 1, 400);
    }
}
