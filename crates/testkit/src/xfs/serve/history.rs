//! A volume in use by several threads for a while.

use crate::xfs::serve::slot::Slot;
use crate::xfs::serve::worker::{Shared, Worker};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use undercroft_block::BlockDevice;
use undercroft_judges::random::Random;
use undercroft_xfs::check::{CheckOptions, check};
use undercroft_xfs::volume::LiveOptions;
use undercroft_xfs::{Error, OpenFile, Volume};

/// How a history is run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub threads: usize,
    pub slots: usize,
    /// Operations of each thread.
    pub steps: u64,
    pub seed: u64,
    /// Bytes of files in memory.
    pub dirty_bytes: u64,
    /// Nothing fails, so contents are compared.
    pub compares: bool,
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    pub operations: u64,
    /// Operations that found no space.
    pub refused: u64,
    pub longest: Duration,
    /// Why threads ended before their time.
    pub errors: Vec<Error>,
}

/// Runs a history on a device with a volume, and closes the volume. If no thread ended with an
/// error, all contents are compared, here and when it is opened again, and all space is back.
pub fn run(device: &Arc<dyn BlockDevice>, plan: &Plan) -> Result<Outcome, Error> {
    let options = LiveOptions { dirty_bytes: plan.dirty_bytes, ..LiveOptions::default() };
    let volume = Arc::new(Volume::open_live(Arc::clone(device), &options)?);
    let shared = Shared {
        volume,
        slots: (0..plan.slots).map(Slot::new).collect(),
        threads: plan.threads,
        compares: plan.compares,
        longest: AtomicU64::new(0),
        done: AtomicU64::new(0),
        refused: AtomicU64::new(0),
    };
    let errors = work(&shared, plan);
    let outcome = Outcome {
        operations: shared.done.load(Ordering::Relaxed),
        refused: shared.refused.load(Ordering::Relaxed),
        longest: Duration::from_micros(shared.longest.load(Ordering::Relaxed)),
        errors,
    };
    if outcome.errors.is_empty() {
        end(device, shared)?;
    } else {
        let _ = shared.volume.close();
    }
    Ok(outcome)
}

fn work(shared: &Shared, plan: &Plan) -> Vec<Error> {
    let thread = |thread: usize| {
        let random = Random::new(plan.seed ^ (thread as u64) << 40);
        let (tickets, orphans) = (Vec::new(), Vec::new());
        let mut worker = Worker { shared, thread, random, tickets, orphans };
        let result = (0..plan.steps).try_for_each(|_| worker.step());
        let tickets = worker.tickets.into_iter().try_for_each(undercroft_xfs::SyncTicket::wait);
        result.and(tickets).err()
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..plan.threads).map(|number| scope.spawn(move || thread(number))).collect();
        threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
    })
}

/// Compares everything, closes the volume, and compares everything again.
fn end(device: &Arc<dyn BlockDevice>, shared: Shared) -> Result<(), Error> {
    let Shared { volume, slots, .. } = shared;
    let mut expected = Vec::new();
    for slot in slots {
        if let Some(content) = slot.content.into_inner() {
            content.verify("at the end");
            expected.push((slot.name, content.bytes()));
        }
    }
    match volume.close() {
        // A file that was accepted has space: all of it was reserved.
        Ok(()) => {}
        Err(error) => panic!("closing: {error}"),
    }
    assert_eq!(volume.dirty_bytes(), 0, "bytes are still counted as dirty");
    drop(volume);
    let mut findings = Vec::new();
    let options = CheckOptions::default();
    let report =
        check(Arc::clone(device), &options, &mut |finding| findings.push(finding.to_string()))?;
    assert!(report.is_clean(), "{findings:#?}");
    let volume = Arc::new(Volume::open(Arc::clone(device))?);
    for (name, bytes) in expected {
        let root = volume.inode(volume.geometry().root_inode)?;
        let number = undercroft_xfs::ops::lookup(&volume, &root.read(), name.as_bytes())?;
        let file = OpenFile::open(&volume, number.expect("the name is there"))?;
        let mut found = vec![0; bytes.len() + 1];
        assert_eq!(file.read(0, &mut found)?, bytes.len(), "{name}");
        assert!(found[..bytes.len()] == bytes, "{name} after the volume was opened again");
    }
    Ok(())
}
