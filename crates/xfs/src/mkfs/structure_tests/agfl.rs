//! Free lists of planned groups.

use crate::bytes::Changes;
use crate::bytes::{EditBytes, be32, put_be32};
use crate::format::agfl::{
    EMPTY_FIRST, is_short, live, put_tail, renew, ring, slots, take_head, verify,
};
use crate::format::{Agf, Geometry, HeaderError};
use crate::mkfs::{MkfsOptions, ag_static, plan};
use crate::units::{AgBlock, AgNumber};
use proptest::prelude::*;
use std::collections::VecDeque;
use uuid::Uuid;

fn fresh() -> (Geometry, Agf, Vec<u8>) {
    let superblock = plan(&MkfsOptions::new(1 << 30, Uuid::from_u128(3))).unwrap();
    let geometry = superblock.geometry();
    let mut blocks = ag_static(&superblock, AgNumber(1));
    let agf = Agf::decode(&blocks[1].bytes, &geometry);
    (geometry, agf, blocks.swap_remove(3).bytes)
}

#[test]
fn the_first_block_lands_in_slot_one() {
    let (geometry, mut agf, mut bytes) = fresh();
    let mut changes = Changes::default();
    let mut edit = EditBytes::new(&mut bytes, &mut changes);
    assert!(put_tail(&mut agf, &mut edit, &geometry, AgBlock(7)));
    assert_eq!(be32(&bytes, 36 + 4), 7);
    assert_eq!((agf.free_list_first, agf.free_list_last, agf.free_list_count), (1, 1, 1));
    assert_eq!(verify(&bytes, &geometry, AgNumber(1)), Ok(()));
    put_be32(&mut bytes, 36, 65_536);
    assert!(matches!(
        verify(&bytes, &geometry, AgNumber(1)),
        Err(HeaderError::Range { field: "slot", .. })
    ));
}

#[test]
fn a_list_of_an_old_kernel_is_recognised_and_renewed() {
    let (geometry, mut agf, mut bytes) = fresh();
    // 118 slots: from 116 it went on at slot 0 after slot 117.
    (agf.free_list_first, agf.free_list_last, agf.free_list_count) = (116, 1, 4);
    let blocks = [41, 42, 43, 44].map(AgBlock);
    for (slot, block) in [116, 117, 0, 1].into_iter().zip(blocks) {
        put_be32(&mut bytes, 36 + 4 * slot, block.0);
    }
    assert!(is_short(&agf, &geometry));
    assert!(live(&agf, &bytes, &geometry).eq(blocks));
    let mut taken = agf.clone();
    for block in blocks {
        assert_eq!(take_head(&mut taken, &bytes, &geometry).unwrap(), Some(block));
    }
    let mut changes = Changes::default();
    renew(&mut agf, &mut EditBytes::new(&mut bytes, &mut changes), &geometry);
    assert_eq!(agf.free_list_first, EMPTY_FIRST);
    assert_eq!(ring(&agf, &geometry), Ok(slots(&geometry)));
    assert!(live(&agf, &bytes, &geometry).eq(blocks));
    for (first, last, count) in [(116, 1, 6), (116, 1, 3), (118, 1, 2), (5, 9, 6)] {
        (agf.free_list_first, agf.free_list_last, agf.free_list_count) = (first, last, count);
        let error = ring(&agf, &geometry).unwrap_err();
        assert!(matches!(error, HeaderError::FreeList { slots: 119, .. }), "{error}");
    }
}

#[test]
fn blocks_outside_the_group_are_not_handed_out() {
    let (geometry, mut agf, bytes) = fresh();
    (agf.free_list_last, agf.free_list_count) = (1, 1);
    assert!(take_head(&mut agf, &bytes, &geometry).is_err());
}

proptest! {
    #[test]
    fn the_ring_is_a_queue(steps in prop::collection::vec(any::<Option<u16>>(), 0..600)) {
        let (geometry, mut agf, mut bytes) = fresh();
        let mut model = VecDeque::new();
        for step in steps {
            if let Some(block) = step.map(|block| AgBlock(u32::from(block).max(1))) {
                let mut changes = Changes::default();
                let mut edit = EditBytes::new(&mut bytes, &mut changes);
                let room = put_tail(&mut agf, &mut edit, &geometry, block);
                prop_assert_eq!(room, model.len() < 119);
                if room {
                    model.push_back(block);
                }
            } else {
                let taken = take_head(&mut agf, &bytes, &geometry).unwrap();
                prop_assert_eq!(taken, model.pop_front());
            }
            prop_assert_eq!(ring(&agf, &geometry), Ok(slots(&geometry)));
        }
        prop_assert!(live(&agf, &bytes, &geometry).eq(model.iter().copied()));
    }
}
