//! A physical volume of LVM whose group has a linear, a striped and a mirrored volume.

use super::Disk;

const SECTOR: usize = 512;
/// Where the area of metadata starts, its bytes, and where its text starts in it.
const AREA: usize = 4096;
const AREA_BYTES: usize = 60 << 10;
const TEXT: usize = 1024;
const ID: &str = "AAAAAABBBBCCCCDDDDEEEEFFFFGGGGGG";

const GROUP: &str = r#"vg {
id = "2NiFPj-hMr1-cjZ6-OpT4-BzBb-0AA0-grfv2M"
seqno = 3
format = "lvm2"
status = ["RESIZEABLE", "READ", "WRITE"]
flags = []
extent_size = 8
physical_volumes {
pv0 {
id = "AAAAAA-BBBB-CCCC-DDDD-EEEE-FFFF-GGGGGG"
status = ["ALLOCATABLE"]
flags = []
dev_size = 512
pe_start = 128
pe_count = 48
}
}
logical_volumes {
one {
id = "a"
status = ["READ", "WRITE", "VISIBLE"]
segment_count = 2
segment1 {
start_extent = 0
extent_count = 4
type = "striped"
stripe_count = 1
stripes = ["pv0", 0]
}
segment2 {
start_extent = 4
extent_count = 2
type = "striped"
stripe_count = 2
stripe_size = 8
stripes = ["pv0", 8, "pv0", 12]
}
}
two {
id = "b"
status = ["READ", "WRITE", "VISIBLE"]
segment_count = 1
segment1 {
start_extent = 0
extent_count = 2
type = "raid1"
raids = ["m0", "i0", "m1", "i1"]
}
}
three {
id = "c"
status = ["READ", "VISIBLE"]
segment_count = 1
segment1 {
start_extent = 0
extent_count = 2
type = "mirror"
mirrors = ["i2", 0]
}
}
m0 { id = "d" status = [] segment_count = 1 segment1 { start_extent = 0 extent_count = 1 type = "striped" stripe_count = 1 stripes = ["pv0", 20] } }
i0 { id = "e" status = [] segment_count = 1 segment1 { start_extent = 0 extent_count = 2 type = "striped" stripe_count = 1 stripes = ["pv0", 22] } }
m1 { id = "f" status = [] segment_count = 1 segment1 { start_extent = 0 extent_count = 1 type = "striped" stripe_count = 1 stripes = ["pv0", 24] } }
i1 { id = "g" status = [] segment_count = 1 segment1 { start_extent = 0 extent_count = 2 type = "striped" stripe_count = 1 stripes = ["pv0", 26] } }
i2 { id = "h" status = [] segment_count = 1 segment1 { start_extent = 0 extent_count = 2 type = "striped" stripe_count = 1 stripes = ["pv0", 30] } }
snap { id = "i" status = [] segment_count = 1 segment1 { start_extent = 0 extent_count = 1 type = "snapshot" origin = "one" cow_store = "three" } }
}
}
contents = "Text Format Volume Group"
version = 1
"#;

pub(super) fn disk() -> Disk {
    let mut bytes = vec![0; 512 * SECTOR];
    let mut put = |at: usize, new: &[u8]| bytes[at..at + new.len()].copy_from_slice(new);
    let label = SECTOR;
    put(label, b"LABELONE\x01");
    put(label + 20, &[32]);
    put(label + 24, b"LVM2 001");
    put(label + 32, ID.as_bytes());
    // One area of data, one of metadata.
    let numbers = [(64, 512 * SECTOR), (72, 128 * SECTOR), (104, AREA), (112, AREA_BYTES)];
    for (at, number) in numbers {
        put(label + at, &(number as u64).to_le_bytes());
    }
    put(AREA + 4, b" LVM2 x[5A%r0N*>\x01");
    let numbers = [(24, AREA), (32, AREA_BYTES), (40, TEXT), (48, GROUP.len())];
    for (at, number) in numbers {
        put(AREA + at, &(number as u64).to_le_bytes());
    }
    put(AREA + TEXT, GROUP.as_bytes());
    // Superblocks of the legs of the mirror.
    for (number, extent) in [(0, 20), (1, 24)] {
        let at = (128 + 8 * extent) * SECTOR;
        put(at, b"DmRd\x01\0\0\0\x02");
        put(at + 12, &[number, 0, 0, 0, 7]);
        put(at + 32, &[0xff; 16]);
    }
    repair(&mut bytes);
    let text = AREA + TEXT..AREA + TEXT + GROUP.len();
    let legs = [20, 24].map(|extent| (128 + 8 * extent) * SECTOR..(129 + 8 * extent) * SECTOR);
    let [one, other] = legs;
    Disk {
        bytes,
        pieces: vec![text, label..label + SECTOR, AREA..AREA + SECTOR, one, other],
        repair,
    }
}

/// Makes the checksums right that are where they usually are.
fn repair(bytes: &mut [u8]) {
    let number = |bytes: &[u8], at: usize| {
        let bytes: [u8; 8] = std::array::from_fn(|index| bytes[at + index]);
        usize::try_from(u64::from_le_bytes(bytes)).unwrap_or(usize::MAX)
    };
    let (at, size) = (number(bytes, AREA + 40), number(bytes, AREA + 48));
    let end = at.checked_add(size).and_then(|end| end.checked_add(AREA));
    if let Some(text) = end.and_then(|end| bytes.get(AREA.saturating_add(at)..end)) {
        let crc = checksum(text);
        bytes[AREA + 56..AREA + 60].copy_from_slice(&crc.to_le_bytes());
    }
    let crc = checksum(&bytes[AREA + 4..AREA + SECTOR]);
    bytes[AREA..AREA + 4].copy_from_slice(&crc.to_le_bytes());
    let crc = checksum(&bytes[SECTOR + 20..2 * SECTOR]);
    bytes[SECTOR + 16..SECTOR + 20].copy_from_slice(&crc.to_le_bytes());
}

/// The checksum of LVM.
fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0xf597_a6cf, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 0 { crc >> 1 } else { crc >> 1 ^ 0xedb8_8320 }
        })
    })
}
