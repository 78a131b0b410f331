//! Images of VHDX that were not closed: a log is written as [MS-VHDX] has it, and QEMU replays it, too.

use crate::qemu::{by_qemu, bytes, content, open, qemu_img, raw};
use std::fs;
use undercroft_block::stack::DiskFormat;

const UNIT: usize = 4096;
const LOG_NAME: [u8; 16] = [0x5a; 16];
/// Where headers are.
const HEADERS: [usize; 2] = [64 << 10, 128 << 10];

fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    bytes[at..at + field.len()].copy_from_slice(field);
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// Puts the checksum of a structure in its place.
fn sum(bytes: &mut [u8]) {
    put(bytes, 4, &[0; 4]);
    let sum = crc32c::crc32c(bytes);
    put(bytes, 4, &sum.to_le_bytes());
}

/// What a log changes.
enum Change {
    Zero { at: u64, bytes: u64 },
    Data { at: u64, unit: Vec<u8> },
}

/// An entry of a log. All descriptors fit in its first unit.
fn entry(number: u64, tail: u32, file_bytes: u64, changes: &[Change]) -> Vec<u8> {
    let mut first = vec![0; UNIT];
    let mut units = Vec::new();
    for (index, change) in changes.iter().enumerate() {
        let at = 64 + 32 * index;
        let place = match change {
            Change::Zero { at: place, bytes } => {
                put(&mut first, at, b"zero");
                put(&mut first, at + 8, &bytes.to_le_bytes());
                place
            }
            Change::Data { at: place, unit } => {
                put(&mut first, at, b"desc");
                put(&mut first, at + 4, &unit[UNIT - 4..]);
                put(&mut first, at + 8, &unit[..8]);
                let mut data = unit.clone();
                put(&mut data, 0, b"data");
                put(&mut data, 4, &((number >> 32) as u32).to_le_bytes());
                put(&mut data, UNIT - 4, &(number as u32).to_le_bytes());
                units.extend(data);
                place
            }
        };
        put(&mut first, at + 16, &place.to_le_bytes());
        put(&mut first, at + 24, &number.to_le_bytes());
    }
    put(&mut first, 0, b"loge");
    put(&mut first, 12, &tail.to_le_bytes());
    put(&mut first, 16, &number.to_le_bytes());
    put(&mut first, 24, &(changes.len() as u32).to_le_bytes());
    put(&mut first, 32, &LOG_NAME);
    put(&mut first, 48, &file_bytes.to_le_bytes());
    put(&mut first, 56, &file_bytes.to_le_bytes());
    first.extend(units);
    let length = first.len() as u32;
    put(&mut first, 8, &length.to_le_bytes());
    sum(&mut first);
    first
}

/// An image with a log of these entries, the first of them so far into the ring.
fn with_log(sound: &[u8], entries: &[Vec<u8>], first: usize) -> Vec<u8> {
    let mut image = sound.to_vec();
    let (at, length) = log(&image);
    let mut place = first;
    for unit in entries.iter().flat_map(|entry| entry.chunks(UNIT)) {
        put(&mut image, at + place % length, unit);
        place += UNIT;
    }
    for header in HEADERS {
        let header = &mut image[header..header + UNIT];
        put(header, 48, &LOG_NAME);
        sum(header);
    }
    image
}

/// Place and length of the log.
fn log(image: &[u8]) -> (usize, usize) {
    let newest = HEADERS.into_iter().max_by_key(|at| word(image, at + 8)).unwrap();
    (word(image, newest + 72) as usize, (word(image, newest + 68) & 0xffff_ffff) as usize)
}

