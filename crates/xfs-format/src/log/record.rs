//! Record header of the log, and the log as a new volume has it (docs/format/journal/records.md).

use crate::bytes::{array, be32, be64, put_be32, put_be64};
use crate::units::Lsn;
use uuid::Uuid;

/// First word of a record.
pub const MAGIC: u32 = 0xfeed_babe;
/// Bytes of a log block, the unit of positions in the log.
pub const LOG_BLOCK: usize = 512;
/// Saved first words of data blocks in the header, and in each extended header.
pub const CYCLE_WORDS: usize = 64;
/// Offset of the saved first words of data blocks.
pub const CYCLE_WORDS_OFFSET: usize = 44;
/// Offset of the checksum, which is little-endian.
pub const CRC_OFFSET: usize = 32;
/// Smallest buffer in which a record is assembled.
pub const MIN_BUFFER: u32 = 32 << 10;
/// Largest buffer in which a record is assembled.
pub const MAX_BUFFER: u32 = 256 << 10;

const VERSION: u32 = 2;
const FORMAT_LINUX_LE: u32 = 1;
const NO_PREVIOUS: u32 = u32::MAX;

/// Header of one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecordHeader {
    /// Cycle of the log in which the record starts.
    pub cycle: u32,
    /// Layout version; 2 on v5 volumes.
    pub version: u32,
    /// Bytes of data behind the headers, with padding.
    pub data_bytes: u32,
    /// Own position.
    pub lsn: Lsn,
    /// Where recovery starts.
    pub tail: Lsn,
    /// Stored checksum; 0 where none was computed.
    pub crc: u32,
    /// Block of the record before; all ones if none.
    pub previous_block: u32,
    /// Operations in the data.
    pub operations: u32,
    /// Byte order and layout of the items; 1 is little-endian Linux.
    pub format: u32,
    /// User-visible identifier of the volume.
    pub uuid: Uuid,
    /// Size of the buffer in which the record was assembled: decides the number of header blocks.
    pub buffer_bytes: u32,
}

impl LogRecordHeader {
    /// A header of version 2 for a record at `lsn`, without checksum and predecessor.
    #[must_use]
    pub const fn new(uuid: Uuid, lsn: Lsn, tail: Lsn, buffer_bytes: u32) -> Self {
        Self {
            cycle: (lsn.0 >> 32) as u32,
            version: VERSION,
            data_bytes: 0,
            lsn,
            tail,
            crc: 0,
            previous_block: NO_PREVIOUS,
            operations: 0,
            format: FORMAT_LINUX_LE,
            uuid,
            buffer_bytes,
        }
    }

    /// Reads the header of a record; `None` when `block` does not start with the magic number.
    /// Nothing else is checked. `block` is one log block.
    #[must_use]
    pub fn decode(block: &[u8]) -> Option<Self> {
        (be32(block, 0) == MAGIC).then(|| Self {
            cycle: be32(block, 4),
            version: be32(block, 8),
            data_bytes: be32(block, 12),
            lsn: Lsn(be64(block, 16)),
            tail: Lsn(be64(block, 24)),
            crc: u32::from_le_bytes(array(block, CRC_OFFSET)),
            previous_block: be32(block, 36),
            operations: be32(block, 40),
            format: be32(block, 300),
            uuid: Uuid::from_bytes(array(block, 304)),
            buffer_bytes: be32(block, 320),
        })
    }

    /// Writes every field into `block`, one log block; the saved first words and the reserved bytes
    /// are left alone.
    pub fn encode(&self, block: &mut [u8]) {
        put_be32(block, 0, MAGIC);
        put_be32(block, 4, self.cycle);
        put_be32(block, 8, self.version);
        put_be32(block, 12, self.data_bytes);
        put_be64(block, 16, self.lsn.0);
        put_be64(block, 24, self.tail.0);
        block[CRC_OFFSET..CRC_OFFSET + 4].copy_from_slice(&self.crc.to_le_bytes());
        put_be32(block, 36, self.previous_block);
        put_be32(block, 40, self.operations);
        put_be32(block, 300, self.format);
        block[304..320].copy_from_slice(self.uuid.as_bytes());
        put_be32(block, 320, self.buffer_bytes);
    }

    /// Number of header blocks of the record: the main one and the extended ones. They are told by the
    /// record itself: the one before may have been assembled in a smaller buffer (Linux takes the size
    /// of the oldest record for all: docs/format/journal/replay.md#limits-of-linux).
    #[must_use]
    pub const fn header_blocks(&self) -> u32 {
        if self.version & 2 == 0 { 1 } else { header_blocks(self.buffer_bytes) }
    }

    /// Log blocks of the record, headers and data.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        u64::from(self.header_blocks()) + u64::from(self.data_bytes).div_ceil(LOG_BLOCK as u64)
    }

    /// Checks that this can be the header of a record of the volume `uuid`.
    ///
    /// # Errors
    /// The field and its defect.
    pub fn check(&self, uuid: Uuid) -> Result<(), String> {
        let Self { version, data_bytes, buffer_bytes, format, .. } = *self;
        if version == 0 || version & !3 != 0 {
            return Err(format!("h_version is {version}, not 2"));
        }
        if format != FORMAT_LINUX_LE {
            return Err(format!("h_fmt is {format}: not written by a little-endian Linux"));
        }
        if self.uuid != uuid {
            return Err(format!("belongs to volume {}, not to {uuid}", self.uuid));
        }
        if data_bytes == 0 || data_bytes > MAX_BUFFER || buffer_bytes > MAX_BUFFER {
            return Err(format!("h_len {data_bytes} with h_size {buffer_bytes} cannot be"));
        }
        Ok(())
    }
}

