//! Members of arrays of one member, with superblocks of the versions 1.2 and 0.90.

use super::Disk;

const BYTES: usize = 1 << 20;
/// Where the superblocks are.
const PLACES: [usize; 2] = [4096, BYTES - (64 << 10)];

pub(super) fn version1() -> Disk {
    let mut bytes = vec![0; BYTES];
    let words: [(usize, u64); 10] = [
        (0, 0x0000_0001_a92b_4efc),
        (72, 0xffff_ffff),
        (80, 0),
        (88, 0x0000_0001_0000_0080),
        (128, 256),
        (136, 1024),
        (144, 8),
        (200, 7),
        (208, u64::MAX),
        (216, 0x0000_0002_0000_0000),
    ];
    for (at, word) in words {
        bytes[PLACES[0] + at..][..8].copy_from_slice(&word.to_le_bytes());
    }
    bytes[PLACES[0] + 256..][..4].copy_from_slice(&[0, 0, 0xff, 0xff]);
    repair_version1(&mut bytes);
    disk(bytes, PLACES[0], repair_version1)
}

pub(super) fn version0() -> Disk {
    let mut bytes = vec![0; BYTES];
    let size = (PLACES[1] / 1024) as u32;
    let words: [(usize, u32); 10] = [
        (0, 0xa92b_4efc),
        (2, 90),
        (7, 1),
        (8, size),
        (10, 1),
        (33, 1),
        (39, 7),
        (43, u32::MAX),
        (128 + 4, 6),
        (992 + 4, 6),
    ];
    for (at, word) in words {
        bytes[PLACES[1] + 4 * at..][..4].copy_from_slice(&word.to_le_bytes());
    }
    repair_version0(&mut bytes);
    disk(bytes, PLACES[1], repair_version0)
}

fn disk(bytes: Vec<u8>, place: usize, repair: fn(&mut [u8])) -> Disk {
    Disk { bytes, pieces: vec![place..place + 1024, place + 3072..place + 4096], repair }
}

fn repair_version1(bytes: &mut [u8]) {
    let block = &mut bytes[PLACES[0]..];
    let members = u32::from_le_bytes([block[220], block[221], block[222], block[223]]) as usize;
    block[216..220].fill(0);
    let sum = sum(&block[..256 + 2 * members.min(1900)]);
    block[216..220].copy_from_slice(&sum.to_le_bytes());
}

fn repair_version0(bytes: &mut [u8]) {
    let block = &mut bytes[PLACES[1]..];
    block[152..156].fill(0);
    let sum = sum(&block[..4096]);
    block[152..156].copy_from_slice(&sum.to_le_bytes());
}

/// The sum of words.
fn sum(bytes: &[u8]) -> u32 {
    let sum: u64 = bytes
        .chunks(4)
        .map(|word| word.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
        .sum();
    (sum as u32).wrapping_add((sum >> 32) as u32)
}
