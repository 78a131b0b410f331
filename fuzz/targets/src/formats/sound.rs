//! Small sound images.

const GZIP: &str = "1f8b0800000000000203edd4c10900201003414bb9d60411c4c7813e6cdf3e74a6852539b9da8eec51a38d3da3f095a3bffefa03f87ff407ec1ffd01fb07ec1fb07f9e70012dd1003a002000001f8b0800000000000203edd4c10900201003414bb9d60411c4c7813e6cdf3e74a68485a414e0572757db913d6ab4b1672802e0ff01fbe75d17586f9fe700100000";
const XZ: &str = "fd377a585a0000016922de360200210116000000742fe5a3e00fff00325d003b9bcaaad4b05273c283a5f80844e103402cc8d8f2deec0aaa940dd62aaff07e37af808d4184598ecb756480d86a887e11000000008b382a2b0200210116000000742fe5a3e00fff00315d003b9bcaaad4b05273c283a5f80844e103402cc8d8f2deec0aaaae065625c3e40b51f8546472b4eb7051a227fabdee332600000000001a13354a0200210116000000742fe5a3e00fff00335d00006ffdffffa3b77f9fc0e76168ca0ae8c9c721d29d619d75b8820e0ee94ce70d1c6a237cd9f3861673fed6237f70df95c48b000000586f9fe700034a80204980204b80200076becac29be35140030000000001595a";
const ZSTD: &str = "28b52ffd64001f95010088776f726473206f662061206469736b20000880c0f3ef01fd0d90ff7e57ed0ff0fb5d75ff8059ed0faafe0344e5ec2a2001df6a7c1b28b52ffd0458350100980000776f726473206f662061206469736b20000400fd036415fa0f982b903df0affd15c002d41c82a8";

/// The checksum of 4,096 bytes of 7, as zlib has it.
const ADLER: u32 = 0x7c80_7001;
/// Sectors of the disks.
const SECTORS: u64 = 64;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// An image: its length, and the places where it is not zeroes.
pub(super) struct Sound {
    pub(super) length: u64,
    pub(super) pieces: Vec<(u64, Vec<u8>)>,
    sums: fn(&mut [(u64, Vec<u8>)]),
}

impl Sound {
    pub(super) const COUNT: u8 = 9;

    pub(super) fn of(choice: u8) -> Self {
        match choice % Self::COUNT {
            0 => packed(GZIP),
            1 => Self { sums: xz_sums, ..packed(XZ) },
            2 => packed(ZSTD),
            3 => vdi(),
            4 => vhd(),
            5 => vmdk(false),
            6 => vmdk(true),
            7 => vhdx(false),
            _ => vhdx(true),
        }
    }

    /// Makes the checksums right.
    pub(super) fn sum(&mut self) {
        (self.sums)(&mut self.pieces);
    }

    fn new(length: u64, pieces: Vec<(u64, Vec<u8>)>) -> Self {
        Self { length, pieces, sums: |_| () }
    }
}

fn packed(hex: &str) -> Sound {
    let bytes: Vec<u8> = (0..hex.len() / 2)
        .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("digits"))
        .collect();
    Sound::new(bytes.len() as u64, vec![(0, bytes)])
}

/// A piece with little-endian numbers at places: where, what, how many bytes.
fn piece(length: usize, mark: &[u8], fields: &[(usize, u64, usize)]) -> Vec<u8> {
    let mut bytes = vec![0; length];
    bytes[..mark.len()].copy_from_slice(mark);
    for (at, value, width) in fields {
        bytes[*at..at + width].copy_from_slice(&value.to_le_bytes()[..*width]);
    }
    bytes
}

/// The same with big-endian numbers.
fn big(length: usize, mark: &[u8], fields: &[(usize, u64, usize)]) -> Vec<u8> {
    let mut bytes = piece(length, mark, fields);
    for (at, _, width) in fields {
        bytes[*at..at + width].reverse();
    }
    bytes
}

