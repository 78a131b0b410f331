//! Recovery of journals made up for the purpose: the cases of
//! docs/format/journal/writing.md#answers-to-mistakes, with the verdicts that Linux gives, but for
//! cases where it loses durable changes (docs/format/journal/replay.md#limits-of-linux).

use super::recover;
use crate::error::Error;
use crate::format::log_record::{CRC_OFFSET, LOG_BLOCK};
use crate::format::log_record_seal::seal_record;
use crate::format::{
    BufferItem, BufferItemType, BufferKind, FileType, Header, LogRecordHeader, TransactionHeader,
};
use crate::geometry::Geometry;
use crate::mkfs::{self, MkfsOptions};
use crate::ops::NewInode;
use crate::units::Lsn;
use crate::volume::{Volume, read_superblock};
use std::sync::Arc;
use undercroft_block::{BlockDevice, MemoryDevice, Sector, read_exact_at, write_all_at};
use uuid::Uuid;

const START: u8 = 1;
const COMMIT: u8 = 2;
const CONTINUE: u8 = 4;
const WAS_CONTINUED: u8 = 8;
const END: u8 = 16;

/// Transaction, flags, payload.
pub(super) type Operation = (u32, u8, Vec<u8>);

/// A new volume and the end of its journal.
pub(super) struct Journal {
    pub(super) device: Arc<dyn BlockDevice>,
    pub(super) geometry: Geometry,
    pub(super) head: u64,
}

impl Journal {
    pub(super) fn new() -> Self {
        let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(64 << 20));
        let plan = mkfs::plan(&MkfsOptions::new(64 << 20, Uuid::from_u128(1))).unwrap();
        let root = NewInode::new(FileType::Directory, 0o755);
        let volume = mkfs::begin(&device, plan, &root).unwrap();
        mkfs::finish(&volume, false).unwrap();
        let geometry = volume.geometry().clone();
        drop(volume);
        Self { device, geometry, head: 2 }
    }

    pub(super) fn sector(&self, block: u64) -> Sector {
        Sector(self.geometry.sector(self.geometry.log_start).0 + block)
    }

    /// Writes a record of these operations at the head; returns the block of it.
    pub(super) fn record(&mut self, tail: u64, buffer: u32, operations: &[Operation]) -> u64 {
        self.record_by(0x69, tail, buffer, operations)
    }

    /// Writes a record whose operations are those of this client.
    pub(super) fn record_by(
        &mut self,
        client: u8,
        tail: u64,
        buffer: u32,
        operations: &[Operation],
    ) -> u64 {
        let lsn = Lsn::new(1, self.head as u32);
        let header = LogRecordHeader {
            operations: operations.len() as u32,
            ..LogRecordHeader::new(self.geometry.uuid, lsn, Lsn::new(1, tail as u32), buffer)
        };
        let mut record = vec![0; header.header_blocks() as usize * LOG_BLOCK];
        for (transaction, flags, payload) in operations {
            record.extend(transaction.to_be_bytes());
            record.extend((payload.len() as u32).to_be_bytes());
            record.extend([client, *flags, 0, 0]);
            record.extend(payload);
        }
        record.resize(record.len().next_multiple_of(LOG_BLOCK), 0);
        seal_record(&header, &mut record, usize::MAX);
        write_all_at(self.device.as_ref(), self.sector(self.head), &record).unwrap();
        self.head += (record.len() / LOG_BLOCK) as u64;
        self.head - (record.len() / LOG_BLOCK) as u64
    }

    /// A record with one transaction that sets the label.
    pub(super) fn labelled(&mut self, tail: u64, label: &str) -> u64 {
        let operations = self.label(7, label);
        self.record(tail, 32 << 10, &operations)
    }

    /// A transaction that sets the label.
    pub(super) fn label(&self, transaction: u32, label: &str) -> Vec<Operation> {
        framed(transaction, self.label_regions(label, BufferItemType::Superblock))
    }

    pub(super) fn label_regions(&self, label: &str, buffer_type: BufferItemType) -> Vec<Vec<u8>> {
        let mut item = BufferItem::new(Sector(0), 1, buffer_type);
        item.mark(108..120);
        let mut first = Vec::new();
        item.encode(&mut first);
        let mut bytes = vec![0; 512];
        read_exact_at(self.device.as_ref(), Sector(0), &mut bytes).unwrap();
        bytes[108..120].fill(0);
        bytes[108..108 + label.len()].copy_from_slice(label.as_bytes());
        vec![first, bytes[..128].to_vec()]
    }

    /// Changes bytes of a log block.
    pub(super) fn damage(&self, block: u64, change: impl FnOnce(&mut [u8])) {
        let mut bytes = [0; LOG_BLOCK];
        read_exact_at(self.device.as_ref(), self.sector(block), &mut bytes).unwrap();
        change(&mut bytes);
        write_all_at(self.device.as_ref(), self.sector(block), &bytes).unwrap();
    }

    /// Stamps the superblock on the disk with a position.
    pub(super) fn stamp(&self, lsn: Lsn) {
        let mut bytes = vec![0; 512];
        read_exact_at(self.device.as_ref(), Sector(0), &mut bytes).unwrap();
        Header::of(BufferKind::Superblock).unwrap().stamp(&mut bytes, lsn, 4096);
        write_all_at(self.device.as_ref(), Sector(0), &bytes).unwrap();
    }

    /// Label after recovery in place; `Err` with the message if it is refused.
    pub(super) fn outcome(&self) -> Result<String, String> {
        recover(&self.device, &mut |_| {}).map_err(|error| error.to_string())?;
        let superblock = read_superblock(&self.device).map_err(|error| error.to_string())?;
        // Done once, there is nothing left to do.
        assert_eq!(recover(&self.device, &mut |_| {}).unwrap(), None);
        Ok(String::from_utf8_lossy(superblock.label_bytes()).into_owned())
    }
}

