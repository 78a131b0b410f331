//! A pass over the inodes of a volume: each chunk is read once, by all processors.

use undercroft_xfs::format::InodeChunkRecord;
use undercroft_xfs::units::{AgInode, AgNumber, InodeNumber};

use crate::chunks::Chunks;
use crate::error::RepairError;
use crate::subject::Subject;
use crate::threads;

/// Chunks that a thread takes at once.
const STEP: usize = 16;

/// An inode in its place.
pub(crate) struct Found<'b> {
    pub(crate) number: InodeNumber,
    pub(crate) bytes: &'b [u8],
    /// In use, as its chunk says.
    pub(crate) in_use: bool,
}

/// Hands over all inodes that exist, in no order, in threads that have a state each; returns the states.
pub(crate) fn over<S: Send>(
    subject: &Subject,
    chunks: &Chunks,
    start: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &Found<'_>) -> Result<(), RepairError> + Sync,
) -> Result<Vec<S>, RepairError> {
    let groups = (0..).map(AgNumber).zip(&chunks.groups);
    let all: Vec<(AgNumber, InodeChunkRecord)> =
        groups.flat_map(|(ag, group)| group.values().map(move |record| (ag, *record))).collect();
    threads::each(
        all.len().div_ceil(STEP),
        || (start(), Vec::new()),
        |(state, buffer), index| {
            let chunks = &all[index * STEP..all.len().min((index + 1) * STEP)];
            chunks.iter().try_for_each(|(ag, record)| {
                chunk(subject, *ag, record, buffer, &mut |found| work(state, found))
            })
        },
    )
    .map(|states| states.into_iter().map(|(state, _)| state).collect())
}

/// Reads the inodes of a chunk that exist, those that follow each other at once.
fn chunk(
    subject: &Subject,
    ag: AgNumber,
    record: &InodeChunkRecord,
    buffer: &mut Vec<u8>,
    work: &mut dyn FnMut(&Found<'_>) -> Result<(), RepairError>,
) -> Result<(), RepairError> {
    let (geometry, size) = (&subject.geometry, subject.geometry.inode_size());
    let mut left = record.existing();
    while left != 0 {
        let first = left.trailing_zeros();
        let len = (left >> first).trailing_ones();
        left &= u64::MAX.checked_shl(first + len).unwrap_or(0);
        let start = geometry.inode_number(ag, AgInode(record.start.0.saturating_add(first)));
        buffer.resize(len as usize * size, 0);
        subject.scratch.read_into(geometry.inode_sector(start), buffer)?;
        for (index, bytes) in (0..).zip(buffer.chunks_exact(size)) {
            let number = InodeNumber(start.0 + index);
            let in_use = record.free >> (u64::from(first) + index) & 1 == 0;
            work(&Found { number, bytes, in_use })?;
        }
    }
    Ok(())
}