fn put(bytes: &mut [u8], at: usize, sum: u32) {
    bytes[at..at + 4].copy_from_slice(&sum.to_le_bytes());
}

fn xz_sums(pieces: &mut [(u64, Vec<u8>)]) {
    let bytes = &mut pieces[0].1;
    let sum = crc32fast::hash(&bytes[6..8]);
    put(bytes, 8, sum);
    let end = bytes.len();
    let sum = crc32fast::hash(&bytes[end - 8..end - 2]);
    put(bytes, end - 12, sum);
    let words =
        u32::from_le_bytes([bytes[end - 8], bytes[end - 7], bytes[end - 6], bytes[end - 5]]);
    let length = (words as usize).saturating_add(1).saturating_mul(4);
    if let Some(start) = (end - 12).checked_sub(length) {
        let sum = crc32fast::hash(&bytes[start..end - 16]);
        put(bytes, end - 16, sum);
    }
}

fn vdi() -> Sound {
    let header = [
        (64, 0xbeda_107f, 4),
        (68, 0x1_0001, 4),
        (76, 1, 4),
        (340, 512, 4),
        (344, KIB, 4),
        (368, SECTORS * 512, 8),
        (376, 4096, 4),
        (384, 8, 4),
    ];
    let map = [(0, 0, 4), (4, 0xffff_ffff, 4), (8, 1, 4), (12, 0xffff_fffe, 4), (28, 1, 4)];
    let pieces =
        vec![(0, piece(400, b"", &header)), (512, piece(32, b"", &map)), (KIB, vec![7; 8192])];
    Sound::new(KIB + 8192, pieces)
}

fn vhd() -> Sound {
    let footer = big(
        512,
        b"conectix",
        &[(12, 0x1_0000, 4), (16, 512, 8), (48, SECTORS * 512, 8), (60, 3, 4)],
    );
    let header =
        big(1024, b"cxsparse", &[(16, 2048, 8), (24, 0x1_0000, 4), (28, 8, 4), (32, 4096, 4)]);
    let table = big(32, b"", &[(0, 5, 4), (4, u64::from(u32::MAX), 4), (28, 5, 4)]);
    let mut block = vec![0xff; 512];
    block.extend([7; 4096]);
    let pieces =
        vec![(0, footer.clone()), (512, header), (2048, table), (2560, block), (7168, footer)];
    let sums = |pieces: &mut [(u64, Vec<u8>)]| {
        for (number, at) in [(0, 64), (1, 36), (4, 64)] {
            let bytes = &mut pieces[number].1;
            bytes[at..at + 4].fill(0);
            let sum = bytes.iter().fold(0_u32, |sum, byte| sum.wrapping_add(u32::from(*byte)));
            bytes[at..at + 4].copy_from_slice(&(!sum).to_be_bytes());
        }
    };
    Sound { sums, ..Sound::new(7680, pieces) }
}

/// One file with grains of 4 KiB, as they are or compressed.
fn vmdk(is_compressed: bool) -> Sound {
    let flags = if is_compressed { 0x3_0007 } else { 7 };
    let header = [
        (4, 1, 4),
        (8, flags, 4),
        (12, SECTORS, 8),
        (20, 8, 8),
        (28, 1, 8),
        (36, 1, 8),
        (44, 4, 4),
        (56, 2, 8),
        (73, 0x0a0d_200a, 4),
        (77, 1, 2),
    ];
    // Four KiB of one byte: marker, deflated data of a level without references, checksum.
    let grain = if is_compressed {
        let mut grain = piece(12, b"", &[(8, 4096 + 11, 4)]);
        grain.extend([0x78, 1, 1, 0, 0x10, 0xff, 0xef]);
        grain.extend([7; 4096]);
        grain.extend(ADLER.to_be_bytes());
        grain
    } else {
        vec![7; 4096]
    };
    let pieces = vec![
        (0, piece(79, b"KDMV", &header)),
        (512, piece(512, b"# Disk DescriptorFile\nparentCID=ffffffff\n", &[])),
        (1024, piece(8, b"", &[(0, 3, 4), (4, 4, 4)])),
        (1536, piece(16, b"", &[(0, 5, 4), (4, 1, 4)])),
        (2048, piece(16, b"", &[(12, 5, 4)])),
        (2560, grain),
    ];
    Sound::new(7168, pieces)
}

