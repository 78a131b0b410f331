//! Disks in formats that are only read, and compressed ones.
//!
//! The first byte of the input chooses a small sound image, the rest patches it. Checksums are made right
//! again. Whatever is opened is read at its start, in its middle and at its end.

mod sound;

use crate::input::{Change, Input, Patches, overwrite};
use rustix::fs::{MemfdFlags, memfd_create};
use sound::Sound;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use undercroft_block::stack::{DiskFormat, FileLeaf, LeafOptions};
use undercroft_block::{BlockDevice, Sector, read_buffer};

/// Sectors that are read at a place.
const READ: u64 = 32;

pub(crate) fn run(input: &[u8]) {
    let Some((choice, patches)) = input.split_first() else { return };
    let mut sound = Sound::of(*choice);
    for patch in Patches::new(Input(patches)) {
        let pieces = sound.pieces.len();
        let (_, bytes) = &mut sound.pieces[usize::from(patch.piece) % pieces];
        if let Change::Bytes(new) = patch.change {
            overwrite(bytes, patch.offset, new);
        }
    }
    sound.sum();
    let file = File::from(memfd_create("image", MemfdFlags::CLOEXEC).expect("memory"));
    file.set_len(sound.length).expect("a file in memory");
    for (at, bytes) in &sound.pieces {
        file.write_all_at(bytes, *at).expect("a file in memory");
    }
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let leaf = FileLeaf { format: DiskFormat::Backed, ..FileLeaf::new(path) };
    let options = LeafOptions { read_only: true, ..LeafOptions::default() };
    match undercroft_container::open(&leaf, options) {
        Ok(Some(device)) => visit(&*device),
        Ok(None) => {}
        Err(error) => drop(error.to_string()),
    }
}

fn visit(device: &dyn BlockDevice) {
    let sectors = device.capacity().0;
    for start in [0, sectors / 2, sectors.saturating_sub(READ)] {
        let length = (sectors - start).min(READ) as usize * 512;
        if length > 0 {
            drop(read_buffer(device, Sector(start), length).map_err(|error| error.to_string()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sound_images_are_read() {
        let home = tempfile::tempdir().unwrap();
        for choice in 0..Sound::COUNT {
            let mut sound = Sound::of(choice);
            sound.sum();
            let path = home.path().join(choice.to_string());
            let file = File::create(&path).unwrap();
            file.set_len(sound.length).unwrap();
            sound.pieces.iter().for_each(|(at, bytes)| file.write_all_at(bytes, *at).unwrap());
            let options = LeafOptions { read_only: true, ..LeafOptions::default() };
            let device = undercroft_container::open(&FileLeaf::new(path), options);
            let device = device.unwrap().unwrap_or_else(|| panic!("{choice} is not recognised"));
            let read = read_buffer(&*device, Sector(0), 512).unwrap();
            assert!(read.iter().any(|byte| *byte != 0), "{choice} has data");
            visit(&*device);
        }
    }
}
