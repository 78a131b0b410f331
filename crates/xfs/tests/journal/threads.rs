//! Several threads on one live volume.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use undercroft_block::BlockDevice;
use undercroft_judges::Xfsprogs;
use undercroft_testkit::disk;
use undercroft_testkit::xfs::journal::crash::make;
use undercroft_testkit::xfs::journal::tree::tree;
use undercroft_testkit::xfs::journal::work::{self, create, create_sized};
use undercroft_xfs::format::{FileType, Timestamp};
use undercroft_xfs::mkfs::MkfsOptions;
use undercroft_xfs::ops::{self, Size};
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::volume::LiveOptions;
use undercroft_xfs::{Error, OpenFile, Volume};
use uuid::Uuid;

/// Threads that create, sync and draw tickets at once, on a journal that is written around.
#[test]
fn threads_commit_and_sync_at_once() {
    const FILES: u32 = 400;
    let options = MkfsOptions {
        ag_count: Some(4),
        log_size: Some(10 << 20),
        ..MkfsOptions::new(256 << 20, Uuid::from_u128(4))
    };
    let device = make(&options);
    let volume = Volume::open_live(Arc::clone(&device), &LiveOptions::default()).unwrap();
    let root = volume.geometry().root_inode;
    let homes: Vec<_> = (0..4)
        .map(|home| create(&volume, root, &format!("home-{home}"), FileType::Directory).unwrap())
        .collect();
    let answered = Arc::new(AtomicU32::new(0));
    std::thread::scope(|scope| {
        for home in &homes {
            let (volume, answered) = (&volume, &answered);
            scope.spawn(move || {
                for number in 0..FILES {
                    let (name, size) = (format!("file-{number}"), u64::from(number) * 10);
                    let kind = FileType::Regular;
                    create_sized(volume, *home, &name, kind, &[], size).unwrap();
                    let answered = Arc::clone(answered);
                    volume.force().unwrap().on_complete(move |result| {
                        result.unwrap();
                        answered.fetch_add(1, Ordering::Relaxed);
                    });
                    if number % 16 == 0 {
                        volume.sync().unwrap();
                    }
                }
            });
        }
    });
    volume.sync().unwrap();
    let before = tree(&volume).unwrap();
    volume.close().unwrap();
    assert_eq!(answered.load(Ordering::Relaxed), 4 * FILES);
    drop(volume);
    let volume = Volume::open(Arc::clone(&device)).unwrap();
    assert!(tree(&volume).unwrap() == before);
    assert_eq!(before.len() as u32, 4 * FILES + 5);
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    disk::save(device.as_ref(), &image);
    Xfsprogs::newest().unwrap().repair_check(&image).unwrap();
}

/// A volume of four groups whose free space is single blocks everywhere.
fn fragmented() -> Arc<dyn BlockDevice> {
    const HOLES: u64 = 9;
    let options = MkfsOptions {
        ag_count: Some(4),
        log_size: Some(10 << 20),
        ..MkfsOptions::new(128 << 20, Uuid::from_u128(9))
    };
    let device = make(&options);
    let volume = Volume::open_live(Arc::clone(&device), &LiveOptions::default());
    let volume = Arc::new(volume.unwrap());
    let root = volume.geometry().root_inode;
    // Inodes for later steps, when there is no room for a chunk.
    let inodes: Vec<_> = (0..4 * 64).map(|number| format!("inode-{number}")).collect();
    for name in &inodes {
        create(&volume, root, name, FileType::Directory).unwrap();
    }
    let filler = create(&volume, root, "filler", FileType::Regular).unwrap();
    let (file, now) = (OpenFile::open(&volume, filler).unwrap(), Timestamp::default());
    let blocks = volume.available_blocks() - 200;
    file.preallocate(0..blocks * 4096, Size::Keep, now).unwrap();
    for block in (0..blocks).step_by(HOLES as usize) {
        file.punch(block * 4096..(block + 1) * 4096, now).unwrap();
    }
    file.close().unwrap();
    for name in inodes.iter().filter(|name| !name.ends_with('0')) {
        ops::rmdir(&volume, root, name.as_bytes(), now).unwrap();
    }
    volume.close().unwrap();
    device
}

/// Fills a directory and a file with single blocks from all groups, and empties them again.
fn grow_and_shrink(volume: &Arc<Volume>, home: InodeNumber, round: u32) -> Result<(), Error> {
    const NAMES: u32 = 1500;
    let (root, now) = (volume.geometry().root_inode, Timestamp::default());
    let name = |number: u32| format!("{number:0>200}");
    let own = format!("file-{}-{round}", home.0);
    let file = ops::make_open(volume, root, own.as_bytes(), &work::new(FileType::Regular))?;
    // All names are of one file, so that no inodes are needed.
    for part in 0..NAMES {
        ops::link(volume, file.number(), home, name(part).as_bytes(), now)?;
        if part % 8 == 0 {
            file.preallocate(0..u64::from(part + 1) * 1024, Size::Keep, now)?;
        }
    }
    file.close()?;
    for part in (0..NAMES).map(|part| part * 7 % NAMES) {
        ops::unlink(volume, home, name(part).as_bytes(), now)?;
    }
    ops::unlink(volume, root, own.as_bytes(), now)?;
    Ok(())
}

/// A change of a directory or a file may free blocks of its mapping tree, in any group, while other
/// threads have that group.
#[test]
fn threads_free_blocks_in_the_groups_of_others() {
    let device = fragmented();
    let volume = Volume::open_live(Arc::clone(&device), &LiveOptions::default());
    let volume = Arc::new(volume.unwrap());
    let root = volume.geometry().root_inode;
    let homes: Vec<_> = (0..4)
        .map(|home| create(&volume, root, &format!("home-{home}"), FileType::Directory).unwrap())
        .collect();
    let groups: std::collections::BTreeSet<_> =
        homes.iter().map(|home| volume.geometry().split_inode(*home).0).collect();
    assert_eq!(groups.len(), 4);
    std::thread::scope(|scope| {
        for home in &homes {
            let volume = &volume;
            scope.spawn(move || {
                for round in 0..2 {
                    grow_and_shrink(volume, *home, round).unwrap();
                }
            });
        }
    });
    volume.close().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    disk::save(device.as_ref(), &image);
    Xfsprogs::newest().unwrap().repair_check(&image).unwrap();
}

/// Tickets cost no threads: all are answered by a few writes of the journal.
#[test]
fn many_tickets_share_a_few_writes() {
    let device = make(&MkfsOptions::new(64 << 20, Uuid::from_u128(4)));
    let volume = Volume::open_live(Arc::clone(&device), &LiveOptions::default()).unwrap();
    let root = volume.geometry().root_inode;
    let tickets: Vec<_> = (0..500)
        .map(|number| {
            create(&volume, root, &format!("file-{number}"), FileType::Regular).unwrap();
            volume.force().unwrap()
        })
        .collect();
    tickets.into_iter().for_each(|ticket| ticket.wait().unwrap());
    // Nothing left to do: no write, no wait.
    let before = device.statistics();
    volume.sync().unwrap();
    volume.force().unwrap().wait().unwrap();
    assert_eq!(device.statistics().requests, before.requests);
}
