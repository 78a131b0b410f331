//! Devices that fail: the callers told, the changes that stay.

use std::sync::Arc;
use undercroft_block::testing::{Fault, FaultyDevice};
use undercroft_block::{Bio, BlockDevice, Operation, Sector};
use undercroft_testkit::xfs::journal::crash::make;
use undercroft_testkit::xfs::journal::tree::tree;
use undercroft_testkit::xfs::journal::work::create;
use undercroft_xfs::format::{BufferKind, FileType, Timestamp};
use undercroft_xfs::mkfs::MkfsOptions;
use undercroft_xfs::units::{AgBlock, AgNumber};
use undercroft_xfs::volume::LiveOptions;
use undercroft_xfs::{Error, OpenFile, Volume};
use uuid::Uuid;

fn faulty(fault: Fault) -> Arc<Volume> {
    let device = make(&MkfsOptions::new(64 << 20, Uuid::from_u128(1)));
    let device: Arc<dyn BlockDevice> = Arc::new(FaultyDevice::new(device, [fault]));
    Arc::new(Volume::open_live(device, &LiveOptions::default()).unwrap())
}

/// Creates files and syncs until something fails; returns how many were durable.
fn fill(volume: &Volume) -> (u32, Error) {
    let root = volume.geometry().root_inode;
    for number in 0..10_000 {
        let made = create(volume, root, &format!("file-{number}"), FileType::Regular);
        if let Err(error) = made.and_then(|_| volume.sync()) {
            return (number, error);
        }
    }
    panic!("nothing failed");
}

#[test]
fn a_failed_journal_ends_all_changes() {
    // A journal that nothing else is written beside needs no flush but the first.
    for (operation, nth, expected) in [(Operation::Write, 20, 10), (Operation::Flush, 0, 0)] {
        let volume = faulty(Fault::new().on(operation).from_nth(nth));
        let (durable, error) = fill(&volume);
        assert!(durable >= expected, "{operation}: {durable}");
        assert!(matches!(error, Error::Device(_)), "{operation}: {error}");
        // From now on every caller is told, with the reason.
        let root = volume.geometry().root_inode;
        let error = create(&volume, root, "late", FileType::Regular).unwrap_err();
        let Error::Poisoned(reason) = error else { panic!("{error}") };
        assert!(reason.contains(&operation.to_string()), "{reason}");
        assert!(matches!(volume.sync(), Err(Error::Poisoned(_))));
        assert!(matches!(volume.force().unwrap().wait(), Err(Error::Poisoned(_))));
        assert!(matches!(volume.close(), Err(Error::Poisoned(_))));
        // Data in memory can be read.
        assert!(tree(&volume).unwrap().len() > durable as usize);
    }
}

/// Data that could not be written ends all changes when the failure arrives, not when a caller asks
/// for durability.
#[test]
fn failed_data_ends_all_changes_at_once() {
    const LEN: usize = 61 * 4096;
    let is_data = |bio: &Bio| bio.length() == LEN as u64;
    let volume = faulty(Fault::new().on(Operation::Write).when(is_data));
    let root = volume.geometry().root_inode;
    let file = create(&volume, root, "file", FileType::Regular).unwrap();
    volume.sync().unwrap();
    create(&volume, root, "before", FileType::Regular).unwrap();
    let ticket = volume.force().unwrap();
    let memory = Arc::new(vec![1; LEN]);
    let now = Timestamp::default();
    let file = OpenFile::open(&volume, file).unwrap();
    let written = file.write_direct(0, &memory, 0..LEN, now);
    // The device may answer in another thread: the volume is told, with or without a waiter.
    while volume.begin().is_ok() {
        std::thread::yield_now();
    }
    let Err(Error::Poisoned(reason)) = volume.begin().map(drop) else {
        panic!("it can be changed")
    };
    assert!(reason.contains("data of a file") && reason.contains("write"), "{reason}");
    if let Err(error) = written {
        assert!(matches!(error, Error::Device(_) | Error::Poisoned(_)), "{error}");
    }
    assert!(matches!(volume.sync(), Err(Error::Poisoned(_))));
    // It was answered with one or the other.
    let _ = ticket.wait();
    assert!(matches!(volume.force().unwrap().wait(), Err(Error::Poisoned(_))));
}

/// A transaction that fails behind its first change ends all changes, and all later callers are told of
/// its failure.
#[test]
fn a_volume_that_a_failed_transaction_ended_names_the_failure() {
    let volume = faulty(Fault::new().on(Operation::Read).when(|bio| bio.sector() == Sector(8000)));
    let mut transaction = volume.begin().unwrap();
    transaction.begin_changes();
    let address = volume.address(AgNumber(0), AgBlock(1000), 1);
    transaction.read(&address, BufferKind::DirBlock).unwrap_err();
    drop(transaction);
    let Err(Error::Poisoned(reason)) = volume.begin().map(drop) else {
        panic!("it can be changed")
    };
    let cause = "after it had changed metadata: read of 4096 bytes at sector 8000";
    assert!(reason.contains(cause), "{reason}");
}

/// A single failure is not forgotten by what succeeds later.
#[test]
fn a_failed_flush_is_not_healed_by_the_next() {
    let volume = faulty(Fault::new().on(Operation::Flush).nth(0));
    let (_, error) = fill(&volume);
    assert!(matches!(error, Error::Device(_)), "{error}");
    assert!(matches!(volume.sync(), Err(Error::Poisoned(_))));
}

#[test]
fn every_ticket_of_a_failed_checkpoint_is_told() {
    let volume = faulty(Fault::new().on(Operation::Flush).from_nth(0));
    let root = volume.geometry().root_inode;
    let tickets: Vec<_> = (0..20)
        .map_while(|number| {
            create(&volume, root, &format!("file-{number}"), FileType::Regular).ok()?;
            volume.force().ok()
        })
        .collect();
    assert!(!tickets.is_empty());
    for ticket in tickets {
        assert!(matches!(ticket.wait(), Err(Error::Poisoned(_))));
    }
}

/// A transaction that gives up half-way takes nothing of it to the journal, nor earlier commits
/// that are not durable: the device holds the durable ones.
#[test]
fn half_a_transaction_is_never_written() {
    let device = make(&MkfsOptions::new(64 << 20, Uuid::from_u128(1)));
    let volume = Volume::open_live(Arc::clone(&device), &LiveOptions::default()).unwrap();
    let root = volume.geometry().root_inode;
    create(&volume, root, "durable", FileType::Regular).unwrap();
    volume.sync().unwrap();
    create(&volume, root, "committed", FileType::Regular).unwrap();
    let ticket = {
        let mut trans = volume.begin().unwrap();
        let mut parent = volume.lock_inode(root).unwrap();
        let new = undercroft_testkit::xfs::journal::work::new(FileType::Regular);
        drop(undercroft_xfs::ops::create(&mut trans, &mut parent, b"half", &new).unwrap());
        volume.force().unwrap()
    };
    assert!(matches!(ticket.wait(), Err(Error::Poisoned(_))));
    assert!(matches!(volume.sync(), Err(Error::Poisoned(_))));
    assert!(matches!(volume.begin(), Err(Error::Poisoned(_))));
}
