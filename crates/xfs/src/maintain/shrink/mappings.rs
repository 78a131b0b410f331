//! The mappings of files in what goes, in the order of the device.
//!
//! Reverse mappings tell them. A volume without these is scanned: all inodes are read, and as many
//! mappings are kept as memory may have; once these have moved, another scan finds the rest.

use super::size::Size;
use crate::error::Error;
use crate::format::RmapRecord;
use crate::group_tree::owners;
use crate::scan::{GroupPart, for_each_mapping};
use crate::units::{AgBlock, AgNumber};
use crate::volume::Volume;
use std::collections::VecDeque;
use std::ops::ControlFlow;

/// Bytes of a window.
const WINDOW_BYTES: u64 = 32 << 20;

/// Most mappings of a window.
const WINDOW_RECORDS: usize = 4096;

/// Most mappings that a scan keeps, some 50 MB; it has twice as many for a while.
const KEPT: usize = 1 << 20;

/// A mapping and its group.
type Found = (AgNumber, RmapRecord);

/// The mappings that are left to move, a window at a time.
pub(super) struct Mappings<'v> {
    volume: &'v Volume,
    size: Size,
    parts: VecDeque<GroupPart>,
    /// What a scan found, on a volume without reverse mappings.
    scanned: VecDeque<Found>,
    /// A scan is needed: the last one kept not all, or there was none.
    incomplete: bool,
}

impl<'v> Mappings<'v> {
    pub(super) fn new(volume: &'v Volume, size: Size) -> Self {
        let parts = size.tail(volume.geometry()).collect();
        Self { volume, size, parts, scanned: VecDeque::new(), incomplete: true }
    }

    /// The first mappings, all of one group; none if no file has blocks in what goes.
    ///
    /// # Errors
    /// A structure is damaged; the device failed.
    pub(super) fn window(&mut self) -> Result<Option<(AgNumber, Vec<RmapRecord>)>, Error> {
        if !self.volume.geometry().features.rmapbt() {
            return self.scanned_window();
        }
        while let Some(part) = self.parts.front() {
            let records = self.first_in(*part)?;
            if !records.is_empty() {
                return Ok(Some((part.ag, records)));
            }
            self.parts.pop_front();
        }
        Ok(None)
    }

    /// The first mappings in a part of a group, by its reverse mappings.
    fn first_in(&self, part: GroupPart) -> Result<Vec<RmapRecord>, Error> {
        let (mut records, mut left) = (Vec::new(), window_blocks(self.volume));
        owners(self.volume, part.ag, AgBlock(part.start), part.len, |record| {
            if record.owner.as_inode().is_some() {
                let len = record.len.min(left);
                left -= len;
                records.push(RmapRecord { len, ..record });
            }
            let full = left == 0 || records.len() == WINDOW_RECORDS;
            if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(records)
    }

    fn scanned_window(&mut self) -> Result<Option<(AgNumber, Vec<RmapRecord>)>, Error> {
        if self.scanned.is_empty() && self.incomplete {
            self.scanned = first_by_scan(self.volume, self.size)?.into();
            self.incomplete = self.scanned.len() == KEPT;
        }
        let Some((ag, first)) = self.scanned.pop_front() else { return Ok(None) };
        let mut left = window_blocks(self.volume).saturating_sub(first.len);
        let mut records = vec![first];
        while let Some((group, record)) = self.scanned.front()
            && *group == ag
            && record.len <= left
            && records.len() < WINDOW_RECORDS
        {
            left -= record.len;
            records.push(*record);
            self.scanned.pop_front();
        }
        Ok(Some((ag, records)))
    }
}

/// Blocks of a window.
fn window_blocks(volume: &Volume) -> u32 {
    (WINDOW_BYTES >> volume.geometry().block_log).max(1) as u32
}

/// Visits all mappings of files in what goes: by reverse mappings in their order, else in any.
///
/// # Errors
/// As for [`Mappings::window`].
pub(super) fn for_each(
    volume: &Volume,
    size: Size,
    visit: &mut dyn FnMut(RmapRecord),
) -> Result<(), Error> {
    if !volume.geometry().features.rmapbt() {
        return for_each_mapping(volume, &tail_parts(volume, size), &mut |_, record| {
            visit(record);
        });
    }
    size.tail(volume.geometry()).try_for_each(|part| {
        owners(volume, part.ag, AgBlock(part.start), part.len, |record| {
            if record.owner.as_inode().is_some() {
                visit(record);
            }
            ControlFlow::Continue(())
        })
    })
}

fn tail_parts(volume: &Volume, size: Size) -> Vec<GroupPart> {
    size.tail(volume.geometry()).collect()
}

/// The first mappings in what goes, as many as are kept, in pieces of at most a window.
fn first_by_scan(volume: &Volume, size: Size) -> Result<Vec<Found>, Error> {
    let (mut found, most) = (Vec::<Found>::new(), window_blocks(volume));
    let order = |(ag, record): &Found| (*ag, record.start, record.owner.0, record.offset);
    for_each_mapping(volume, &tail_parts(volume, size), &mut |ag, mut record| {
        // All owners of shared blocks have their pieces end at the same ones.
        while record.len > 0 {
            let len = record.len.min(most - record.start.0 % most);
            found.push((ag, RmapRecord { len, ..record }));
            record.start.0 += len;
            record.offset.0 += u64::from(len);
            record.len -= len;
        }
        if found.len() >= 2 * KEPT {
            found.select_nth_unstable_by_key(KEPT, order);
            found.truncate(KEPT);
        }
    })?;
    found.sort_unstable_by_key(order);
    found.truncate(KEPT);
    Ok(found)
}
