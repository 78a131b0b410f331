//! Sectors that cannot be read: what is in them counts as damaged, and is written anew.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use undercroft_block::testing::{Fault, FaultyDevice};
use undercroft_block::{BlockDevice, Operation, Sector, read_exact_at};
use undercroft_repair::Plan;
use undercroft_xfs::check::{CheckOptions, check};

use crate::cuts::volume;
use crate::files;

/// A device with bad sectors, which are good when they are written, and a mask of those that were.
fn failing(below: Arc<dyn BlockDevice>, bad: &[u64]) -> (Arc<dyn BlockDevice>, Arc<AtomicU64>) {
    let written = Arc::new(AtomicU64::new(0));
    let mut faults = Vec::new();
    for (index, sector) in bad.iter().copied().enumerate() {
        let written = Arc::clone(&written);
        let fault = Fault::new().at(Sector(sector)..Sector(sector + 1)).when(move |bio| {
            if bio.operation() == Operation::Write {
                written.fetch_or(1 << index, Ordering::Relaxed);
            }
            bio.operation() == Operation::Read && written.load(Ordering::Relaxed) >> index & 1 == 0
        });
        faults.push(fault);
    }
    (Arc::new(FaultyDevice::new(below, faults)), written)
}

#[test]
fn metadata_that_cannot_be_read_is_written_anew() {
    let cases: [(&str, &[u64], usize); 5] = [
        ("the superblock", &[0], 100),
        ("headers", &[1, 2, 3], 100),
        ("a tree of free space", &[8], 100),
        ("inodes", &[160, 161, 162, 163], 95),
        ("nothing that is in use", &[100_000], 100),
    ];
    for (name, bad, percent) in cases {
        let below = volume();
        let before = files::of(Arc::clone(&below));
        let (device, written) = failing(Arc::clone(&below), bad);
        let plan =
            Plan::find(Arc::clone(&device)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let is_used = bad[0] < 100_000;
        assert_eq!(plan.is_sound(), !is_used, "{name}");
        let directory = tempfile::tempdir().unwrap();
        plan.commit(Some(&directory.path().join("undo"))).unwrap();
        if is_used {
            let all = (1 << bad.len()) - 1;
            assert_eq!(written.load(Ordering::Relaxed), all, "{name}: sectors that were written");
            let mut sector = vec![0; 512];
            read_exact_at(device.as_ref(), Sector(bad[0]), &mut sector).unwrap();
        }
        let report = check(Arc::clone(&below), &CheckOptions::default(), &mut |_| {}).unwrap();
        assert!(report.is_clean(), "{name}");
        let right = files::right(&before, &files::of(below));
        assert!(right * 100 >= before.len() * percent, "{name}: {right} of {}", before.len());
    }
}

#[test]
fn a_journal_that_cannot_be_read_is_begun_anew() {
    let below = volume();
    let before = files::of(Arc::clone(&below));
    let superblock = {
        let mut bytes = vec![0; 4096];
        read_exact_at(below.as_ref(), Sector(0), &mut bytes).unwrap();
        undercroft_xfs::format::Superblock::decode(&bytes).unwrap()
    };
    let geometry = superblock.geometry();
    let journal = geometry.sector(geometry.log_start).0;
    let (device, written) = failing(Arc::clone(&below), &[journal, journal + 9]);
    let plan = Plan::find(Arc::clone(&device)).unwrap();
    assert!(plan.actions.iter().any(|action| action.what.contains("journal cannot be read")));
    let directory = tempfile::tempdir().unwrap();
    plan.commit(Some(&directory.path().join("undo"))).unwrap();
    assert_eq!(written.load(Ordering::Relaxed), 3);
    assert!(Plan::find(device).unwrap().is_sound());
    assert_eq!(files::right(&before, &files::of(below)), before.len());
}
