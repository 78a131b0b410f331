//! Images that lie: an error or other bytes, never a panic, a hang, or memory without bound.

use crate::qemu::{bytes, content, open, qemu_img, raw};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use undercroft_block::Sector;
use undercroft_block::stack::DiskFormat;

#[test]
fn changed_metadata_is_an_error_or_other_bytes() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).display().to_string();
    let raw = raw(home.path(), "raw", &content(4));
    qemu_img(&["convert", "-O", "qcow2", "-c", "-o", "cluster_size=4k", &raw, &path("sound")]);
    let sound = fs::read(path("sound")).unwrap();
    let mut random = fastrand::Rng::with_seed(5);
    // The header, the tables of clusters and of counts are in the first clusters, and one at the end.
    for round in 0..300 {
        let mut bytes_of = sound.clone();
        for _ in 0..random.usize(1..4) {
            let at = match random.u8(..4) {
                0 => random.usize(..104),
                1 => random.usize(..6 * 4096),
                2 => random.usize(..sound.len()),
                _ => sound.len() - 1 - random.usize(..8 * 4096),
            };
            let length = random.usize(1..9).min(sound.len() - at);
            match random.u8(..3) {
                0 => bytes_of[at..at + length].fill(0xff),
                1 => bytes_of[at..at + length].fill(0),
                _ => random.fill(&mut bytes_of[at..at + length]),
            }
        }
        if round % 10 == 0 {
            bytes_of.truncate(random.usize(..sound.len()));
        }
        let image = path("changed");
        fs::write(&image, &bytes_of).unwrap();
        let looked = catch_unwind(AssertUnwindSafe(|| {
            if let Ok(device) = open(&image, true, DiskFormat::Auto)
                && device.capacity() <= Sector(1 << 16)
            {
                let _ = bytes(&*device);
            }
            if let Ok(device) = open(&image, false, DiskFormat::Auto) {
                let sector = Sector(random.u64(..device.capacity().0.max(1)) & !7);
                let _ = undercroft_block::write_all_at(&*device, sector, &[1; 4096]);
            }
        }));
        assert!(looked.is_ok(), "round {round} panics");
    }
}
