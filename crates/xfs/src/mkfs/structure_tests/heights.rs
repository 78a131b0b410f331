//! Heights of trees of planned volumes.

use crate::format::TreeHeights;
use crate::mkfs::{MkfsOptions, plan};
use uuid::Uuid;

/// docs/format/btrees.md#heights.
#[test]
fn heights_of_default_volumes() {
    let heights = |size| {
        let superblock = plan(&MkfsOptions::new(size, Uuid::nil())).unwrap();
        TreeHeights::new(&superblock.geometry())
    };
    let (bmap_data, bmap_attr) = (7, 5);
    let expected = |alloc, rmap, refcount, inode| TreeHeights {
        alloc,
        inode,
        refcount,
        rmap,
        bmap_data,
        bmap_attr,
    };
    assert_eq!(heights(1 << 30), expected(2, 4, 3, 2));
    assert_eq!(heights(100 << 30), expected(3, 5, 3, 3));
}
