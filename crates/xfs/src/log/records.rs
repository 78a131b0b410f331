//! The bytes of a checkpoint as records of the journal (docs/format/journal/records.md).
//!
//! Operations are packed while they come. Where the records go is settled later, when everything
//! that the first of them declares clean is known: then they are sealed.

use super::shape::LogShape;
use crate::format::log_record_seal::seal_record;
use crate::format::{
    LogClient, LogRecordHeader, OperationFlags, OperationHeader, TransactionHeader,
};
use crate::units::Lsn;
use std::ops::Range;
use uuid::Uuid;

/// Operations on their way into records.
#[derive(Debug)]
pub(crate) struct RecordStream {
    shape: LogShape,
    transaction: u32,
    /// All records, with room for their headers.
    bytes: Vec<u8>,
    /// Where records start, and how many operations they hold.
    records: Vec<(usize, u32)>,
    regions: u32,
}

/// The common fields of the headers of a sequence of records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seal {
    /// Volume.
    pub(crate) uuid: Uuid,
    /// Where the first record goes.
    pub(crate) position: Lsn,
    /// Where recovery starts.
    pub(crate) tail: Lsn,
    /// Block of the record before the first; all ones if none.
    pub(crate) previous_block: u32,
}

/// Records that can be written.
#[derive(Debug)]
pub(crate) struct SealedRecords {
    /// All records, one behind the other.
    pub(crate) bytes: Vec<u8>,
    /// The bytes of each.
    pub(crate) records: Vec<Range<usize>>,
    /// Block of the last one.
    pub(crate) last_block: u32,
    /// Position behind the last one.
    pub(crate) end: Lsn,
}

impl RecordStream {
    /// An empty transaction, which will take about `bytes` bytes, in `memory`.
    pub(crate) fn new(
        shape: LogShape,
        transaction: u32,
        mut memory: Vec<u8>,
        bytes: usize,
    ) -> Self {
        memory.clear();
        if memory.capacity() < bytes {
            // To grow it would copy its content.
            memory = Vec::with_capacity(bytes);
        }
        let mut stream =
            Self { shape, transaction, bytes: memory, records: Vec::new(), regions: 0 };
        stream.open_record();
        stream.put(OperationFlags::START, &[]);
        // The number of regions is filled in by `finish`.
        let header = TransactionHeader { transaction, regions: 0 };
        stream.put(OperationFlags::empty(), &header.encode());
        stream
    }

    /// A record that says that the volume was unmounted.
    pub(crate) fn unmount(shape: LogShape, transaction: u32) -> Self {
        let (bytes, records) = (Vec::new(), Vec::new());
        let mut stream = Self { shape, transaction, bytes, records, regions: 0 };
        stream.open_record();
        let magic = 0x556e_u64.to_le_bytes();
        stream.emit(LogClient::Log, OperationFlags::UNMOUNT, &magic);
        stream.close_record();
        stream
    }

    /// Appends a region; its length is a multiple of 4.
    pub(crate) fn region(&mut self, payload: &[u8]) {
        debug_assert!(payload.len().is_multiple_of(4) && !payload.is_empty());
        self.regions += 1;
        self.put(OperationFlags::empty(), payload);
    }

    /// Whether nothing but the frame is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.regions == 0
    }

    /// Appends the commit and ends the last record. No more may follow.
    pub(crate) fn finish(&mut self) {
        self.put(OperationFlags::COMMIT, &[]);
        self.close_record();
        // Behind the headers of two operations; records are too long for it to be cut.
        let at = self.shape.header_bytes() + 2 * OperationHeader::LEN;
        let header = TransactionHeader { transaction: self.transaction, regions: self.regions };
        self.bytes[at..at + TransactionHeader::LEN].copy_from_slice(&header.encode());
    }

    /// Bytes of all records. Final once the stream is finished.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Packs an operation, cut over records where it must be.
    fn put(&mut self, flags: OperationFlags, mut payload: &[u8]) {
        const HEADER: usize = OperationHeader::LEN;
        let room = self.room();
        if room < HEADER || (!payload.is_empty() && room <= HEADER) {
            self.next_record();
        }
        let mut room = self.room() - HEADER;
        if payload.len() <= room {
            return self.emit(LogClient::Transaction, flags, payload);
        }
        let mut piece = flags | OperationFlags::CONTINUE;
        while payload.len() > room {
            let (front, rest) = payload.split_at(room);
            self.emit(LogClient::Transaction, piece, front);
            self.next_record();
            payload = rest;
            piece = OperationFlags::WAS_CONTINUED | OperationFlags::CONTINUE;
            room = self.room() - HEADER;
        }
        let last = OperationFlags::WAS_CONTINUED | OperationFlags::END;
        self.emit(LogClient::Transaction, last, payload);
    }

    fn emit(&mut self, client: LogClient, flags: OperationFlags, payload: &[u8]) {
        let header = OperationHeader {
            transaction: self.transaction,
            len: payload.len() as u32,
            client,
            flags,
        };
        let at = self.bytes.len();
        self.bytes.resize(at + OperationHeader::LEN, 0);
        header.encode(&mut self.bytes[at..]);
        self.bytes.extend_from_slice(payload);
        if let Some((_, operations)) = self.records.last_mut() {
            *operations += 1;
        }
    }

    /// Bytes left in the record at hand. They and all payloads are multiples of 4.
    fn room(&self) -> usize {
        let start = self.records.last().map_or(0, |(start, _)| *start);
        self.shape.record_bytes() - (self.bytes.len() - start)
    }

    fn open_record(&mut self) {
        self.records.push((self.bytes.len(), 0));
        self.bytes.resize(self.bytes.len() + self.shape.header_bytes(), 0);
    }

    /// Fills the record at hand with zeroes up to where the next may start.
    fn close_record(&mut self) {
        let start = self.records.last().map_or(0, |(start, _)| *start);
        let len = (self.bytes.len() - start).next_multiple_of(self.shape.unit);
        self.bytes.resize(start + len, 0);
    }

    fn next_record(&mut self) {
        self.close_record();
        self.open_record();
    }

    /// Writes the headers: the records belong at this position.
    pub(crate) fn seal(mut self, seal: &Seal) -> SealedRecords {
        let shape = self.shape;
        let (mut position, mut previous) = (seal.position, seal.previous_block);
        let ends = self.records.iter().skip(1).map(|(start, _)| *start).chain([self.bytes.len()]);
        let mut records = Vec::with_capacity(self.records.len());
        for ((start, operations), end) in self.records.iter().zip(ends) {
            let record = &mut self.bytes[*start..end];
            let mut header =
                LogRecordHeader::new(seal.uuid, position, seal.tail, shape.buffer_bytes);
            header.operations = *operations;
            header.previous_block = previous;
            // The part behind the end of the journal is written at its start.
            let before_end = (shape.blocks - position.block()) as usize;
            seal_record(&header, record, before_end);
            previous = position.block();
            position = shape.advance(position, record.len());
            records.push(*start..end);
        }
        SealedRecords { bytes: self.bytes, records, last_block: previous, end: position }
    }
}
