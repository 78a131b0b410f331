//! The constraints on the writer of a journal (docs/format/journal/writing.md#constraints), each
//! checked on all that a long history sent to its device: a small journal, written around several
//! times.

use crate::audit::{Audit, Checkpoint, Item, Record, Step};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;
use undercroft_testkit::xfs::journal::crash::{History, make};
use undercroft_xfs::Volume;
use undercroft_xfs::format::log_record::LOG_BLOCK;
use undercroft_xfs::format::{BufferItemFlags, BufferItemType, OperationFlags};
use undercroft_xfs::mkfs::{MkfsOptions, minimum_log_blocks, plan};
use undercroft_xfs::units::Lsn;
use undercroft_xfs::volume::LiveOptions;
use uuid::Uuid;

/// The history that all tests look at.
fn audit() -> &'static Audit {
    static AUDIT: OnceLock<Audit> = OnceLock::new();
    AUDIT.get_or_init(|| {
        let options = MkfsOptions::new(256 << 20, Uuid::from_u128(5));
        let geometry = plan(&options).unwrap().geometry();
        let log_size = Some(minimum_log_blocks(&geometry) << geometry.block_log);
        let options = MkfsOptions { log_size, ..options };
        let device = make(&options);
        let mut history = History::start(device.clone(), &LiveOptions::default(), 9);
        history.keep_trees = false;
        history.run(6000, 3);
        let (recording, _) = history.end(true);
        Audit::new(&Volume::open(device).unwrap(), &recording)
    })
}

fn records() -> impl Iterator<Item = &'static Record> {
    audit().steps.iter().flat_map(|step| match step {
        Step::Records(records) => &records[..],
        _ => &[],
    })
}

fn checkpoints() -> &'static [Checkpoint] {
    &audit().checkpoints
}

fn cycles() -> u64 {
    records().last().unwrap().header.lsn.0 >> 32
}

/// Bytes of the journal between two positions.
fn distance(from: Lsn, to: Lsn) -> usize {
    let log = audit().log_bytes;
    let block = |lsn: Lsn| lsn.0 as u32 as usize * LOG_BLOCK;
    (block(to) + log - block(from)) % log
}

/// Sectors of inode clusters and buffers that are logged, by their first one.
fn logged(checkpoint: &Checkpoint) -> impl Iterator<Item = u64> {
    checkpoint.items.iter().filter_map(|item| match item {
        Item::Buffer(buffer, _) if !buffer.flags.contains(BufferItemFlags::CANCEL) => {
            Some(buffer.sector.0)
        }
        Item::Inode(inode) => Some(inode.cluster.0),
        _ => None,
    })
}

#[test]
fn the_history_goes_around_the_journal() {
    assert!(cycles() >= 3, "cycle {}", cycles());
    assert!(checkpoints().len() > 1000);
    assert!(audit().steps.iter().any(|step| matches!(step, Step::Location(..))));
}

