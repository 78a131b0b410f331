//! Samples for tests: a geometry, and the example of docs/format/inodes.md#example.

use crate::units::{FsBlock, InodeNumber};
use crate::{Features, Geometry, Incompat, RoCompat};
use uuid::Uuid;

/// A 1 GiB volume with the given block and inode sizes and today's default features.
pub fn geometry(block_log: u8, inode_log: u8) -> Geometry {
    let ag_blocks = 1 << (28 - block_log);
    let uuid = Uuid::from_u128(0x1247_d4bd_7471_47ae_ab04_7c3a_9f76_97f2);
    Geometry {
        block_log,
        sector_log: 9,
        inode_log,
        dir_block_log: 0,
        blocks: 1 << (30 - block_log),
        ag_blocks,
        ag_count: 4,
        ag_block_log: 28 - block_log,
        features: Features {
            ro_compat: RoCompat::all(),
            incompat: Incompat::FTYPE
                | Incompat::SPINODES
                | Incompat::BIGTIME
                | Incompat::NREXT64
                | Incompat::PARENT,
            crc: true,
            ..Features::default()
        },
        meta_uuid: uuid,
        uuid,
        log_start: FsBlock(u64::from(ag_blocks) * 2),
        log_blocks: 1 << (26 - block_log),
        log_stripe_unit: 1,
        inode_alignment: (64 << inode_log) >> block_log,
        sparse_alignment: (32 << inode_log) >> block_log,
        stripe_unit: 0,
        stripe_width: 0,
        inode_max_percent: 25,
        root_inode: InodeNumber(128),
    }
}

/// The root inode of a fresh volume (docs/format/inodes.md#example).
pub fn root_inode() -> Vec<u8> {
    let hex = "494e41ed030100000000000000000000000000020000000000000000000000003\
        6b74dd4c6adf3c836b74dd4c6adf3c836b74dd4c6ae7c80\
        00000000000000060000000000000000000000000000000000002501000000000000000000000000\
        ffffffff443297e800000000000000040000000000000000\
        000000000000001800000000000000000000000000000000\
        36b74dd4c6adf3c800000000000000801247d4bd747147aeab047c3a9f7697f2";
    let mut bytes = from_hex(hex);
    assert_eq!(bytes.len(), 176);
    bytes.extend(from_hex("000000000080"));
    bytes.resize(472, 0);
    bytes.extend(from_hex("001901000c0602"));
    bytes.extend(b"xfs:autofsckrepair");
    bytes.resize(512, 0);
    bytes
}

/// Bytes of a hexadecimal text.
#[must_use]
pub fn from_hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes();
    assert_eq!(digits.len() % 2, 0);
    digits
        .chunks(2)
        .map(|pair| {
            let pair = std::str::from_utf8(pair).expect("digits are ASCII");
            u8::from_str_radix(pair, 16).expect("all are digits")
        })
        .collect()
}
