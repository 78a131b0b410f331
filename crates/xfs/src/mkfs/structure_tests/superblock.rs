//! Superblocks of plans, encoded, decoded and mutated.

use crate::bytes::{put_be16, put_be32, put_be64};
use crate::format::superblock::{CRC_OFFSET, MAGIC};
use crate::format::{
    Features2, Geometry, Incompat, Superblock, SuperblockError, TreeHeights, VersionBits, checksum,
};
use crate::mkfs::{MkfsOptions, plan};
use crate::units::{AgBlock, AgInode, AgNumber, FsBlock, InodeNumber, Lsn};
use proptest::prelude::*;
use uuid::Uuid;

fn planned() -> Superblock {
    plan(&MkfsOptions::new(1 << 30, Uuid::from_u128(0x1234))).unwrap()
}

fn sector(superblock: &Superblock) -> Vec<u8> {
    let mut bytes = vec![0; 1 << superblock.sector_log];
    superblock.encode(&mut bytes);
    checksum::stamp(&mut bytes, CRC_OFFSET);
    bytes
}

/// The planned superblock with `change` made to its bytes.
fn changed(change: impl FnOnce(&mut [u8])) -> Result<Superblock, SuperblockError> {
    let mut bytes = sector(&planned());
    change(&mut bytes);
    checksum::stamp(&mut bytes, CRC_OFFSET);
    Superblock::decode(&bytes)
}

/// Bytes of a version 4 superblock of the same geometry.
fn version4(bytes: &mut [u8]) {
    put_be16(bytes, 100, 0xb4a4);
    put_be32(bytes, 200, 0x8a);
    put_be32(bytes, 204, 0x8a);
    put_be32(bytes, 180, 4);
    bytes[208..304].fill(0);
}

#[test]
fn fields_survive_encoding() {
    let superblock = Superblock {
        label: *b"twelve bytes",
        stripe_unit: 16,
        stripe_width: 64,
        lsn: Lsn(5),
        flags: 1,
        quota_flags: 0x3f,
        separate_meta_uuid: Uuid::from_u128(9),
        ..planned()
    };
    let mut features = superblock.features;
    features.version |= VersionBits::DALIGN | VersionBits::QUOTA;
    features.incompat |= Incompat::META_UUID;
    features.unknown_ro_compat = 0x8000_0000;
    let superblock = Superblock { features, ..superblock };
    let decoded = Superblock::decode(&sector(&superblock)).unwrap();
    assert_eq!(decoded, superblock);
    assert_eq!(decoded.geometry().meta_uuid, Uuid::from_u128(9));
    assert_eq!(decoded.label_bytes(), b"twelve bytes");
}

#[test]
fn version_4_is_read() {
    let superblock = changed(version4).unwrap();
    let geometry = superblock.geometry();
    assert!(!geometry.features.crc && !geometry.features.rmapbt());
    assert_eq!((geometry.inode_alignment, geometry.sparse_alignment), (4, 0));

    let without_second_word = changed(|bytes| {
        version4(bytes);
        put_be16(bytes, 100, 0x3424);
        put_be32(bytes, 200, 0xffff_ffff);
    });
    let geometry = without_second_word.unwrap().geometry();
    assert_eq!(geometry.features.features2, Features2::empty());
    assert_eq!(geometry.inode_alignment, 0, "the alignment counts only with its version bit");

    let error = changed(|bytes| {
        version4(bytes);
        put_be16(bytes, 100, 0x94a4);
    });
    assert!(matches!(error, Err(SuperblockError::Bits { field: "versionnum", .. })), "{error:?}");
}

#[test]
fn unknown_features_are_told_apart() {
    let error = changed(|bytes| put_be32(bytes, 216, 0x10eb)).unwrap_err();
    assert_eq!(error, SuperblockError::UnknownIncompat { unknown: 0x1000 });
    let superblock = changed(|bytes| put_be32(bytes, 212, 0x1f)).unwrap();
    assert_eq!(superblock.features.unknown_ro_compat, 0x10);
    let superblock = changed(|bytes| put_be32(bytes, 216, 0xfb)).unwrap();
    assert!(superblock.needs_repair());
    let error = changed(|bytes| put_be32(bytes, 212, 0xe)).unwrap_err();
    assert!(matches!(error, SuperblockError::Bits { field: "features_ro_compat", .. }));
}