/// C1: a buffer goes to its place only once its changes are durable in the journal. Seen from
/// here: no write to a place carries a position that is not durable.
#[test]
fn c1_places_are_written_behind_the_journal() {
    let mut durable = Lsn(0);
    let mut next = checkpoints().iter().peekable();
    let mut seen = 0;
    for (at, step) in audit().steps.iter().enumerate() {
        while let Some(done) = next.next_if(|checkpoint| checkpoint.durable_at <= at) {
            durable = done.start;
        }
        if let Step::Location(_, bytes) = step {
            for block in bytes.chunks(512) {
                if let Some(lsn) = position(block) {
                    assert!(lsn <= durable, "{lsn:?} is ahead of {durable:?}");
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 100, "{seen}");
}

/// Position in a header of a group or an inode, as far as it can be told.
fn position(sector: &[u8]) -> Option<Lsn> {
    let at = match sector.first_chunk::<4>()? {
        b"XAGF" => 208,
        b"XAGI" => 320,
        b"XAFL" => 24,
        [b'I', b'N', ..] => 112,
        _ => return None,
    };
    Some(Lsn(u64::from_be_bytes(*sector[at..].first_chunk::<8>()?)))
}

/// C2: what goes to its place carries the start of the newest checkpoint that holds it, and its
/// checksum.
#[test]
fn c2_places_carry_the_position_of_their_checkpoint() {
    let starts: BTreeSet<Lsn> = checkpoints().iter().map(|checkpoint| checkpoint.start).collect();
    let mut newest: BTreeMap<u64, Lsn> = BTreeMap::new();
    let mut next = checkpoints().iter().peekable();
    let mut seen = 0;
    for (at, step) in audit().steps.iter().enumerate() {
        while let Some(done) = next.next_if(|checkpoint| checkpoint.durable_at <= at) {
            newest.extend(logged(done).map(|sector| (sector, done.start)));
        }
        let Step::Location(range, bytes) = step else { continue };
        for (sector, bytes) in (range.start..).zip(bytes.chunks(512)) {
            let Some(lsn) = position(bytes).filter(|lsn| lsn.0 > 0) else { continue };
            assert!(starts.contains(&lsn), "{lsn:?}");
            if !bytes.starts_with(b"IN") {
                assert_eq!(newest.get(&sector), Some(&lsn), "sector {sector}");
                seen += 1;
            }
        }
    }
    assert!(seen > 50, "{seen}");
}

/// C4: a checkpoint is less than half of the journal.
#[test]
fn c4_checkpoints_are_less_than_half_of_the_journal() {
    let largest = checkpoints().iter().map(|checkpoint| checkpoint.bytes).max().unwrap();
    assert!(largest * 2 < audit().log_bytes, "{largest} of {}", audit().log_bytes);
}

/// C5: the head never meets the tail; C6: blocks before the tail are overwritten only once a
/// durable record says that they are.
#[test]
fn c5_c6_the_journal_is_never_full() {
    let mut durable_tail = None;
    for record in records() {
        let Record { header, len, .. } = record;
        let tail = *durable_tail.get_or_insert(header.tail);
        let used = distance(tail, header.lsn) + len;
        assert!(used < audit().log_bytes, "{header:?}");
        assert!(header.tail <= header.lsn);
        if record.flags.intersects(OperationFlags::COMMIT | OperationFlags::UNMOUNT) {
            assert!(header.tail >= tail, "the tail goes back");
            durable_tail = Some(header.tail);
        }
    }
}

/// C6, C7: when a record says that the journal before its tail is not needed, all changes there are
/// in their places, and flushed.
#[test]
fn c6_c7_the_tail_moves_behind_flushed_writes() {
    // By sector: start of the newest checkpoint that is not in place.
    let mut dirty: BTreeMap<u64, Lsn> = BTreeMap::new();
    let (mut written, mut answered) = (Vec::new(), Vec::new());
    let mut next = checkpoints().iter().peekable();
    let mut moved = 0;
    for (at, step) in audit().steps.iter().enumerate() {
        while let Some(done) = next.next_if(|checkpoint| checkpoint.durable_at <= at) {
            for item in &done.items {
                match item {
                    Item::Buffer(buffer, _) if buffer.flags.contains(BufferItemFlags::CANCEL) => {
                        dirty.remove(&buffer.sector.0);
                    }
                    Item::Buffer(buffer, _) => drop(dirty.insert(buffer.sector.0, done.start)),
                    Item::Inode(inode) => drop(dirty.entry(inode.cluster.0).or_insert(done.start)),
                    _ => {}
                }
            }
        }
        match step {
            Step::Location(range, _) => {
                let snapshot: Vec<_> = dirty.range(range.clone()).map(|(k, v)| (*k, *v)).collect();
                written.push((range.clone(), snapshot));
            }
            Step::PlaceDone(range) => {
                let index = written.iter().position(|(sent, _)| sent == range).unwrap();
                answered.push(written.swap_remove(index).1);
            }
            Step::FlushDone => {
                for (sector, start) in answered.drain(..).flatten() {
                    if dirty.get(&sector) == Some(&start) {
                        dirty.remove(&sector);
                    }
                }
            }
            Step::Records(records) => {
                let needed = dirty.values().min().copied().unwrap_or(Lsn::NULL);
                for record in records {
                    assert!(record.header.tail <= needed, "{:?} of {needed:?}", record.header);
                    moved += 1;
                }
            }
            Step::RecordsDone => {}
        }
    }
    assert!(moved > 1000);
}

/// C10: at most eight records are in flight, and the one with the commit is sent when all others
/// were answered and flushed.
#[test]
fn c10_commits_are_sent_behind_the_rest() {
    let (mut in_flight, mut unflushed, mut long) = (0, 0, 0);
    for step in &audit().steps {
        match step {
            Step::Records(records) => {
                in_flight += records.len();
                assert!(in_flight <= 8);
                for record in records {
                    if record.flags.contains(OperationFlags::COMMIT) {
                        assert!(record.durable && records.len() == 1);
                        assert_eq!(unflushed, 0, "earlier records of the checkpoint");
                        long += usize::from(!record.flags.contains(OperationFlags::START));
                    } else if !record.flags.contains(OperationFlags::UNMOUNT) {
                        unflushed += 1;
                    }
                }
            }
            Step::RecordsDone => in_flight = 0,
            Step::FlushDone => unflushed = 0,
            Step::Location(..) | Step::PlaceDone(_) => {}
        }
    }
    assert!(long > 3, "{long} checkpoints of several records");
}

/// C11: all records have buffers of one size.
#[test]
fn c11_records_are_of_one_size() {
    assert!(records().all(|record| record.header.buffer_bytes == 32 << 10));
}

/// C12: nothing that was written elsewhere is unflushed when the first record of a checkpoint is
/// sent, if it was answered when the writer began.
#[test]
fn c12_checkpoints_begin_with_a_flush() {
    let mut answered = 0;
    for step in &audit().steps {
        match step {
            Step::PlaceDone(_) => answered += 1,
            Step::FlushDone => answered = 0,
            Step::Records(records) if records[0].flags.contains(OperationFlags::START) => {
                assert_eq!(answered, 0, "{:?}", records[0].header);
            }
            _ => {}
        }
    }
}

/// C8: a buffer logged again is logged with all changes that are not in its place.
#[test]
fn c8_relogged_buffers_are_logged_with_all_their_changes() {
    // By sector: units logged since the last write to the place.
    let mut units: BTreeMap<u64, BTreeSet<usize>> = BTreeMap::new();
    let mut next = checkpoints().iter().peekable();
    let mut again = 0;
    for (at, step) in audit().steps.iter().enumerate() {
        if let Step::Location(range, _) = step {
            for sector in units.range(range.clone()).map(|(sector, _)| *sector).collect::<Vec<_>>()
            {
                units.remove(&sector);
            }
        }
        while let Some(done) = next.next_if(|checkpoint| checkpoint.durable_at <= at) {
            for item in &done.items {
                let Item::Buffer(buffer, _) = item else { continue };
                if buffer.flags.contains(BufferItemFlags::CANCEL) {
                    units.remove(&buffer.sector.0);
                    continue;
                }
                if buffer.flags.contains(BufferItemFlags::UNLINKED_POINTERS) {
                    continue;
                }
                let now: BTreeSet<usize> =
                    buffer.runs().flat_map(|run| (run.start / 128)..(run.end / 128)).collect();
                if let Some(before) = units.insert(buffer.sector.0, now.clone()) {
                    assert!(before.is_subset(&now), "{before:?} {now:?}");
                    again += 1;
                }
            }
        }
    }
    assert!(again > 100, "{again}");
}

/// C9, C16: inodes are logged one by one, whole, in clusters of the kernel's size, and never as
/// images of clusters.
#[test]
fn c9_c16_inodes_are_logged_as_inodes() {
    let mut chunks = 0;
    for item in checkpoints().iter().flat_map(|checkpoint| &checkpoint.items) {
        match item {
            Item::Inode(inode) => {
                assert_eq!((inode.cluster_sectors, inode.offset % 512), (32, 0));
                assert!(inode.offset < 16384);
            }
            Item::Create(chunk) => {
                assert_eq!((chunk.count, chunk.blocks, chunk.inode_size), (64, 8, 512));
                chunks += 1;
            }
            Item::Buffer(buffer, _) => {
                let pointers = buffer.flags.contains(BufferItemFlags::UNLINKED_POINTERS);
                assert_eq!(buffer.buffer_type == BufferItemType::Inodes, pointers);
            }
            Item::Other(kind) => panic!("{kind:?}"),
        }
    }
    assert!(chunks > 10, "{chunks}");
}

/// C13, C14: a freed block is cancelled under the kind it was logged with, and a block that comes
/// back in the same checkpoint is not, but logged whole.
#[test]
fn c13_c14_freed_blocks_are_cancelled() {
    let mut cancels = 0;
    for checkpoint in checkpoints() {
        let (mut cancelled, mut images) = (BTreeSet::new(), BTreeSet::new());
        for item in &checkpoint.items {
            let Item::Buffer(buffer, _) = item else { continue };
            let key = (buffer.sector.0, buffer.sectors);
            if buffer.flags.contains(BufferItemFlags::CANCEL) {
                assert!(buffer.is_empty());
                assert!(cancelled.insert(key), "cancelled twice");
                cancels += 1;
            } else {
                assert!(images.insert((key, buffer.flags.bits())), "logged twice");
            }
        }
        assert!(images.iter().all(|(key, _)| !cancelled.contains(key)));
    }
    assert!(cancels > 3, "{cancels}");
}

/// C3: what belongs together is in one checkpoint: a new inode comes with the directory that names
/// it, or with blocks of that, and the counters of its group.
#[test]
fn c3_operations_are_whole_in_their_checkpoint() {
    for checkpoint in checkpoints() {
        let has = |kind: BufferItemType| {
            checkpoint
                .items
                .iter()
                .any(|item| matches!(item, Item::Buffer(buffer, _) if buffer.buffer_type == kind))
        };
        let creates = checkpoint.items.iter().any(|item| matches!(item, Item::Create(_)));
        // A new chunk: counted in the AGI, entered in a tree, taken from the free space.
        assert!(!creates || (has(BufferItemType::Agi) && has(BufferItemType::Agf)));
        // A changed free list is told of in the AGF.
        assert!(!has(BufferItemType::Agfl) || has(BufferItemType::Agf));
    }
}

/// C17: the type of a buffer is that of its magic number; no data goes without a type.
#[test]
fn c17_buffers_are_logged_with_their_types() {
    for item in checkpoints().iter().flat_map(|checkpoint| &checkpoint.items) {
        let Item::Buffer(buffer, data) = item else { continue };
        if buffer.flags.contains(BufferItemFlags::CANCEL) {
            continue;
        }
        assert_ne!(buffer.buffer_type, BufferItemType::Unknown);
        let starts = !buffer.flags.contains(BufferItemFlags::UNLINKED_POINTERS);
        if starts && buffer.covers(0) {
            assert!(buffer.buffer_type.kind(&data[0]).is_some(), "{buffer:?}");
        }
    }
}

/// C19, C21: positions only grow, every record follows the one before, and so do the numbers of
/// transactions.
#[test]
fn c19_c21_positions_and_numbers_grow() {
    let mut before: Option<&Record> = None;
    for record in records() {
        if let Some(before) = before {
            assert!(record.header.lsn > before.header.lsn);
            assert_eq!(distance(before.header.lsn, record.header.lsn), before.len);
            assert_eq!(record.header.previous_block, before.header.lsn.0 as u32);
            let started = record.flags.intersects(OperationFlags::START | OperationFlags::UNMOUNT);
            let next = before.transaction.wrapping_add(u32::from(started));
            assert_eq!(record.transaction, next);
        }
        before = Some(record);
    }
}