/// Start, header, regions, commit.
pub(super) fn framed(transaction: u32, regions: Vec<Vec<u8>>) -> Vec<Operation> {
    let header = TransactionHeader { transaction, regions: regions.len() as u32 };
    let mut operations = vec![(transaction, START, Vec::new())];
    operations.push((transaction, 0, header.encode().to_vec()));
    operations.extend(regions.into_iter().map(|region| (transaction, 0, region)));
    operations.push((transaction, COMMIT, Vec::new()));
    operations
}

#[track_caller]
pub(super) fn refused(journal: &Journal, word: &str) {
    let mut before = vec![0; 64 << 20];
    read_exact_at(journal.device.as_ref(), Sector(0), &mut before).unwrap();
    let message = journal.outcome().unwrap_err();
    assert!(message.contains(word), "{message}");
    let mut after = vec![0; 64 << 20];
    read_exact_at(journal.device.as_ref(), Sector(0), &mut after).unwrap();
    assert!(before == after, "something was written");
}

#[test]
fn a_transaction_is_replayed_and_the_journal_is_clean() {
    let mut journal = Journal::new();
    assert_eq!(journal.outcome().unwrap(), "");
    journal.labelled(2, "one");
    let seen = Volume::open(Arc::clone(&journal.device)).unwrap();
    assert_eq!(seen.superblock().label_bytes(), b"one");
    assert_eq!(read_superblock(&journal.device).unwrap().label_bytes(), b"");
    assert_eq!(journal.outcome().unwrap(), "one");
}

#[test]
fn transactions_are_replayed_in_the_order_of_their_commits() {
    let mut journal = Journal::new();
    let mut both = journal.label(1, "one");
    both.extend(journal.label(2, "two"));
    journal.record(2, 32 << 10, &both);
    assert_eq!(journal.outcome().unwrap(), "two");

    let mut journal = Journal::new();
    let (one, two) = (journal.label(1, "one"), journal.label(2, "two"));
    let mixed = [&one[..3], &two[..2], &one[3..4]].concat();
    journal.record(2, 32 << 10, &mixed);
    let mixed = [&two[2..], &one[4..]].concat();
    journal.record(2, 32 << 10, &mixed);
    assert_eq!(journal.outcome().unwrap(), "one");

    // The same buffer twice in one transaction.
    let mut journal = Journal::new();
    let kind = BufferItemType::Superblock;
    let regions = [journal.label_regions("one", kind), journal.label_regions("two", kind)];
    journal.record(2, 32 << 10, &framed(1, regions.concat()));
    assert_eq!(journal.outcome().unwrap(), "two");
}