#[test]
fn damage_is_named() {
    let mut bytes = sector(&planned());
    assert!(matches!(Superblock::decode(&bytes[..100]), Err(SuperblockError::Short { .. })));
    bytes[300] = 1;
    assert!(matches!(Superblock::decode(&bytes), Err(SuperblockError::Checksum(_))));
    bytes[0] = 0;
    assert!(matches!(Superblock::decode(&bytes), Err(SuperblockError::Magic { .. })));

    let field = |change: fn(&mut [u8])| match changed(change).unwrap_err() {
        SuperblockError::Range { field, .. } | SuperblockError::Contradiction { field, .. } => {
            field
        }
        other => panic!("{other}"),
    };
    assert_eq!(field(|bytes| put_be32(bytes, 4, 8192)), "blocksize");
    assert_eq!(field(|bytes| put_be64(bytes, 8, 65_536 * 4 + 1)), "dblocks");
    assert_eq!(field(|bytes| put_be32(bytes, 84, 4095)), "agblocks");
    assert_eq!(field(|bytes| put_be32(bytes, 88, u32::MAX)), "dblocks");
    assert_eq!(field(|bytes| put_be64(bytes, 48, 131_072)), "logstart");
    assert_eq!(field(|bytes| put_be32(bytes, 96, 65_530)), "logstart");
    assert_eq!(field(|bytes| put_be32(bytes, 180, 3)), "inoalignmt");
    assert_eq!(field(|bytes| put_be32(bytes, 228, 3)), "spino_align");
    assert_eq!(field(|bytes| put_be32(bytes, 184, 16)), "unit");
    assert_eq!(field(|bytes| put_be32(bytes, 196, 6000)), "logsunit");
    assert_eq!(field(|bytes| bytes[192] = 5), "dirblklog");
    assert_eq!(field(|bytes| bytes[124] = 17), "agblklog");
    assert_eq!(field(|bytes| put_be64(bytes, 24, 1)), "rextents");
}

#[test]
fn use_as_primary_is_checked_apart() {
    let superblock = planned();
    assert_eq!(superblock.check_primary(1 << 30), Err(SuperblockError::InProgress));
    let superblock = Superblock { in_progress: false, ..superblock };
    assert_eq!(superblock.check_primary(1 << 30), Ok(()));
    let short = SuperblockError::DeviceTooShort { device: 1 << 29, needed: 1 << 30 };
    assert_eq!(superblock.check_primary(1 << 29), Err(short));
    assert!(superblock.check_counters().is_err(), "a plan has no inodes yet");
    let superblock = Superblock { inodes: 64, free_inodes: 61, ..superblock };
    assert_eq!(superblock.check_counters(), Ok(()));
}

/// Calls every method with numbers a damaged volume may contain.
fn exercise(geometry: &Geometry, number: u64) {
    let ag = AgNumber(number as u32);
    let block = AgBlock((number >> 32) as u32);
    let _ = geometry.ag_length(ag);
    let _ = geometry.valid_extent(FsBlock(number), number);
    let _ = geometry.sector(FsBlock(number));
    let _ = geometry.ag_sector(ag, block);
    let _ = geometry.header_sector(ag, 3);
    let _ = geometry.fs_block(ag, block);
    let _ = geometry.inode_number(ag, AgInode(block.0));
    let _ = geometry.valid_inode(InodeNumber(number));
    let _ = geometry.inode_block(AgInode(block.0));
    let _ = geometry.inode_fs_block(InodeNumber(number));
    let _ = geometry.blocks_for(number);
    let _ = (geometry.chunk_blocks(), geometry.chunk_inodes(), geometry.cluster_blocks());
    let _ = (geometry.cluster_alignment(), geometry.dir_leaf_block(), geometry.dir_free_block());
    let _ = (geometry.literal_size(), geometry.dir_block_size(), geometry.ag_header_blocks());
    let _ = (geometry.sectors_per_block(), geometry.inodes_per_block());
    let heights = TreeHeights::new(geometry);
    assert!(heights.alloc > 0 && heights.inode > 0);
}