#[test]
fn a_log_is_replayed_in_memory() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).display().to_string();
    let raw = raw(home.path(), "raw", &content(31));
    qemu_img(&["convert", "-O", "vhdx", "-o", "block_size=1M", &raw, &path("sound")]);
    let sound = fs::read(path("sound")).unwrap();
    let all = sound.len() as u64;
    // The data of the disk are the last MiBs; among the changes is one over another.
    let data = all - (4 << 20);
    let unit = |byte: u8| (0..UNIT).map(|at| byte ^ (at % 251) as u8).collect::<Vec<_>>();
    let changes = [
        vec![
            Change::Zero { at: data, bytes: 64 << 10 },
            Change::Data { at: data + 8192, unit: unit(1) },
        ],
        vec![Change::Data { at: data + (1 << 20), unit: unit(2) }],
        vec![
            Change::Data { at: data + 8192 + 4096, unit: unit(3) },
            Change::Zero { at: data + 4096, bytes: 8192 },
        ],
    ];
    let ring = log(&sound).1;
    let mut replayed = Vec::new();
    for first in [0, 16 * UNIT, ring - 4 * UNIT, ring - 3 * UNIT] {
        let mut place = first;
        let entries: Vec<_> = (7_u64..)
            .zip(&changes)
            .map(|(number, changes)| {
                let entry = entry(number, first as u32, all, changes);
                place += entry.len();
                entry
            })
            .collect();
        let image = with_log(&sound, &entries, first);
        fs::write(path("dirty"), &image).unwrap();
        let device = open(&path("dirty"), true, DiskFormat::Auto).unwrap();
        let ours = bytes(&*device).unwrap();
        drop(device);
        assert!(fs::read(path("dirty")).unwrap() == image, "the file stays as it is");
        qemu_img(&["check", "-q", "-r", "all", "-f", "vhdx", &path("dirty")]);
        if first > ring / 2 {
            // QEMU takes the newest entry alone where a sequence goes over the end of the ring. By the
            // specification it is the same log.
            assert!(ours == replayed, "from {first} on");
            continue;
        }
        assert!(ours == by_qemu(&path("dirty")), "from {first} on");
        replayed = ours.clone();
        assert!(ours != content(31), "the log has changed something");
        // An entry that was not written to its end does not count.
        let mut cut = image.clone();
        let last = log(&sound).0 + (place - UNIT) % ring;
        cut[last + 100] ^= 1;
        fs::write(path("cut"), &cut).unwrap();
        let device = open(&path("cut"), true, DiskFormat::Auto).unwrap();
        let ours = bytes(&*device).unwrap();
        qemu_img(&["check", "-q", "-r", "all", "-f", "vhdx", &path("cut")]);
        assert!(ours == by_qemu(&path("cut")), "cut, from {first} on");
    }
}

#[test]
fn logs_that_lie_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).display().to_string();
    qemu_img(&["create", "-qf", "vhdx", &path("sound"), "8M"]);
    let sound = fs::read(path("sound")).unwrap();
    let all = sound.len() as u64;
    let zero = |at, bytes| [Change::Zero { at, bytes }];
    let mut unknown = entry(1, 0, all, &zero(4 << 20, 4096));
    put(&mut unknown, 64, b"what");
    sum(&mut unknown);
    let mut crowded = entry(1, 0, all, &[]);
    put(&mut crowded, 24, &100_000_u32.to_le_bytes());
    sum(&mut crowded);
    for (entries, words) in [
        (vec![], "no sound entries"),
        (vec![entry(1, 0, all, &zero(u64::MAX - 4095, 4096))], "behind the end"),
        (vec![entry(1, 0, all, &zero(4 << 20, 1 << 62))], "behind the end"),
        (vec![entry(1, 0, all, &zero(4 << 20, 100))], "behind the end"),
        (vec![entry(1, 0, all + 4096, &[])], "is it cut?"),
        (vec![entry(1, 4096, all, &[])], "no sound entries"),
        (vec![unknown], "not known"),
        (vec![crowded], "no room"),
    ] {
        fs::write(path("dirty"), with_log(&sound, &entries, 0)).unwrap();
        let error = open(&path("dirty"), true, DiskFormat::Auto).unwrap_err();
        assert!(error.contains(words), "{error} for {words}");
    }
}
