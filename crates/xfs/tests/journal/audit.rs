//! What went to a device, told apart: records of the journal, writes to other places, flushes.

use std::ops::Range;
use undercroft_block::Operation;
use undercroft_block::testing::recorder::{Change, Event, Recording};
use undercroft_xfs::Volume;
use undercroft_xfs::format::log_record::LOG_BLOCK;
use undercroft_xfs::format::log_record_seal::{restore_words, verify_record};
use undercroft_xfs::format::{
    BufferItem, InodeCreateItem, InodeItem, LogItemKind, LogRecordHeader, OperationFlags,
    OperationHeader,
};
use undercroft_xfs::units::Lsn;

/// An item as it is in the journal.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    /// With the data of its runs.
    Buffer(BufferItem, Vec<Vec<u8>>),
    Inode(InodeItem),
    Create(InodeCreateItem),
    Other(LogItemKind),
}

/// A record.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) header: LogRecordHeader,
    /// Bytes with its headers.
    pub(crate) len: usize,
    /// It opens a transaction, or closes one, or says that the volume was unmounted.
    pub(crate) flags: OperationFlags,
    pub(crate) transaction: u32,
    /// It was written with forced unit access.
    pub(crate) durable: bool,
}

/// A step of the writer.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Records that were sent in one go.
    Records(Vec<Record>),
    /// They were answered.
    RecordsDone,
    /// Blocks outside the journal were sent.
    Location(Range<u64>, Vec<u8>),
    PlaceDone(Range<u64>),
    FlushDone,
}

/// A transaction that is whole in the journal.
#[derive(Clone, Debug)]
pub(crate) struct Checkpoint {
    /// Position of its first record.
    pub(crate) start: Lsn,
    /// Bytes of its records.
    pub(crate) bytes: usize,
    pub(crate) items: Vec<Item>,
    /// Index of the step that made it durable.
    pub(crate) durable_at: usize,
}

/// All that a recording tells.
pub(crate) struct Audit {
    pub(crate) log_bytes: usize,
    pub(crate) steps: Vec<Step>,
    pub(crate) checkpoints: Vec<Checkpoint>,
}

struct Open {
    start: Lsn,
    bytes: usize,
    regions: Vec<Vec<u8>>,
}

impl Audit {
    /// Reads a recording of a live volume whose records have `buffer_bytes`.
    pub(crate) fn new(volume: &Volume, recording: &Recording) -> Self {
        let geometry = volume.geometry();
        let first = geometry.sector(geometry.log_start).0;
        let log_bytes = (geometry.log_blocks as usize) << geometry.block_log;
        let log = first..first + (log_bytes / LOG_BLOCK) as u64;
        let mut audit = Self { log_bytes, steps: Vec::new(), checkpoints: Vec::new() };
        let mut submitted = Vec::new();
        let mut open = None;
        // A write that goes on at the start of the journal comes in two parts.
        let mut pending: Option<(Vec<u8>, Vec<u64>)> = None;
        for event in recording.events() {
            match event {
                Event::Submitted { change, .. } => {
                    let sectors = change.sectors().start.0..change.sectors().end.0;
                    submitted.push((change.clone(), sectors.clone()));
                    if change.operation != Operation::Write {
                        continue;
                    }
                    if !log.contains(&sectors.start) {
                        let data = change.data.as_ref().unwrap().to_vec();
                        audit.steps.push(Step::Location(sectors, data));
                        continue;
                    }
                    audit.sent(change, &log, &sectors, &mut pending, &mut open);
                }
                Event::Completed { number, succeeded } => {
                    assert!(succeeded);
                    audit.completed(&submitted[*number as usize], &log);
                }
                Event::Mark(_) => {}
            }
        }
        audit
    }

