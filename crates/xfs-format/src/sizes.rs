//! Sizes of on-disk structures as sums of their fields, checked when this is compiled. A structure
//! that gets a field wrong does not build.

use crate::inode::core::offset as at;
use crate::superblock::{CRC_OFFSET, SIZE};
use crate::{
    AllocRecord, BmapRoot, Extent, HeaderLayout, INODE_CRC_OFFSET, InodeChunkRecord,
    InodeCreateItem, InodeItem, LOG_CORE_LEN, OperationHeader, QuotaItem, RefcountKey,
    RefcountRecord, RmapKey, RmapRecord, TransactionHeader, TreeKind,
};

const fn sum(fields: &[usize]) -> usize {
    let (mut sum, mut index) = (0, 0);
    while index < fields.len() {
        sum += fields[index];
        index += 1;
    }
    sum
}

const fn tree_header(tree: TreeKind, crc: bool) -> usize {
    HeaderLayout::new(tree, crc).header_len()
}

/// Records and keys of trees.
const _: () = {
    assert!(AllocRecord::LEN == sum(&[4, 4]), "startblock, blockcount");
    assert!(8 * Extent::LEN == sum(&[1, 54, 52, 21]), "bits: unwritten, offset, block, count");
    assert!(InodeChunkRecord::LEN == sum(&[4, 2, 1, 1, 8]), "start, holes, counts, free");
    assert!(RefcountRecord::LEN == sum(&[4, 4, 4]), "startblock, blockcount, count");
    assert!(RefcountKey::LEN == 4, "startblock");
    assert!(RmapRecord::LEN == sum(&[4, 4, 8, 8]), "startblock, blockcount, owner, offset");
    assert!(RmapKey::LEN == sum(&[4, 8, 8]), "startblock, owner, offset");
};

/// Headers of blocks of trees: magic, level, count and siblings; on version 5 block number, sequence
/// number, volume, owner and checksum, padded in long headers.
const _: () = {
    let (short, long) = (sum(&[4, 2, 2, 4, 4]), sum(&[4, 2, 2, 8, 8]));
    assert!(tree_header(TreeKind::Bnobt, false) == short, "short");
    assert!(tree_header(TreeKind::Bnobt, true) == short + sum(&[8, 8, 16, 4, 4]), "short, v5");
    assert!(tree_header(TreeKind::Bmbt, false) == long, "long");
    assert!(tree_header(TreeKind::Bmbt, true) == long + sum(&[8, 8, 16, 8, 4, 4]), "long, v5");
    assert!(BmapRoot::HEADER_LEN == sum(&[2, 2]), "level, count");
};

/// The inode core ends with the volume, its second version where the checksum of the third begins.
/// The superblock of the largest shape has room for its checksum.
const _: () = {
    assert!(at::UUID + 16 == LOG_CORE_LEN, "core of version 3");
    assert!(at::NEXT_UNLINKED + 4 == INODE_CRC_OFFSET, "core of version 2");
    assert!(at::CRTIME + 8 == at::INO && at::INO + 8 == at::UUID, "times, number, volume");
    assert!(CRC_OFFSET + 4 <= SIZE, "superblock");
};

/// Headers and items of the journal.
const _: () = {
    assert!(OperationHeader::LEN == sum(&[4, 4, 1, 1, 2]), "transaction, len, client, flags");
    assert!(TransactionHeader::LEN == sum(&[4, 4, 4, 4]), "magic, type, transaction, regions");
    let inode = [2, 2, 4, 2, 2, 4, 8, 16, 8, 4, 4];
    assert!(InodeItem::LEN == sum(&inode), "inode item of 64-bit kernels");
    assert!(InodeCreateItem::LEN == sum(&[2, 2, 4, 4, 4, 4, 4, 4]), "chunk of inodes");
    assert!(QuotaItem::LEN == sum(&[2, 2, 4, 8, 4, 4]), "quota item");
};
