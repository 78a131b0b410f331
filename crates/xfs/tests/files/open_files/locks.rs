//! Threads that meet at one file.

use super::stand::{BLOCK, NOW, close, make, open, read_all, unlink};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use undercroft_xfs::ops::{self, MetadataChange};
use undercroft_xfs::{Error, OpenFile, Volume};

/// Rounds of each thread.
const ROUNDS: u32 = 400;

/// Buffered and direct writes, durability and changes of the inode, all of one file.
#[test]
fn writers_of_one_file_and_changes_of_its_inode_do_not_hang() {
    let (device, volume) = open(128 << 20);
    let file = Arc::new(make(&volume, "file").unwrap());
    thread::scope(|scope| {
        for worker in 0..6_u8 {
            let (file, volume) = (&file, &volume);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    one_change(volume, file, worker, round).unwrap();
                }
            });
        }
    });
    assert!(read_all(&file).len() as u64 <= file.size());
    drop(file);
    close(&device, &volume);
}

fn one_change(volume: &Volume, file: &OpenFile, worker: u8, round: u32) -> Result<(), Error> {
    let at = u64::from(round % 37) * 3 * BLOCK as u64;
    match worker {
        0 | 1 => file.write(at, &[worker; 5000], NOW),
        2 => file.write_direct(at, &Arc::new(vec![worker; 2 * BLOCK]), 0..2 * BLOCK, NOW),
        3 => {
            let mode = Some(0o600 + (round % 8) as u16);
            let change = MetadataChange { mode, ..MetadataChange::default() };
            ops::change_metadata(volume, file.number(), &change, NOW)
        }
        4 if round.is_multiple_of(8) => file.truncate(at, NOW),
        4 => file.fsync().wait(),
        _ => {
            let mut bytes = vec![0; 3 * BLOCK];
            file.read(at, &mut bytes).map(drop)
        }
    }
}

/// Readers of a file that others remove and make again see its bytes or that it is gone, never those
/// of another.
#[test]
fn readers_never_see_another_files_blocks() {
    let (device, volume) = open(64 << 20);
    let done = AtomicBool::new(false);
    let fill = |name: &str, byte: u8| -> Result<(), Error> {
        let file = make(&volume, name)?;
        let memory = Arc::new(vec![byte; 64 * BLOCK]);
        file.write_direct(0, &memory, 0..memory.len(), NOW)
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..ROUNDS {
                fill("a", b'a').unwrap();
                unlink(&volume, "a").unwrap();
                volume.sync().unwrap();
                fill("b", b'b').unwrap();
                unlink(&volume, "b").unwrap();
                volume.sync().unwrap();
            }
            done.store(true, Ordering::Release);
        });
        for _ in 0..2 {
            scope.spawn(|| {
                let mut bytes = vec![0; 64 * BLOCK];
                while !done.load(Ordering::Acquire) {
                    for (name, byte) in [("a", b'a'), ("b", b'b')] {
                        read_one(&volume, name, byte, &mut bytes);
                    }
                }
            });
        }
    });
    close(&device, &volume);
}

fn read_one(volume: &Arc<Volume>, name: &str, byte: u8, bytes: &mut [u8]) {
    let Some(number) = super::stand::find(volume, name) else { return };
    // The number may be that of the other file by now; the generation says.
    let Ok(file) = OpenFile::open(volume, number) else { return };
    if super::stand::find(volume, name) != Some(number) {
        return;
    }
    let len = file.read(0, bytes).unwrap();
    let wrong = bytes[..len].iter().find(|found| **found != byte && **found != 0);
    let other = if byte == b'a' { b'b' } else { b'a' };
    // It may have become the other file between the looks, then all of it is.
    assert!(
        wrong.is_none() || bytes[..len].iter().all(|found| *found == other || *found == 0),
        "{name} holds {wrong:?}"
    );
}
