//! Inode headers of planned groups: changed, and damaged.

use crate::bytes::{Changes, EditBytes, put_be32};
use crate::format::{Agi, Geometry, HeaderError};
use crate::mkfs::{MkfsOptions, ag_static, plan};
use crate::units::{AgInode, AgNumber};
use uuid::Uuid;

fn fresh() -> (Geometry, Vec<u8>) {
    let superblock = plan(&MkfsOptions::new(1 << 30, Uuid::from_u128(3))).unwrap();
    let header = ag_static(&superblock, AgNumber(1)).swap_remove(2);
    (superblock.geometry(), header.bytes)
}

#[test]
fn only_changed_words_are_logged() {
    let (geometry, mut bytes) = fresh();
    let mut agi = Agi::decode(&bytes, &geometry);
    agi.unlinked[63] = AgInode(128);
    agi.finobt_blocks = 2;
    let mut changes = Changes::default();
    agi.encode_changes(&mut EditBytes::new(&mut bytes, &mut changes));
    assert!(changes.ranges().eq(std::iter::once(256..384)));
    assert_eq!(Agi::decode(&bytes, &geometry), agi);
    assert_eq!(Agi::verify(&bytes, &geometry, AgNumber(1)), Ok(()));
}

#[test]
fn damage_is_named() {
    let (geometry, fresh) = fresh();
    let field = |offset: usize, value: u32| {
        let mut bytes = fresh.clone();
        put_be32(&mut bytes, offset, value);
        match Agi::verify(&bytes, &geometry, AgNumber(1)).unwrap_err() {
            HeaderError::Value { field, .. } | HeaderError::Range { field, .. } => field,
            other => panic!("{other}"),
        }
    };
    assert_eq!(field(0, 0), "magicnum");
    assert_eq!(field(20, 0), "root");
    assert_eq!(field(24, 9), "level");
    assert_eq!(field(28, 1), "freecount");
    assert_eq!(field(40, 3), "unlinked");
    assert_eq!(field(328, u32::MAX), "free_root");
    assert_eq!(field(336, 0), "iblocks");
}
