//! Several threads on one live volume.

use crate::crash::make;
use crate::tree::tree;
use crate::work::{create, create_sized};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use undercroft_block::{BlockDevice, read_exact_at, write_all_at};
use undercroft_judges::Xfsprogs;
use undercroft_xfs::Volume;
use undercroft_xfs::format::FileType;
use undercroft_xfs::mkfs::MkfsOptions;
use undercroft_xfs::volume::LiveOptions;
use uuid::Uuid;

fn save(device: &dyn BlockDevice, image: &std::path::Path) {
    let file = std::fs::File::create(image).unwrap();
    file.set_len(device.capacity().0 * 512).unwrap();
    let target = undercroft_block::FileDevice::open(image, false).unwrap();
    let mut bytes = vec![0; 1 << 20];
    for first in (0..device.capacity().0).step_by(2048) {
        let sector = undercroft_block::Sector(first);
        read_exact_at(device, sector, &mut bytes).unwrap();
        write_all_at(&target, sector, &bytes).unwrap();
    }
}

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
    save(device.as_ref(), &image);
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
