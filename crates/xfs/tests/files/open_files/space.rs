//! Space that is reserved, given back, and missing.

use super::stand::{
    BLOCK, NOW, check_clean, close, contents, device, live, make, open, read_all, root, unlink,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use undercroft_xfs::format::FileType;
use undercroft_xfs::inode::ForkKind;
use undercroft_xfs::internals::bmap;
use undercroft_xfs::mkfs::{self, MkfsOptions};
use undercroft_xfs::ops::{self, Name, NewInode, RenameMode, Size};
use undercroft_xfs::{Error, OpenFile};
use uuid::Uuid;

/// The reservation of a file that is freed or dropped is free for all again.
#[test]
fn dirty_files_that_go_give_their_space_back() {
    let (device, volume) = open(64 << 20);
    drop(make(&volume, "target").unwrap());
    // What the directory needs is there.
    for name in ["a", "b"] {
        drop(make(&volume, name).unwrap());
        unlink(&volume, name).unwrap();
    }
    volume.sync().unwrap();
    let before = volume.usage().unwrap().free_blocks;
    let at = |name: &'static str| Name { parent: root(&volume), name: name.as_bytes() };
    // More than the volume has in all.
    for round in 0..(64 << 20) / (4 * BLOCK) {
        let file = make(&volume, "a").unwrap();
        file.write(0, &[round as u8; BLOCK], NOW).unwrap();
        match round % 3 {
            0 => {
                drop(file);
                unlink(&volume, "a").unwrap();
            }
            1 => {
                unlink(&volume, "a").unwrap();
                drop(file);
            }
            _ => {
                let target = make(&volume, "b").unwrap();
                target.write(0, &[1; BLOCK], NOW).unwrap();
                drop(target);
                ops::rename(&volume, at("a"), at("b"), RenameMode::Replace, NOW).unwrap();
                unlink(&volume, "b").unwrap();
            }
        }
    }
    assert_eq!(volume.dirty_bytes(), 0);
    volume.sync().unwrap();
    assert_eq!(volume.usage().unwrap().free_blocks, before);
    close(&device, &volume);
}

/// A file that is written, closed, and written again is not trimmed while it comes back, and gives
/// all back at the end.
#[test]
fn space_ahead_goes_with_the_last_opening() {
    let (device, volume) = open(256 << 20);
    let (one, two) = (make(&volume, "file").unwrap(), None::<OpenFile>);
    let mut other = two;
    let mut at = 0;
    for round in 0..64 {
        one.write(at, &[round; 3 * BLOCK], NOW).unwrap();
        at += 3 * BLOCK as u64;
        one.fsync_and_wait().unwrap();
        other = Some(OpenFile::open(&volume, one.number()).unwrap());
    }
    let blocks = |volume: &Arc<undercroft_xfs::Volume>| {
        volume.inode(one.number()).unwrap().read().core.nblocks
    };
    assert!(blocks(&volume) > at / BLOCK as u64, "there is space ahead");
    drop(other);
    assert!(blocks(&volume) > at / BLOCK as u64, "one has it open");
    let inode = one.inode().clone();
    drop(one);
    assert_eq!(inode.read().core.nblocks, at / BLOCK as u64);
    close(&device, &volume);
}

#[test]
fn an_allocation_that_finds_no_space_leaves_the_file_as_it_was() {
    let (device, volume) = open(64 << 20);
    let file = make(&volume, "file").unwrap();
    file.write(0, b"some data", NOW).unwrap();
    file.fsync_and_wait().unwrap();
    volume.sync().unwrap();
    let before = volume.usage().unwrap();
    let bytes = (before.free_blocks + 10_000) * BLOCK as u64;
    for attempt in 0..3 {
        let result = file.preallocate(0..bytes, Size::Grow, NOW);
        assert!(matches!(result, Err(Error::NoSpace { .. })), "{attempt}: {result:?}");
        volume.sync().unwrap();
        assert_eq!(volume.usage().unwrap().free_blocks, before.free_blocks, "{attempt}");
    }
    assert_eq!(read_all(&file), b"some data");
    let half = before.free_blocks / 2 * BLOCK as u64;
    file.preallocate(0..half, Size::Keep, NOW).unwrap();
    drop(file);
    let volume = close(&device, &volume);
    assert_eq!(contents(&volume, "file"), b"some data");
}

/// A full volume refuses further writes, and goes on.
#[test]
fn a_full_volume_can_be_emptied_and_filled_again() {
    let (device, volume) = open(64 << 20);
    for round in 0..3 {
        let mut files = Vec::new();
        let error = loop {
            let file = match make(&volume, &format!("file-{}", files.len())) {
                Ok(file) => file,
                Err(error) => break error,
            };
            let written = file.write(0, &vec![round; 100 * BLOCK], NOW);
            files.push(file);
            if let Err(error) = written {
                break error;
            }
        };
        assert!(matches!(error, Error::NoSpace { .. }), "{error}");
        volume.sync_all_and_wait().unwrap();
        for (number, file) in files.into_iter().enumerate() {
            unlink(&volume, &format!("file-{number}")).unwrap();
            drop(file);
        }
        volume.sync().unwrap();
    }
    close(&device, &volume);
}

/// Blocks that were freed, and wait for a checkpoint, do not become ever more to search through.
#[test]
fn much_that_is_freed_starts_a_checkpoint() {
    let (device, volume) = open(512 << 20);
    let first = volume.open_checkpoint().unwrap();
    let memory = Arc::new(vec![3; BLOCK]);
    for _ in 0..20_000 {
        let file = make(&volume, "file").unwrap();
        file.write_direct(0, &memory, 0..BLOCK, NOW).unwrap();
        drop(file);
        unlink(&volume, "file").unwrap();
    }
    let checkpoints = volume.open_checkpoint().unwrap() - first;
    assert!(checkpoints >= 2, "{checkpoints} checkpoints for 20,000 blocks in one group");
    close(&device, &volume);
}

/// An extent that joins its neighbours leaves one record less; records that fit the inode again
/// move there from the tree.
#[test]
fn a_file_whose_gaps_are_filled_becomes_a_list_again() {
    let (device, mut volume) = open(64 << 20);
    let bytes = Arc::new(vec![7; 61 * BLOCK]);
    let file = make(&volume, "gaps").unwrap();
    file.write_direct(0, &bytes, 0..bytes.len(), NOW).unwrap();
    let block = |index: u64| index * BLOCK as u64..(index + 1) * BLOCK as u64;
    let gaps = || (1..61).step_by(2);
    gaps().for_each(|gap| file.punch(block(gap), NOW).unwrap());
    let number = file.number();
    drop(file);
    for (filled, gap) in gaps().enumerate() {
        volume.sync().unwrap();
        let file = OpenFile::open(&volume, number).unwrap();
        let inode = volume.inode(number).unwrap();
        let records = bmap::extents(&volume, &inode.read(), ForkKind::Data).unwrap().len();
        assert_eq!(records, 31 - filled, "the block of a gap is taken again");
        drop(inode);
        file.write_direct(block(gap).start, &bytes, 0..BLOCK, NOW).unwrap();
        drop(file);
        close(&device, &volume);
        volume = live(&device);
    }
    assert_eq!(contents(&volume, "gaps"), *bytes);
}

/// Holes take no time: this would not end if it visited their blocks.
#[test]
fn a_file_becomes_as_long_as_files_can_be_at_once() {
    const LONGEST: u64 = (1 << 63) - 1;
    let (device, volume) = open(64 << 20);
    let file = make(&volume, "long").unwrap();
    file.write(0, b"front", NOW).unwrap();
    file.truncate(LONGEST, NOW).unwrap();
    assert_eq!(file.size(), LONGEST);
    file.write(LONGEST - 4, b"back", NOW).unwrap();
    file.preallocate(1 << 40..(1 << 40) + 8192, Size::Keep, NOW).unwrap();
    file.truncate(3, NOW).unwrap();
    file.truncate(LONGEST - 1, NOW).unwrap();
    file.punch(0..LONGEST - 1, NOW).unwrap();
    file.write(3, b"!", NOW).unwrap();
    let mut bytes = [9; 5];
    assert_eq!(file.read(0, &mut bytes).unwrap(), 5);
    assert_eq!(bytes, *b"\0\0\0!\0");
    assert_eq!(file.read(LONGEST - 5, &mut bytes).unwrap(), 4);
    assert_eq!(bytes[..4], [0; 4]);
    drop(file);
    close(&device, &volume);
}

/// Threads that free and take the last space all the time: each gets some, or is told that there is
/// none. That it waits for the journal is not their business.
#[test]
fn threads_on_a_full_volume_hear_of_no_journal() {
    let (device, volume) = open(64 << 20);
    let filler = make(&volume, "filler").unwrap();
    let free = volume.usage().unwrap().free_blocks;
    // Too little for all of them at a time.
    let mut taken = free - 300;
    while filler.preallocate(0..taken * BLOCK as u64, Size::Grow, NOW).is_err() {
        taken -= 100;
    }
    volume.sync_all_and_wait().unwrap();
    let expect = |result: Result<(), Error>| match result {
        Ok(()) | Err(Error::NoSpace { .. }) => {}
        Err(error) => panic!("{error:?}"),
    };
    std::thread::scope(|scope| {
        for thread in 0..8_usize {
            let volume = &volume;
            scope.spawn(move || {
                for round in 0..60 {
                    let name = format!("{thread}-{round}");
                    let Ok(file) = make(volume, &name).map_err(|error| expect(Err(error))) else {
                        continue;
                    };
                    let bytes = vec![thread as u8; (20 + 5 * thread) * BLOCK];
                    expect(file.write(0, &bytes, NOW));
                    let shared = Arc::new(bytes);
                    expect(file.write_direct(1 << 20, &shared, 0..shared.len(), NOW));
                    expect(file.preallocate(2 << 20..(2 << 20) + (50 << 12), Size::Keep, NOW));
                    if round % 3 == 0 {
                        expect(file.punch(0..10 << 12, NOW));
                    }
                    drop(file);
                    unlink(volume, &name).unwrap();
                }
            });
        }
    });
    drop(filler);
    close(&device, &volume);
}

/// The end of a file is where it is when its turn comes, also if it was there before.
#[test]
fn appends_go_to_the_end_wherever_that_goes() {
    let (device, volume) = open(64 << 20);
    let file = make(&volume, "file").unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..2000 {
                file.truncate(0, NOW).unwrap();
            }
            is_over.store(true, Ordering::Relaxed);
        });
        for _ in 0..3 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let at = file.append(b"12345678", NOW).unwrap();
                    assert_eq!(at % 8, 0);
                }
            });
        }
    });
    assert!(read_all(&file).chunks(8).all(|piece| piece == b"12345678"));
    drop(file);
    close(&device, &volume);
}

/// On a volume that is filled without a journal, too.
#[test]
fn appends_past_memory_meet_no_other() {
    let device = device(64 << 20);
    let root = NewInode::new(FileType::Directory, 0o755);
    let plan = mkfs::plan(&MkfsOptions::new(64 << 20, Uuid::from_u128(7))).unwrap();
    let volume = Arc::new(mkfs::begin(&device, plan, &root).unwrap());
    let file = make(&volume, "file").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100 {
                    file.append(b"12345678", NOW).unwrap();
                }
            });
        }
    });
    assert_eq!(file.size(), 4 * 100 * 8);
    assert!(read_all(&file).chunks(8).all(|piece| piece == b"12345678"));
    drop(file);
    mkfs::finish(&volume, true).unwrap();
    check_clean(&device);
}
