//! How a record is turned into its form on the disk, and back: saved first words, cycles, checksum
//! (docs/format/journal/records.md#saved-words).
//!
//! A record is in memory as one slice, also when it is on both sides of the log's end.

use super::record::{
    CRC_OFFSET, CYCLE_WORDS, CYCLE_WORDS_OFFSET, LOG_BLOCK, LogRecordHeader, MAGIC, next_cycle,
    stamp_cycle,
};
use crate::bytes::{array, be32, put_be32};
use crate::checksum::ChecksumError;

/// Bytes of the main header that the checksum covers, by 64-bit and by 32-bit x86 writers.
const HEADER_COVERED: [usize; 2] = [328, 324];
/// Bytes of an extended header that the checksum covers.
const EXTENDED_COVERED: usize = 260;
/// Data whose words one header saves.
const WORDS_BYTES: usize = CYCLE_WORDS * LOG_BLOCK;

/// Completes `record`: header blocks, still empty, and data with its padding. `header` tells the
/// rest, of which checksum and length of data are filled in. The first `before_end` blocks lie
/// before the end of the log, the others at its start, in the next cycle.
pub fn seal_record(header: &LogRecordHeader, record: &mut [u8], before_end: usize) {
    let headers = header.header_blocks() as usize;
    let data_bytes = (record.len() - headers * LOG_BLOCK) as u32;
    LogRecordHeader { data_bytes, crc: 0, ..header.clone() }.encode(record);
    for extended in 1..headers {
        put_be32(record, extended * LOG_BLOCK, header.cycle);
    }
    stamp_cycle(record, headers, header.cycle);
    let next = next_cycle(header.cycle);
    for block in record.chunks_exact_mut(LOG_BLOCK).skip(before_end) {
        put_be32(block, 0, next);
    }
    let crc = record_crc(record, headers, HEADER_COVERED[0]);
    record[CRC_OFFSET..CRC_OFFSET + 4].copy_from_slice(&crc.to_le_bytes());
}

/// Checks the checksum of a record as it is on the disk.
///
/// # Errors
/// The record is torn or damaged.
pub fn verify_record(record: &[u8], headers: usize) -> Result<(), ChecksumError> {
    let stored = u32::from_le_bytes(array(record, CRC_OFFSET));
    let computed = record_crc(record, headers, HEADER_COVERED[0]);
    if computed == stored || record_crc(record, headers, HEADER_COVERED[1]) == stored {
        return Ok(());
    }
    Err(ChecksumError { stored, computed })
}

/// Puts the saved first words of the data blocks back to their places.
pub fn restore_words(record: &mut [u8], headers: usize) {
    let blocks = (record.len() / LOG_BLOCK).saturating_sub(headers);
    for index in 0..blocks.min(CYCLE_WORDS * headers) {
        let saved = match index / CYCLE_WORDS {
            0 => CYCLE_WORDS_OFFSET + 4 * index,
            extended => extended * LOG_BLOCK + 4 + 4 * (index % CYCLE_WORDS),
        };
        let block = (headers + index) * LOG_BLOCK;
        record.copy_within(saved..saved + 4, block);
    }
}

/// Checksum of a record: the covered part of its header, extended headers as far as the data needs
/// them, and the data.
fn record_crc(record: &[u8], headers: usize, covered: usize) -> u32 {
    let data = &record[headers * LOG_BLOCK..];
    let mut crc = crc32c::crc32c(&record[..CRC_OFFSET]);
    crc = crc32c::crc32c_append(crc, &[0; 4]);
    crc = crc32c::crc32c_append(crc, &record[CRC_OFFSET + 4..covered]);
    for extended in 1..data.len().div_ceil(WORDS_BYTES).min(headers) {
        let start = extended * LOG_BLOCK;
        crc = crc32c::crc32c_append(crc, &record[start..start + EXTENDED_COVERED]);
    }
    crc32c::crc32c_append(crc, data)
}

/// Cycle in which a log block was written: its first word, or the second one of a header.
#[must_use]
pub fn cycle_of(block: &[u8]) -> u32 {
    let first = be32(block, 0);
    if first == MAGIC { be32(block, 4) } else { first }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Lsn;
    use uuid::Uuid;

    fn unmount(block: u64, tail: u64, previous: u32) -> LogRecordHeader {
        let uuid = Uuid::from_u128(0x7d88_9b8d_06d7_40c2_ab80_c062_2dd0_5dc6);
        let (lsn, tail) = (Lsn(1 << 32 | block), Lsn(1 << 32 | tail));
        let header = LogRecordHeader::new(uuid, lsn, tail, 32 << 10);
        LogRecordHeader { previous_block: previous, operations: 1, ..header }
    }

    /// The kernel's unmount record of the reference.
    #[test]
    fn checksums_are_the_kernels() {
        let mut record = vec![0; 1024];
        let operation = [0x5f, 0x11, 0xcb, 0x94, 0, 0, 0, 0, 0xaa, 0x20, 0, 0, 0x6e, 0x55];
        record[512..526].copy_from_slice(&operation);
        seal_record(&unmount(6, 4, 4), &mut record, 2);
        assert_eq!(record[CRC_OFFSET..CRC_OFFSET + 4], [0xc2, 0x4c, 0xd7, 0x01]);
        assert_eq!(record[44..48], operation[..4]);
        assert_eq!(verify_record(&record, 1), Ok(()));
        restore_words(&mut record, 1);
        assert_eq!(record[512..526], operation);
    }

    #[test]
    fn records_come_back_whole_wherever_they_wrap() {
        for (buffer, data_blocks) in [(32_usize << 10, 63), (256 << 10, 3), (256 << 10, 504)] {
            let headers = buffer.div_ceil(32 << 10);
            let blocks = headers + data_blocks;
            let word = |at: usize| (at as u32).wrapping_mul(0x9e37_79b9);
            let data = (0..data_blocks * 128).flat_map(|at| word(at).to_be_bytes());
            let data = data.collect::<Vec<_>>();
            for before_end in [1, 2, headers.max(2) - 1, blocks / 2, blocks - 1, blocks] {
                let header = LogRecordHeader { buffer_bytes: buffer as u32, ..unmount(9, 4, 4) };
                let mut record = vec![0; headers * 512];
                record.extend(&data);
                seal_record(&header, &mut record, before_end);
                for (index, block) in record.chunks(512).enumerate() {
                    assert_eq!(cycle_of(block), if index < before_end { 1 } else { 2 });
                }
                assert_eq!(verify_record(&record, headers), Ok(()));
                let mut torn = record.clone();
                torn[headers * 512 + 77] ^= 1;
                assert!(verify_record(&torn, headers).is_err());
                restore_words(&mut record, headers);
                assert_eq!(record[headers * 512..], data);
            }
        }
    }
}