#[test]
fn the_frame_of_a_transaction() {
    // The number of regions counts for nothing.
    let mut journal = Journal::new();
    let mut operations = journal.label(1, "one");
    operations[1].2 = TransactionHeader { transaction: 1, regions: 0 }.encode().to_vec();
    journal.record(2, 32 << 10, &operations);
    assert_eq!(journal.outcome().unwrap(), "one");

    let mut journal = Journal::new();
    let operations = journal.label(1, "one");
    journal.record(2, 32 << 10, &operations[..4]);
    assert_eq!(journal.outcome().unwrap(), "", "never committed");

    let mut journal = Journal::new();
    let whole = journal.label(1, "one");
    let (header, region) = (&whole[1].2, &whole[3].2);
    let piece = |flags, bytes: &[u8]| (1, flags, bytes.to_vec());
    let last = WAS_CONTINUED | END;
    let more = WAS_CONTINUED | CONTINUE;
    journal.record(2, 32 << 10, &[whole[0].clone(), piece(CONTINUE, &header[..4])]);
    let second = [piece(last, &header[4..]), whole[2].clone(), piece(CONTINUE, &region[..8])];
    journal.record(2, 32 << 10, &second);
    journal.record(2, 32 << 10, &[piece(more, &region[8..12])]);
    journal.record(2, 32 << 10, &[piece(last, &region[12..]), whole[4].clone()]);
    assert_eq!(journal.outcome().unwrap(), "one", "in pieces over four records");

    let mut journal = Journal::new();
    journal.record(2, 32 << 10, &framed(1, Vec::new()));
    refused(&journal, "no items");

    let mut journal = Journal::new();
    journal.record(2, 32 << 10, &[(1, START, Vec::new()), (1, COMMIT, Vec::new())]);
    assert_eq!(journal.outcome().unwrap(), "", "neither header nor items");

    let mut journal = Journal::new();
    journal.record(2, 32 << 10, &framed(1, vec![vec![0x50, 0x12, 1, 0]]));
    refused(&journal, "item type");
}

#[test]
fn damaged_records() {
    let mut journal = Journal::new();
    journal.labelled(2, "one");
    // The header of the transaction; the checksum is right.
    let mut operations = journal.label(1, "two");
    operations[1].2[0] ^= 1;
    journal.record(2, 32 << 10, &operations);
    refused(&journal, "th_magic");

    let mut journal = Journal::new();
    journal.labelled(2, "one");
    let operations = journal.label(1, "two");
    journal.record_by(0x42, 2, 32 << 10, &operations);
    refused(&journal, "oh_clientid");

    let mut journal = Journal::new();
    let block = journal.labelled(2, "one");
    journal.damage(block, |header| header[CRC_OFFSET..CRC_OFFSET + 4].fill(0));
    refused(&journal, "checksum");

    // One that was being written last does not count.
    for what in 0..4 {
        let mut journal = Journal::new();
        journal.labelled(2, "one");
        let last = journal.labelled(2, "two");
        match what {
            0 => journal.damage(last + 1, |data| data[77] ^= 1),
            1 => journal.damage(last + 1, |data| data.fill(0)),
            2 => journal.damage(last, |header| header.fill(0)),
            _ => {
                journal.labelled(2, "three");
                journal.damage(last, |header| header.fill(0));
                journal.damage(last + 1, |data| data.fill(0));
            }
        }
        assert_eq!(journal.outcome().unwrap(), "one", "case {what}");
    }
}

#[test]
fn what_the_disk_has_is_not_replayed() {
    let mut journal = Journal::new();
    journal.labelled(2, "one");
    let second = journal.head;
    journal.labelled(second, "two");
    journal.damage(2, |header| header[511] = 1);
    assert_eq!(journal.outcome().unwrap(), "two", "what is before the tail counts for nothing");

    for (lsn, expected) in [(Lsn::new(1, 1), "one"), (Lsn::new(1, 2), "")] {
        let mut journal = Journal::new();
        journal.stamp(lsn);
        journal.labelled(2, "one");
        assert_eq!(journal.outcome().unwrap(), expected);
    }
    let mut journal = Journal::new();
    journal.labelled(2, "one");
    journal.stamp(Lsn::new(1, 500));
    refused(&journal, "was written later");

    let mut journal = Journal::new();
    journal.labelled(2, "one");
    let mut cancel = Vec::new();
    BufferItem::cancel(Sector(0), 1).encode(&mut cancel);
    journal.record(2, 32 << 10, &framed(2, vec![cancel]));
    assert_eq!(journal.outcome().unwrap(), "", "freed later");

    // A buffer without a type gets no checksum.
    let mut journal = Journal::new();
    let regions = journal.label_regions("one", BufferItemType::Unknown);
    journal.record(2, 32 << 10, &framed(1, regions));
    assert!(matches!(recover(&journal.device, &mut |_| {}), Err(Error::Superblock(_))));
}

/// Linux drops the second record as torn.
#[test]
fn records_of_different_sizes_are_all_replayed() {
    for sizes in [[32 << 10, 256 << 10], [256 << 10, 32 << 10]] {
        let mut journal = Journal::new();
        let (one, two) = (journal.label(1, "one"), journal.label(2, "two"));
        journal.record(2, sizes[0], &one);
        journal.record(2, sizes[1], &two);
        assert_eq!(journal.outcome().unwrap(), "two");
    }
}
