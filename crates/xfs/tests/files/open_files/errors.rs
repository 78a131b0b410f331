//! Devices that fail while locks are held.

use super::stand::{BLOCK, NOW, device, make, root};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;
use undercroft_block::testing::{Fault, FaultyDevice};
use undercroft_block::{BlockDevice, Operation};
use undercroft_xfs::format::FileType;
use undercroft_xfs::ops::{self, NewInode};
use undercroft_xfs::volume::LiveOptions;
use undercroft_xfs::{Error, Volume};

/// Longer than anything takes that does not hang.
const PATIENCE: Duration = Duration::from_secs(120);

/// Writes that fail at once, in any thread that sends them, at every place in turn: all callers are
/// told, none hangs.
#[test]
fn a_write_that_fails_at_once_is_told_to_all_callers() {
    for nth in 0..60 {
        let (done, finished) = channel();
        thread::spawn(move || {
            work_until_it_fails(nth);
            done.send(()).unwrap();
        });
        finished.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("write {nth}: {error}"));
    }
}

fn work_until_it_fails(nth: u64) {
    let faults = [Fault::new().on(Operation::Write).from_nth(nth)];
    let device: Arc<dyn BlockDevice> = Arc::new(FaultyDevice::new(device(32 << 20), faults));
    let options = LiveOptions { dirty_bytes: 64 * BLOCK as u64, ..LiveOptions::default() };
    let volume = match Volume::open_live(device, &options) {
        Ok(volume) => Arc::new(volume),
        Err(error) => return assert!(matches!(error, Error::Device(_)), "{error}"),
    };
    thread::scope(|scope| {
        for worker in 0..3 {
            let volume = &volume;
            scope.spawn(move || {
                let mut tickets = Vec::new();
                for round in 0..1000 {
                    match write_one(volume, worker, round) {
                        Ok(ticket) => tickets.push(ticket),
                        Err(_) => break,
                    }
                }
                // Each is answered, most of them badly.
                tickets.into_iter().for_each(|ticket| drop(ticket.wait()));
            });
        }
    });
    assert!(matches!(volume.sync(), Err(Error::Poisoned(_))));
    assert!(volume.close().is_err());
}

fn write_one(
    volume: &Arc<Volume>,
    worker: u32,
    round: u32,
) -> Result<undercroft_xfs::SyncTicket, Error> {
    let file = make(volume, &format!("{worker}-{round}"))?;
    let memory = Arc::new(vec![1; 6 * BLOCK]);
    match round % 3 {
        0 => file.write_direct(0, &memory, 0..memory.len(), NOW)?,
        _ => file.write_shared(0, &memory, 0..memory.len(), NOW)?,
    }
    if round.is_multiple_of(7) {
        file.truncate(100, NOW)?;
        ops::make(volume, root(volume), format!("d{worker}-{round}").as_bytes(), &directory())?;
    }
    Ok(file.fsync())
}

fn directory() -> NewInode<'static> {
    NewInode::new(FileType::Directory, 0o755)
}