const BLOCKS: u128 = 0x2dc2_7766_f623_4200_9d64_115e_9bfd_4a08;
const METADATA: u128 = 0x8b7c_a206_4790_4b9a_b8fe_575f_050f_886e;
const PARAMETERS: u128 = 0xcaa1_6737_fa36_4d43_b3b6_33f0_aa44_e76b;
const SIZE: u128 = 0x2fa5_4224_cd1b_4876_b211_5dbe_d83b_f4b8;
const SECTOR_BYTES: u128 = 0x8141_bf1d_a96f_4709_ba47_f233_a8fa_ab5f;

/// An entry of 32 bytes: a name, and numbers.
fn entry(name: u128, fields: &[(usize, u64, usize)]) -> Vec<u8> {
    let mut bytes = piece(32, &name.to_be_bytes(), fields);
    bytes[..4].reverse();
    bytes[4..6].reverse();
    bytes[6..8].reverse();
    bytes
}

/// A block of 1 MiB with data, and a log where it was not closed.
fn vhdx(is_dirty: bool) -> Sound {
    let name = if is_dirty { 5 } else { 0 };
    let header = [(8, 1, 8), (48, name, 8), (66, 1, 2), (68, 8192, 4), (72, MIB, 8)];
    let mut regions = piece(16, b"regi", &[(8, 2, 4)]);
    regions.extend(entry(BLOCKS, &[(16, 2 * MIB, 8), (24, 4096, 4), (28, 1, 4)]));
    regions.extend(entry(METADATA, &[(16, 512 * KIB, 8), (24, 128 * KIB, 4), (28, 1, 4)]));
    regions.resize(64 << 10, 0);
    let mut metadata = piece(32, b"metadata", &[(10, 3, 2)]);
    for (number, name) in [PARAMETERS, SIZE, SECTOR_BYTES].into_iter().enumerate() {
        metadata.extend(entry(name, &[(16, 64 * KIB + 8 * number as u64, 4), (24, 4, 4)]));
    }
    let items = piece(24, b"", &[(0, MIB, 4), (8, 3 * MIB, 8), (16, 512, 4)]);
    let log = [
        (8, 8192, 4),
        (16, 9, 8),
        (24, 2, 4),
        (32, 5, 8),
        (48, 4 * MIB, 8),
        (56, 4 * MIB, 8),
        // Zeroes over a part of the block, and bytes over another.
        (72, 4096, 8),
        (80, 3 * MIB + 8192, 8),
        (88, 9, 8),
        (112, 3 * MIB + 16384, 8),
        (120, 9, 8),
    ];
    let mut log = piece(4096, b"loge", &log);
    log[64..68].copy_from_slice(b"zero");
    log[96..100].copy_from_slice(b"desc");
    let data = piece(4096, b"data", &[(4092, 9, 4)]);
    let pieces = vec![
        (0, b"vhdxfile".to_vec()),
        (64 * KIB, piece(4096, b"head", &header)),
        (192 * KIB, regions),
        (MIB, [log, data].concat()),
        (512 * KIB, metadata),
        (576 * KIB, items),
        (2 * MIB, piece(24, b"", &[(0, 3 * MIB + 6, 8), (8, 2, 8), (16, 3 * MIB + 6, 8)])),
        (3 * MIB, vec![7; 64 << 10]),
    ];
    let sums = |pieces: &mut [(u64, Vec<u8>)]| {
        for (_, bytes) in &mut pieces[1..4] {
            put(bytes, 4, 0);
            let sum = crc32c::crc32c(bytes);
            put(bytes, 4, sum);
        }
    };
    Sound { sums, ..Sound::new(4 * MIB, pieces) }
}