    fn sent(
        &mut self,
        change: &Change,
        log: &Range<u64>,
        sectors: &Range<u64>,
        pending: &mut Option<(Vec<u8>, Vec<u64>)>,
        open: &mut Option<Open>,
    ) {
        let mut bytes = change.data.as_ref().unwrap().to_vec();
        // The part at the start of the journal may be submitted first: the plug sorts.
        let other = pending.take().map(|(bytes, _)| bytes);
        if let Some(other) = other {
            bytes = if sectors.start == log.start {
                [other, bytes].concat()
            } else {
                [bytes, other].concat()
            };
        } else if is_part(&bytes, sectors, log) {
            *pending = Some((bytes, Vec::new()));
            return;
        }
        let mut records = Vec::new();
        while !bytes.is_empty() {
            let header = LogRecordHeader::decode(&bytes).expect("writes consist of records");
            let headers = header.header_blocks() as usize;
            let len = headers * LOG_BLOCK + header.data_bytes as usize;
            let mut record: Vec<u8> = bytes.drain(..len).collect();
            verify_record(&record, headers).unwrap();
            restore_words(&mut record, headers);
            let (flags, transaction) =
                self.operations(&header, &record[headers * LOG_BLOCK..], len, open);
            let durable = change.force_unit_access;
            records.push(Record { header, len, flags, transaction, durable });
        }
        self.steps.push(Step::Records(records));
    }

    /// Takes the operations of a record.
    fn operations(
        &mut self,
        header: &LogRecordHeader,
        data: &[u8],
        len: usize,
        open: &mut Option<Open>,
    ) -> (OperationFlags, u32) {
        let (mut at, mut all, mut transaction) = (0, OperationFlags::empty(), 0);
        let mut counted = false;
        for _ in 0..header.operations {
            let operation = OperationHeader::decode(&data[at..]).unwrap();
            at += OperationHeader::LEN;
            let payload = &data[at..at + operation.len as usize];
            at += payload.len();
            all |= operation.flags;
            transaction = operation.transaction;
            match operation.flags {
                OperationFlags::START => {
                    *open = Some(Open { start: header.lsn, bytes: 0, regions: Vec::new() });
                }
                OperationFlags::COMMIT => {
                    let mut done = open.take().expect("a commit follows a start");
                    done.bytes += if counted { 0 } else { len };
                    counted = true;
                    self.checkpoints.push(Checkpoint {
                        start: done.start,
                        bytes: done.bytes,
                        items: items(&done.regions[1..]),
                        durable_at: usize::MAX,
                    });
                }
                OperationFlags::UNMOUNT => {}
                flags if flags.contains(OperationFlags::WAS_CONTINUED) => {
                    let open = open.as_mut().unwrap();
                    open.regions.last_mut().unwrap().extend(payload);
                }
                _ => open.as_mut().unwrap().regions.push(payload.to_vec()),
            }
            if let Some(open) = open.as_mut().filter(|_| !counted) {
                open.bytes += len;
                counted = true;
            }
        }
        (all, transaction)
    }

    fn completed(&mut self, (change, sectors): &(Change, Range<u64>), log: &Range<u64>) {
        match change.operation {
            Operation::Flush => self.steps.push(Step::FlushDone),
            Operation::Write if log.contains(&sectors.start) => {
                self.steps.push(Step::RecordsDone);
                let at = self.steps.len() - 1;
                if let Some(last) = self.checkpoints.last_mut()
                    && change.force_unit_access
                    && last.durable_at == usize::MAX
                {
                    last.durable_at = at;
                }
            }
            Operation::Write => self.steps.push(Step::PlaceDone(sectors.clone())),
            _ => {}
        }
    }
}

/// Whether a write is one of two parts of records that go on at the start of the journal.
fn is_part(bytes: &[u8], sectors: &Range<u64>, log: &Range<u64>) -> bool {
    let mut at = 0;
    while at < bytes.len() {
        let Some(header) = LogRecordHeader::decode(&bytes[at..]) else {
            return true;
        };
        at += header.header_blocks() as usize * LOG_BLOCK + header.data_bytes as usize;
    }
    at > bytes.len() && sectors.end == log.end
}

/// The items in the regions of a transaction.
fn items(regions: &[Vec<u8>]) -> Vec<Item> {
    let (mut items, mut at) = (Vec::new(), 0);
    while at < regions.len() {
        let (kind, count) = LogItemKind::decode(&regions[at]).unwrap();
        let (first, rest) = (&regions[at], &regions[at + 1..at + count]);
        items.push(match kind {
            LogItemKind::Buffer => {
                let item = BufferItem::decode(first).unwrap();
                Item::Buffer(item, rest.to_vec())
            }
            LogItemKind::Inode => Item::Inode(InodeItem::decode(first).unwrap()),
            LogItemKind::InodeCreate => Item::Create(InodeCreateItem::decode(first).unwrap()),
            other => Item::Other(other),
        });
        at += count;
    }
    items
}
