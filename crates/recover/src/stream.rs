//! Ranges of a device read in order: large requests, many of them under way.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use undercroft_block::{
    Bio, BlockDevice, BlockError, Buffer, CompletionQueue, Plug, Sector, read_buffer,
};

/// Sectors of a request.
const PIECE: u64 = 2048;

/// Requests under way: enough for a disk that answers each after some milliseconds.
const UNDER_WAY: usize = 16;

/// Sectors that are read at a time where a piece could not be read.
const RETRY: u64 = 8;

/// Reads ranges of sectors, each in pieces of at most a mebibyte that begin at multiples of `unit`
/// from its start, and hands them over in the order of the ranges. A piece that the device cannot read
/// is read again in small parts, and the error of each that fails is handed over.
pub(crate) fn read_in_order(
    device: &Arc<dyn BlockDevice>,
    ranges: impl IntoIterator<Item = Range<u64>>,
    unit: u64,
    mut visit: impl FnMut(Range<u64>, Result<&[u8], BlockError>),
) {
    let piece = (PIECE / unit).max(1) * unit;
    let mut pieces = ranges.into_iter().flat_map(|range| {
        let starts = range.clone().step_by(piece as usize);
        starts.map(move |start| start..range.end.min(start + piece))
    });
    let (queue, plug) = (CompletionQueue::new(), Plug::new(device));
    let mut order = VecDeque::new();
    let mut arrived: FxHashMap<u64, Result<Buffer, BlockError>> = FxHashMap::default();
    let mut spare: Vec<Buffer> = Vec::new();
    let mut next = 0;
    loop {
        while order.len() < UNDER_WAY
            && let Some(range) = pieces.next()
        {
            let bytes = ((range.end - range.start) * 512) as usize;
            let same = spare.iter().position(|buffer| buffer.len() == bytes);
            let buffer =
                same.map_or_else(|| Buffer::zeroed(bytes), |place| spare.swap_remove(place));
            plug.submit(Bio::read(Sector(range.start), buffer).in_queue(&queue, next));
            order.push_back((next, range));
            next += 1;
        }
        plug.flush();
        let Some((cookie, range)) = order.pop_front() else { return };
        let result = loop {
            if let Some(result) = arrived.remove(&cookie) {
                break result;
            }
            let finished = queue.wait();
            arrived.insert(finished.cookie, finished.completion.into_buffer());
        };
        match result {
            Ok(buffer) => {
                visit(range, Ok(&buffer));
                if spare.len() < UNDER_WAY {
                    spare.push(buffer);
                }
            }
            Err(_) => read_in_parts(device, range, RETRY.next_multiple_of(unit), &mut visit),
        }
    }
}

/// Reads a range part by part.
fn read_in_parts(
    device: &Arc<dyn BlockDevice>,
    range: Range<u64>,
    part: u64,
    visit: &mut impl FnMut(Range<u64>, Result<&[u8], BlockError>),
) {
    for start in range.clone().step_by(part as usize) {
        let end = range.end.min(start + part);
        match read_buffer(device.as_ref(), Sector(start), ((end - start) * 512) as usize) {
            Ok(buffer) => visit(start..end, Ok(&buffer)),
            Err(error) => visit(start..end, Err(error)),
        }
    }
}

/// Ranges that touch or overlap as one. They are in ascending order.
pub(crate) fn joined(ranges: impl IntoIterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut out: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match out.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => out.push(range),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use undercroft_block::{MemoryDevice, write_all_at};

    #[test]
    fn pieces_come_in_order_and_whole() {
        let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(64 << 20));
        for sector in (0..131_072).step_by(1024) {
            write_all_at(&*device, Sector(sector), &[(sector / 1024) as u8; 512]).unwrap();
        }
        let mut seen = Vec::new();
        let ranges = joined([0..1024, 1024..100_000, 110_592..131_072]);
        assert_eq!(ranges.len(), 2);
        read_in_order(&device, ranges, 8, |sectors, bytes| {
            let bytes = bytes.unwrap();
            for (index, block) in bytes.chunks(512 * 1024).enumerate() {
                let at = sectors.start + 1024 * index as u64;
                if at.is_multiple_of(1024) {
                    assert_eq!(block[0], (at / 1024) as u8);
                }
            }
            assert_eq!(bytes.len() as u64, (sectors.end - sectors.start) * 512);
            seen.push(sectors);
        });
        assert_eq!(joined(seen), [0..100_000, 110_592..131_072]);
    }

    #[test]
    fn what_cannot_be_read_is_told_and_the_rest_goes_on() {
        let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(4 << 20));
        let (mut good, mut bad) = (0, 0);
        read_in_order(&device, [0..4096, 8192..8200, 4096..8192], 1, |_, bytes| match bytes {
            Ok(_) => good += 1,
            Err(_) => bad += 1,
        });
        assert_eq!((good, bad), (4, 1));
    }
}