/// Number of header blocks of records assembled in a buffer of `buffer_bytes`.
#[must_use]
pub const fn header_blocks(buffer_bytes: u32) -> u32 {
    let blocks = buffer_bytes.div_ceil(MIN_BUFFER);
    if blocks == 0 { 1 } else { blocks }
}

/// The cycle after `cycle`; the magic number of records is none.
#[must_use]
pub const fn next_cycle(cycle: u32) -> u32 {
    let next = cycle.wrapping_add(1);
    if next == MAGIC { next.wrapping_add(1) } else { next }
}

const UNMOUNT_TRANSACTION: u32 = 0xb0c0_d0d0;
const CLIENT_LOG: u8 = 0xaa;
const OPERATION_UNMOUNT: u8 = 0x20;
const UNMOUNT_MAGIC: u16 = 0x556e;

/// The first bytes of a log that holds nothing: one record, at block 0, that says so. The rest of
/// the log must be zero. `stripe_unit` is in bytes, 1 if none, at most 256 KiB.
#[must_use]
pub fn clean_log(uuid: Uuid, stripe_unit: u32, cycle: u32) -> Vec<u8> {
    let buffer = stripe_unit.max(MIN_BUFFER);
    let headers = header_blocks(buffer) as usize;
    let total = (2 * LOG_BLOCK).max(stripe_unit as usize);
    let mut bytes = vec![0; total];
    let lsn = Lsn(u64::from(cycle) << 32);
    let mut header = LogRecordHeader::new(uuid, lsn, lsn, buffer);
    header.data_bytes = (total - headers * LOG_BLOCK) as u32;
    header.operations = 1;
    header.encode(&mut bytes);
    for extended in 1..headers {
        put_be32(&mut bytes, extended * LOG_BLOCK, cycle);
    }
    let data = headers * LOG_BLOCK;
    // The operation: transaction, payload length, client, flags; then the payload.
    put_be32(&mut bytes, data, UNMOUNT_TRANSACTION);
    put_be32(&mut bytes, data + 4, 8);
    bytes[data + 8] = CLIENT_LOG;
    bytes[data + 9] = OPERATION_UNMOUNT;
    bytes[data + 12..data + 14].copy_from_slice(&UNMOUNT_MAGIC.to_le_bytes());
    stamp_cycle(&mut bytes, headers, cycle);
    bytes
}

/// Saves the first word of every data block in the headers and puts the cycle in its place.
/// `record` is a whole record that does not wrap, with `headers` header blocks.
pub fn stamp_cycle(record: &mut [u8], headers: usize, cycle: u32) {
    let blocks = record.len() / LOG_BLOCK - headers;
    for index in 0..blocks {
        let block = (headers + index) * LOG_BLOCK;
        let word = array::<4>(record, block);
        let saved = match index / CYCLE_WORDS {
            0 => CYCLE_WORDS_OFFSET + 4 * index,
            extended => extended * LOG_BLOCK + 4 + 4 * (index % CYCLE_WORDS),
        };
        record[saved..saved + 4].copy_from_slice(&word);
        put_be32(record, block, cycle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_survive_encoding() {
        let uuid = Uuid::from_u128(0x55);
        let header = LogRecordHeader {
            data_bytes: 32_256,
            crc: 0x0102_0304,
            previous_block: 9,
            operations: 77,
            ..LogRecordHeader::new(uuid, Lsn(3 << 32 | 64), Lsn(2 << 32 | 8), 1 << 16)
        };
        let mut block = [0; LOG_BLOCK];
        header.encode(&mut block);
        assert_eq!(block[CRC_OFFSET..CRC_OFFSET + 4], [4, 3, 2, 1]);
        assert_eq!(LogRecordHeader::decode(&block), Some(header.clone()));
        assert_eq!((header.cycle, header.header_blocks()), (3, 2));
        block[0] = 0;
        assert_eq!(LogRecordHeader::decode(&block), None);
    }

    /// The bytes that `mkfs.xfs` writes, as far as they are not the header's fields.
    #[test]
    fn a_clean_log_says_unmounted() {
        let log = clean_log(Uuid::nil(), 1, 1);
        assert_eq!(log.len(), 1024);
        let header = LogRecordHeader::decode(&log).unwrap();
        assert_eq!((header.data_bytes, header.operations, header.lsn), (512, 1, Lsn(1 << 32)));
        assert_eq!(log[44..48], [0xb0, 0xc0, 0xd0, 0xd0], "the first word is saved in the header");
        let operation = [0, 0, 0, 1, 0, 0, 0, 8, 0xaa, 0x20, 0, 0, 0x6e, 0x55, 0, 0];
        assert_eq!(log[512..528], operation);
    }

    #[test]
    fn every_block_of_a_clean_log_carries_the_cycle() {
        let log = clean_log(Uuid::nil(), 256 << 10, 4);
        assert_eq!(log.len(), 256 << 10);
        assert!(log.chunks(LOG_BLOCK).skip(1).all(|block| be32(block, 0) == 4));
        let header = LogRecordHeader::decode(&log).unwrap();
        assert_eq!(header.data_bytes, (256 << 10) - 8 * 512);
    }
}