/// Offsets of multi-byte fields that decide the geometry, with their lengths.
const FIELDS: [(usize, usize); 26] = [
    (4, 4),
    (8, 8),
    (16, 8),
    (48, 8),
    (80, 4),
    (84, 4),
    (88, 4),
    (96, 4),
    (100, 2),
    (102, 2),
    (104, 2),
    (106, 2),
    (120, 1),
    (121, 1),
    (122, 1),
    (123, 1),
    (124, 1),
    (180, 4),
    (184, 4),
    (188, 4),
    (192, 1),
    (193, 1),
    (196, 4),
    (200, 4),
    (216, 4),
    (228, 4),
];

fn any_value() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 0..=64_u64, (0..64_u32).prop_map(|bit| 1 << bit), Just(u64::MAX)]
}

proptest! {
    #[test]
    fn hostile_superblocks_do_no_harm(
        v4 in any::<bool>(),
        fields in prop::collection::vec((prop::sample::select(&FIELDS[..]), any_value()), 0..4),
        bytes in prop::collection::vec((0..512_usize, any::<u8>()), 0..3),
        number in any_value(),
    ) {
        let mut sector = sector(&planned());
        if v4 {
            version4(&mut sector);
        }
        for ((offset, length), value) in fields {
            sector[offset..offset + length].copy_from_slice(&value.to_be_bytes()[8 - length..]);
        }
        for (offset, byte) in bytes {
            sector[offset] = byte;
        }
        checksum::stamp(&mut sector, CRC_OFFSET);
        if let Ok(superblock) = Superblock::decode(&sector) {
            exercise(&superblock.geometry(), number);
            let _ = superblock.check_primary(number);
            let _ = superblock.check_counters();
            if superblock.features.crc && superblock.features.version.contains(VersionBits::MOREBITS) {
                let mut again = vec![0; 1 << superblock.sector_log];
                superblock.encode(&mut again);
                checksum::stamp(&mut again, CRC_OFFSET);
                prop_assert_eq!(Superblock::decode(&again), Ok(superblock));
            }
        }
    }

    /// Sizes that agree with each other, so that most of these pass the simple checks.
    #[test]
    fn extreme_geometries_do_no_harm(
        block_log in 10..=16_u8,
        sector_log in 9..=10_u8,
        inode_log in 9..=11_u8,
        dir_block_log in 0..=3_u8,
        ag_blocks in prop_oneof![Just(1_u32 << 30), Just(1 << 24), 256..=1_u32 << 30],
        ag_count in prop_oneof![Just(u32::MAX), 1..=64_u32, 1..=u32::MAX],
        short in any::<u32>(),
        alignment in prop_oneof![Just(0_u32), 1..=64_u32, any::<u32>()],
        sparse in any::<bool>(),
        number in any_value(),
    ) {
        let inode_log = inode_log.min(block_log - 1);
        let mut superblock = Superblock {
            block_log,
            sector_log,
            log_sector_log: if sector_log > 9 { sector_log } else { 0 },
            inode_log,
            dir_block_log,
            ag_blocks,
            ag_count,
            blocks: (u64::from(ag_blocks) * u64::from(ag_count))
                .saturating_sub(u64::from(short % ag_blocks)),
            rt_extent_blocks: 4,
            log_start: FsBlock(20),
            log_blocks: 100,
            inode_alignment: if sparse { 64 << inode_log >> block_log } else { alignment },
            sparse_alignment: 0,
            ..planned()
        };
        superblock.features.incompat.set(Incompat::SPINODES, sparse);
        superblock.features.version.set(VersionBits::SECTOR, sector_log > 9);
        if let Ok(superblock) = Superblock::decode(&sector(&superblock)) {
            let geometry = superblock.geometry();
            exercise(&geometry, number);
            let last = AgNumber(ag_count - 1);
            prop_assert!(geometry.ag_length(last) >= 64);
            let end = geometry.fs_block(last, AgBlock(geometry.ag_length(last) - 1));
            prop_assert!(geometry.valid_extent(end, 1));
            prop_assert_eq!(geometry.split_block(end).0, last);
            prop_assert!(geometry.sector(end).0 < superblock.blocks << (block_log - 9));
        }
    }

    #[test]
    fn random_bytes_do_no_harm(mut bytes in prop::collection::vec(any::<u8>(), 0..1024)) {
        let _ = Superblock::decode(&bytes);
        if bytes.len() >= 512 {
            put_be32(&mut bytes, 0, MAGIC);
            put_be16(&mut bytes, 100, 0xb4a4);
            let _ = Superblock::decode(&bytes);
        }
    }
}
