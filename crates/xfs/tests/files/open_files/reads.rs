//! Reads into memory of the caller.

use super::stand::{BLOCK, NOW, close, make, open, read_all};
use std::sync::Arc;
use undercroft_block::Buffer;
use undercroft_xfs::OpenFile;
use undercroft_xfs::ops::Size;

/// Reads of every length at every offset over data, holes, unwritten space and dirty data are those
/// of a model.
#[test]
fn any_range_reads_as_it_was_written() {
    let (device, volume) = open(64 << 20);
    let file = make(&volume, "file").unwrap();
    let mut model = vec![0; 23 * BLOCK + 100];
    let put =
        |file: &OpenFile, model: &mut Vec<u8>, at: usize, len: usize, byte: u8, direct: bool| {
            let bytes: Vec<u8> = (0..len).map(|index| byte.wrapping_add(index as u8)).collect();
            model[at..at + len].copy_from_slice(&bytes);
            let (bytes, at) = (Arc::new(bytes), at as u64);
            if direct {
                file.write_direct(at, &bytes, 0..len, NOW).unwrap();
            } else {
                file.write(at, &bytes, NOW).unwrap();
            }
        };
    put(&file, &mut model, 0, 3 * BLOCK, 1, true);
    put(&file, &mut model, 5 * BLOCK + 17, 2 * BLOCK, 2, true);
    file.preallocate(9 * BLOCK as u64..12 * BLOCK as u64, Size::Keep, NOW).unwrap();
    put(&file, &mut model, 10 * BLOCK + 1, 10, 3, true);
    put(&file, &mut model, 22 * BLOCK, BLOCK + 100, 4, true);
    // Dirty over data, over holes, and over unwritten space.
    put(&file, &mut model, BLOCK + 1, 50, 5, false);
    put(&file, &mut model, 6 * BLOCK, BLOCK, 6, false);
    put(&file, &mut model, 11 * BLOCK + 4000, 300, 7, false);
    put(&file, &mut model, 15 * BLOCK, 9, 8, false);
    assert!(volume.dirty_bytes() > 0);
    let mut seed = 1_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    for _ in 0..3000 {
        let (at, len) = (random(model.len() + BLOCK), random(5 * BLOCK));
        compare(&file, &model, at, len);
    }
    compare(&file, &model, 0, model.len() + 10);
    assert_eq!(read_all(&file), model);
    file.fsync_and_wait().unwrap();
    compare(&file, &model, 0, model.len());
    drop(file);
    let volume = close(&device, &volume);
    assert_eq!(super::stand::contents(&volume, "file"), model);
}

fn compare(file: &OpenFile, model: &[u8], at: usize, len: usize) {
    let mut bytes = vec![0xee; len + 8];
    let read = file.read(at as u64, &mut bytes[..len]).unwrap();
    assert_eq!(read, len.min(model.len().saturating_sub(at)), "{len} bytes at {at}");
    assert!(bytes[..read] == model[at.min(model.len())..][..read], "{len} bytes at {at}");
    assert!(bytes[read..].iter().all(|byte| *byte == 0xee), "more was written: {len} at {at}");
    // The same into memory for devices.
    let memory = Buffer::copy_of(&vec![0xee; len]);
    let (memory, lent) = file.read_buffer(at as u64, memory).unwrap();
    assert_eq!((lent, memory.len()), (read, len), "{len} bytes at {at}, lent");
    assert!(memory[..lent] == bytes[..read], "{len} bytes at {at}, lent");
}

/// More extents than one look takes, and reads longer than one of the device.
#[test]
fn a_file_in_many_pieces_reads_whole() {
    let (_device, volume) = open(256 << 20);
    let file = make(&volume, "file").unwrap();
    let mut model = vec![0; 200 * 2 * BLOCK];
    for piece in 0..200 {
        let at = piece * 2 * BLOCK;
        model[at..at + BLOCK].fill(piece as u8 + 1);
        let memory = Arc::new(vec![piece as u8 + 1; BLOCK]);
        file.write_direct(at as u64, &memory, 0..BLOCK, NOW).unwrap();
    }
    file.truncate(model.len() as u64, NOW).unwrap();
    assert_eq!(read_all(&file), model);
    compare(&file, &model, 100, model.len() - 200);
    let large = make(&volume, "large").unwrap();
    let model: Vec<u8> = (0..5 << 20).map(|index: usize| (index / 513) as u8).collect();
    large.write_direct(0, &Arc::new(model.clone()), 0..model.len(), NOW).unwrap();
    for (at, len) in [(0, model.len()), (1, 300_000), (511, 1 << 20), (262_143, 700_001)] {
        compare(&large, &model, at, len);
    }
}

#[test]
fn reading_other_kinds_than_regular_files_is_an_error() {
    let (_device, volume) = open(64 << 20);
    let root = OpenFile::open(&volume, super::stand::root(&volume)).unwrap();
    assert!(root.read(0, &mut [0; 10]).is_err());
    assert!(root.write(u64::MAX, b"x", NOW).is_err());
    let file = make(&volume, "file").unwrap();
    assert!(file.write(u64::MAX - 1, b"xyz", NOW).is_err());
    assert_eq!(file.read(u64::MAX, &mut [0; 10]).unwrap(), 0);
}
