//! What removed files left, kept from being used.

use crate::btree::Bnobt;
use crate::error::Error;
use crate::format::AllocRecord;
use crate::group_tree::free_extents;
use crate::units::{AgBlock, AgNumber, FsBlock, InodeNumber};
use crate::volume::Volume;
use std::collections::BTreeMap;
use std::ops::Range;

/// Blocks of a group.
type Part = (AgNumber, AllocRecord);

impl Volume {
    /// Keeps what removed files left from being used, as long as the volume is open: those of these blocks
    /// that are free, and these inodes. All else is taken from elsewhere. Only [`put_back`](crate::ops::put_back)
    /// takes spared blocks.
    ///
    /// # Errors
    /// [`Error::NoSpace`] if there are not as many blocks to be spared; a damaged tree; the device failed.
    pub fn spare(
        &self,
        blocks: &[Range<FsBlock>],
        inodes: impl IntoIterator<Item = InodeNumber>,
    ) -> Result<(), Error> {
        self.spare_blocks(blocks)?;
        for inode in inodes.into_iter().filter(|inode| self.geometry().valid_inode(*inode)) {
            let (ag, inode) = self.geometry().split_inode(inode);
            self.group(ag).busy.spared().add_inode(inode);
        }
        Ok(())
    }

    /// Spares those of these blocks that are free; returns which they are.
    pub(super) fn spare_blocks(&self, blocks: &[Range<FsBlock>]) -> Result<Vec<Part>, Error> {
        // What was freed last is free for data then, and the count of free space is there.
        self.begin()?.commit(&mut [])?;
        self.sync()?;
        self.set_sparing();
        let parts = self.spare_among(blocks)?;
        let count = count(&parts);
        if self.free_space().reserve(count) {
            return Ok(parts);
        }
        for (ag, part) in parts {
            self.group(ag).busy.end_sparing(part);
        }
        Err(Error::NoSpace { needed: count, block_size: self.geometry().block_size() })
    }

    /// Gives these blocks out again as others.
    pub(super) fn end_sparing(&self, parts: &[Part]) {
        for (ag, part) in parts {
            self.group(*ag).busy.end_sparing(*part);
        }
        self.free_space().add(i64::try_from(count(parts)).unwrap_or(i64::MAX));
    }

    /// Spares the parts of these ranges that are free, each while its group is locked.
    fn spare_among(&self, blocks: &[Range<FsBlock>]) -> Result<Vec<Part>, Error> {
        let geometry = self.geometry();
        let mut wanted: BTreeMap<AgNumber, Vec<Range<u32>>> = BTreeMap::new();
        for range in blocks {
            let len = range.end.0.saturating_sub(range.start.0);
            if !geometry.valid_extent(range.start, len) {
                continue;
            }
            let (ag, start) = geometry.split_block(range.start);
            // No longer than the group.
            wanted.entry(ag).or_default().push(start.0..start.0 + len as u32);
        }
        let mut parts = Vec::new();
        for (ag, ranges) in wanted {
            let (ranges, busy) = (union(ranges), &self.group(ag).busy);
            let mut at = 0;
            free_extents::<Bnobt>(self, ag, |free| {
                let end = free.start.0.saturating_add(free.len);
                while at < ranges.len() && ranges[at].end <= free.start.0 {
                    at += 1;
                }
                for range in ranges[at..].iter().take_while(|range| range.start < end) {
                    let start = range.start.max(free.start.0);
                    let len = range.end.min(end) - start;
                    let part = AllocRecord { start: AgBlock(start), len };
                    busy.spare(part);
                    parts.push((ag, part));
                }
            })?;
        }
        Ok(parts)
    }
}

fn count(parts: &[Part]) -> u64 {
    parts.iter().map(|(_, part)| u64::from(part.len)).sum()
}

/// Disjoint ranges of the same blocks, ascending.
fn union(mut ranges: Vec<Range<u32>>) -> Vec<Range<u32>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut out: Vec<Range<u32>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match out.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => out.push(range),
        }
    }
    out
}
