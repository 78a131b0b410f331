//! Records of every kind made from small numbers.

use super::super::{Bmbt, Bnobt, BtreeKind, Cntbt, Finobt, Inobt, Refcountbt, Rmapbt};
use super::store::TestPointer;
use crate::format::{
    AllocRecord, Extent, InodeChunkRecord, RefcountDomain, RefcountRecord, RmapFlags, RmapOwner,
    RmapRecord,
};
use crate::units::{AgBlock, AgInode, FileBlock, FsBlock};
use std::fmt;

/// A kind whose records can be made from numbers.
pub(super) trait Sample:
    BtreeKind<Record: PartialEq + fmt::Debug, Pointer: TestPointer>
{
    /// Most records of a leaf and entries of a node; small, so that trees get high. Odd and even.
    const FANOUT: (usize, usize);
    /// Size of the fork with the root, for trees rooted in an inode.
    const FORK: Option<usize> = None;

    /// The `number`-th record. Another `variant` gives the same key, with other content.
    fn sample(number: u32, variant: u8) -> Self::Record;
}

fn extent(number: u32) -> AllocRecord {
    // Gaps of at least one block between extents of 1 to 7.
    AllocRecord { start: AgBlock(number * 8), len: 1 + number.wrapping_mul(2_654_435_761) % 7 }
}

impl Sample for Bnobt {
    const FANOUT: (usize, usize) = (16, 9);

    fn sample(number: u32, variant: u8) -> AllocRecord {
        AllocRecord { len: 1 + u32::from(variant) % 7, ..extent(number) }
    }
}

impl Sample for Cntbt {
    const FANOUT: (usize, usize) = (57, 38);

    fn sample(number: u32, _: u8) -> AllocRecord {
        extent(number)
    }
}

fn chunk(number: u32, variant: u8) -> InodeChunkRecord {
    let free = !(u64::MAX.checked_shl(u32::from(variant % 64)).unwrap());
    let freecount = variant % 64;
    InodeChunkRecord { start: AgInode(64 * number), holemask: 0, count: 64, freecount, free }
}

impl Sample for Inobt {
    const FANOUT: (usize, usize) = (12, 17);

    fn sample(number: u32, variant: u8) -> InodeChunkRecord {
        chunk(number, variant)
    }
}

impl Sample for Finobt {
    const FANOUT: (usize, usize) = (4, 5);

    fn sample(number: u32, variant: u8) -> InodeChunkRecord {
        chunk(number, variant)
    }
}

impl Sample for Rmapbt {
    const FANOUT: (usize, usize) = (8, 4);

    /// Three owners per start, and lengths from 1 to 30 blocks: records overlap at will.
    fn sample(number: u32, variant: u8) -> RmapRecord {
        let unwritten = if variant % 2 == 1 { RmapFlags::UNWRITTEN } else { RmapFlags::empty() };
        RmapRecord {
            start: AgBlock(number / 3),
            len: 1 + (u32::from(variant) * 7 + number * 13) % 30,
            owner: RmapOwner(128 + u64::from(number % 3)),
            offset: FileBlock(u64::from(number) * 3),
            flags: unwritten,
        }
    }
}

impl Sample for Refcountbt {
    const FANOUT: (usize, usize) = (17, 25);

    fn sample(number: u32, variant: u8) -> RefcountRecord {
        let cow = number % 2 == 1;
        let domain = if cow { RefcountDomain::Cow } else { RefcountDomain::Shared };
        let refcount = if cow { 1 } else { 2 + u32::from(variant) };
        RefcountRecord { domain, start: AgBlock(number * 4), len: 1 + number % 3, refcount }
    }
}

impl Sample for Bmbt {
    const FANOUT: (usize, usize) = (11, 10);
    const FORK: Option<usize> = Some(68);

    fn sample(number: u32, variant: u8) -> Extent {
        Extent {
            offset: FileBlock(u64::from(number) * 5),
            start: FsBlock(u64::from(number) << 20 | u64::from(variant)),
            len: 1 + u32::from(variant) % 5,
            unwritten: variant % 2 == 1,
        }
    }
}
