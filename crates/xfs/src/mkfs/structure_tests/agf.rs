//! Free-space headers of planned groups: changed, and damaged.

use crate::bytes::{Changes, EditBytes, put_be32};
use crate::format::{Agf, Geometry, HeaderError};
use crate::mkfs::{MkfsOptions, ag_static, plan};
use crate::units::AgNumber;
use uuid::Uuid;

fn fresh() -> (Geometry, Vec<u8>) {
    let superblock = plan(&MkfsOptions::new(1 << 30, Uuid::from_u128(3))).unwrap();
    let header = ag_static(&superblock, AgNumber(1)).swap_remove(1);
    (superblock.geometry(), header.bytes)
}

#[test]
fn only_changed_words_are_logged() {
    let (geometry, mut bytes) = fresh();
    let mut agf = Agf::decode(&bytes, &geometry);
    let mut changes = Changes::default();
    agf.encode_changes(&mut EditBytes::new(&mut bytes, &mut changes));
    assert!(changes.is_empty());
    agf.free_blocks -= 10;
    agf.longest -= 10;
    agf.encode_changes(&mut EditBytes::new(&mut bytes, &mut changes));
    assert!(changes.ranges().eq(std::iter::once(0..128)));
    assert_eq!(Agf::decode(&bytes, &geometry), agf);
    assert_eq!(Agf::verify(&bytes, &geometry, AgNumber(1)), Ok(()));
}

#[test]
fn damage_is_named() {
    let (geometry, fresh) = fresh();
    let field = |offset: usize, value: u32| {
        let mut bytes = fresh.clone();
        put_be32(&mut bytes, offset, value);
        match Agf::verify(&bytes, &geometry, AgNumber(1)).unwrap_err() {
            HeaderError::Value { field, .. } | HeaderError::Range { field, .. } => field,
            HeaderError::Uuid { .. } => "uuid",
            other => panic!("{other}"),
        }
    };
    assert_eq!(field(0, 0), "magicnum");
    assert_eq!(field(8, 2), "seqno");
    assert_eq!(field(12, 65_537), "length");
    assert_eq!(field(16, 0), "bno_root");
    assert_eq!(field(20, 65_536), "cnt_root");
    assert_eq!(field(28, 0), "bno_level");
    assert_eq!(field(36, 5), "rmap_level");
    assert_eq!(field(40, 119), "flfirst");
    assert_eq!(field(52, 65_537), "freeblks");
    assert_eq!(field(56, 65_536), "longest");
    assert_eq!(field(64, 1), "uuid");
    assert_eq!(field(84, 0), "refcount_blocks");
    let error = Agf::verify(&fresh, &geometry, AgNumber(0)).unwrap_err();
    assert_eq!(error.to_string(), "seqno is 0x1, expected 0x0");
}
