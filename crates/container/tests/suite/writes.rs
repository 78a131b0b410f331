//! Images that are changed, judged by QEMU.

use crate::qemu::{SIZE, by_qemu, content, open, qemu_img, raw};
use std::sync::Arc;
use std::thread;
use undercroft_block::stack::DiskFormat;
use undercroft_block::{BlockDevice, Sector, flush, write_all_at, write_zeroes_at};

/// Writes bytes and zeroes at random in one part of a disk, and in a model of it.
fn change(device: &dyn BlockDevice, seed: u64, start: usize, part: &mut [u8]) {
    let mut random = fastrand::Rng::with_seed(seed);
    for round in 0..200 {
        let at = 512 * random.usize(..part.len() / 512);
        let length = (512 * random.usize(1..300)).min(part.len() - at);
        let (sector, range) = (Sector(((start + at) / 512) as u64), &mut part[at..at + length]);
        if random.u8(..4) == 0 {
            range.fill(0);
            write_zeroes_at(device, sector, length as u64).unwrap();
        } else {
            range.fill(round as u8 | 1);
            write_all_at(device, sector, range).unwrap();
        }
    }
}

#[test]
fn several_threads_change_an_image_and_qemu_finds_it_sound() {
    let home = tempfile::tempdir().unwrap();
    let before = content(2);
    let raw = raw(home.path(), "raw", &before);
    for (name, options) in [
        ("v3", "compat=1.1"),
        ("v2", "compat=0.10"),
        ("small", "cluster_size=4k"),
        ("large", "cluster_size=2M"),
    ] {
        let image = home.path().join(name).display().to_string();
        qemu_img(&["convert", "-O", "qcow2", "-c", "-o", options, &raw, &image]);
        // A snapshot keeps what it has.
        qemu_img(&["snapshot", "-c", "kept", &image]);
        let mut expected = before.clone();
        let device = open(&image, false, DiskFormat::Auto).unwrap();
        assert!(open(&image, false, DiskFormat::Auto).unwrap_err().contains("in use"));
        thread::scope(|scope| {
            for (number, part) in expected.chunks_mut(SIZE / 4).enumerate() {
                let device = Arc::clone(&device);
                scope.spawn(move || change(&*device, number as u64, number * SIZE / 4, part));
            }
        });
        flush(&*device).unwrap();
        drop(device);
        let verdict = qemu_img(&["check", &image]);
        assert!(verdict.contains("No errors were found"), "{name}: {verdict}");
        assert!(by_qemu(&image) == expected, "{name}");
        qemu_img(&["snapshot", "-a", "kept", &image]);
        assert!(by_qemu(&image) == before, "{name}: the snapshot");
    }
}
