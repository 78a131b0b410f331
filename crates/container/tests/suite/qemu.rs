//! QEMU's tools as makers and judges of images.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use undercroft_block::stack::{DiskFormat, FileLeaf, LeafOptions};
use undercroft_block::{BlockDevice, Sector, read_exact_at};

/// Bytes of the disks.
pub(crate) const SIZE: usize = 8 << 20;

/// Runs `qemu-img`, which must succeed, and returns what it prints.
pub(crate) fn qemu_img(arguments: &[&str]) -> String {
    let output = Command::new("qemu-img").args(arguments).output().expect("qemu-img is there");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "qemu-img {arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// Bytes of a disk that is empty in part.
pub(crate) fn content(seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut bytes = vec![0; SIZE];
    for piece in bytes.chunks_mut(96 << 10) {
        match random.u8(..3) {
            0 => {}
            1 => piece.fill(random.u8(1..)),
            _ => random.fill(piece),
        }
    }
    bytes
}

/// A raw file of these bytes.
pub(crate) fn raw(directory: &Path, name: &str, bytes: &[u8]) -> String {
    let path = directory.join(name);
    fs::write(&path, bytes).unwrap();
    path.display().to_string()
}

/// The bytes of the disk in an image, by QEMU.
pub(crate) fn by_qemu(image: &str) -> Vec<u8> {
    let raw = format!("{image}.raw");
    qemu_img(&["convert", "-O", "raw", image, &raw]);
    fs::read(raw).unwrap()
}

/// The device in an image.
pub(crate) fn open(
    image: &str,
    read_only: bool,
    format: DiskFormat,
) -> Result<Arc<dyn BlockDevice>, String> {
    let leaf = FileLeaf { format, ..FileLeaf::new(PathBuf::from(image)) };
    let options = LeafOptions { read_only, ..LeafOptions::default() };
    match undercroft_container::open(&leaf, options) {
        Ok(Some(device)) => Ok(device),
        Ok(None) => Err("not recognised".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// All bytes of a device, read in pieces of different lengths.
pub(crate) fn bytes(device: &dyn BlockDevice) -> Result<Vec<u8>, String> {
    let mut bytes = vec![0xee; device.capacity().to_bytes().unwrap() as usize];
    let mut random = fastrand::Rng::with_seed(7);
    let mut at = 0;
    while at < bytes.len() {
        let length = (512 * random.usize(1..400)).min(bytes.len() - at);
        read_exact_at(device, Sector((at / 512) as u64), &mut bytes[at..at + length])
            .map_err(|error| error.to_string())?;
        at += length;
    }
    Ok(bytes)
}
