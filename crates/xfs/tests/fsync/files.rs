//! What is written in memory is what is read, before and after it is written back.

use crate::work::{
    contents, create, make, memory, open, open_image, read, repair_is_content, write,
};
use std::sync::Arc;
use undercroft_judges::mount::Access;
use undercroft_judges::random::Random;
use undercroft_judges::{LoopMount, kernel};
use undercroft_xfs::data::Files;
use undercroft_xfs::format::Timestamp;
use undercroft_xfs::inode::Inode;
use undercroft_xfs::ops::{self, CloneRange, FileEdit, Piece, Size, SizeHints};

/// The content as the reader of pieces delivers it, and as the map of data ranges has it.
fn pieces(volume: &undercroft_xfs::Volume, file: &Inode) -> Vec<u8> {
    let state = file.read();
    let mut bytes = vec![0; state.core.size as usize];
    let mut reader = ops::FileReader::new(volume, &state).unwrap();
    let ranges = ops::data_ranges(volume, &state).unwrap();
    while let Some(piece) = reader.next_piece().unwrap() {
        if let Piece::Data { offset, buffer, len } = piece {
            let offset = offset as usize;
            bytes[offset..offset + len].copy_from_slice(&buffer[..len]);
            let within = |range: &std::ops::Range<u64>| {
                range.start <= offset as u64 && range.end >= (offset + len) as u64
            };
            assert!(ranges.iter().any(within), "{offset}+{len} in {ranges:?}");
        }
    }
    bytes
}

#[test]
fn random_writes_are_read_before_and_after_write_back() {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    make(&image, 512 << 20);
    let files = open_image(&image, 1 << 20);
    let mut random = Random::new(7);
    let inodes: Vec<_> = (0..6).map(|number| create(&files, &format!("file-{number}"))).collect();
    let mut models = vec![Vec::new(); inodes.len()];
    for step in 0..1500 {
        let number = random.below(inodes.len() as u64) as usize;
        let (file, model) = (&inodes[number], &mut models[number]);
        let offset = match random.below(4) {
            0 => model.len(),
            1 => random.below(300_000) as usize,
            _ => random.below(model.len() as u64 + 1) as usize,
        };
        let len = 1 + random.below(if step % 5 == 0 { 60_000 } else { 6000 }) as usize;
        let bytes = contents(step, len);
        match random.below(12) {
            0 => {
                let volume = files.volume();
                let number = file.read().number;
                let mut edit = FileEdit::open(volume, number, Timestamp::default()).unwrap();
                edit.truncate(offset as u64).unwrap();
                model.resize(offset, 0);
            }
            1 => files.fsync_and_wait(file).unwrap(),
            2 => files.fdatasync(file).wait().unwrap(),
            3 => files.sync().wait().unwrap(),
            _ => {
                write(&files, file, offset as u64, &bytes).unwrap();
                let end = model.len().max(offset + len);
                model.resize(end, 0);
                model[offset..offset + len].copy_from_slice(&bytes);
            }
        }
        assert!(read(&files, file) == *model, "step {step}, file {number}");
        if step % 10 == 0 {
            assert!(pieces(files.volume(), file) == *model, "step {step}, file {number}");
        }
    }
    files.close().unwrap();
    assert_eq!(files.dirty_bytes(), 0);
    drop((files, inodes));
    repair_is_content(&image);
    if kernel::available_or_report("fsync::random_writes") {
        let mount = LoopMount::new(&image, Access::ReadOnly, &[]).unwrap();
        for (number, model) in models.iter().enumerate() {
            let found = std::fs::read(mount.join(format!("file-{number}"))).unwrap();
            assert!(found == *model, "file {number}");
        }
        mount.unmount().unwrap();
    }
}

#[test]
fn a_budget_bounds_what_is_dirty() {
    let files = open(memory(256 << 20), 1 << 20);
    let mut most = 0;
    for number in 0..50 {
        let file = create(&files, &format!("file-{number}"));
        for piece in 0..10 {
            write(&files, &file, piece * 100_000, &contents(number, 100_000)).unwrap();
            most = most.max(files.dirty_bytes());
        }
    }
    assert!(most > 512 << 10 && most <= 1 << 20, "{most}");
    // More than the budget at once is written when nothing else is dirty.
    let file = create(&files, "large");
    write(&files, &file, 0, &contents(1, 5 << 20)).unwrap();
    assert!(read(&files, &file) == contents(1, 5 << 20));
    files.close().unwrap();
    assert_eq!(files.dirty_bytes(), 0);
}

/// Extents are as long as what is dirty when it is written back.
#[test]
fn allocation_is_delayed() {
    let files = open(memory(256 << 20), 64 << 20);
    let inodes: Vec<_> = (0..8).map(|number| create(&files, &format!("file-{number}"))).collect();
    for piece in 0..100 {
        for (number, file) in inodes.iter().enumerate() {
            write(&files, file, piece * 8192, &contents(number, 8192)).unwrap();
        }
    }
    let tickets: Vec<_> = inodes.iter().map(|file| files.fsync(file)).collect();
    tickets.into_iter().for_each(|ticket| ticket.wait().unwrap());
    for file in &inodes {
        assert_eq!(ops::extent_map(files.volume(), &file.read()).unwrap().len(), 1);
    }
    files.close().unwrap();
}

#[test]
fn a_full_volume_refuses_the_write_and_not_the_write_back() {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    make(&image, 300 << 20);
    let files = open_image(&image, 8 << 20);
    let file = create(&files, "file");
    let mut written = 0;
    let refused = loop {
        match write(&files, &file, written, &contents(3, 100_000)) {
            Ok(()) => written += 100_000,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, undercroft_xfs::Error::NoSpace { .. }), "{refused}");
    assert!(written > 100 << 20, "{written}");
    files.fsync_and_wait(&file).unwrap();
    assert_eq!(file.read().core.size, written);
    files.close().unwrap();
    drop((files, file));
    repair_is_content(&image);
}

/// Blocks of a file behind its end.
fn ahead(files: &Files, file: &Inode) -> u64 {
    let state = file.read();
    let end = files.volume().geometry().blocks_for(state.core.size);
    let map = ops::extent_map(files.volume(), &state).unwrap();
    map.last().map_or(0, |last| last.extent.end().0.saturating_sub(end))
}

#[test]
fn files_that_grow_get_space_ahead_and_give_it_back() {
    let files = open(memory(512 << 20), 64 << 20);
    let inodes: Vec<_> = (0..4).map(|number| create(&files, &format!("file-{number}"))).collect();
    for step in 0..200 {
        for (number, file) in inodes.iter().enumerate() {
            write(&files, file, step * 8192, &contents(number, 8192)).unwrap();
            files.fsync_and_wait(file).unwrap();
        }
    }
    for file in &inodes {
        // Without space ahead there would be a piece for each write.
        assert!(ops::extent_map(files.volume(), &file.read()).unwrap().len() < 20);
        assert!(ahead(&files, file) > 0);
    }
    files.release(&inodes[0]).unwrap();
    assert_eq!(ahead(&files, &inodes[0]), 0);
    // Given up while it is dirty, and written on: next time it keeps what it has.
    for step in 200..240 {
        write(&files, &inodes[0], step * 8192, &contents(0, 8192)).unwrap();
        if step == 200 {
            files.release(&inodes[0]).unwrap();
        }
        files.fsync_and_wait(&inodes[0]).unwrap();
    }
    files.release(&inodes[0]).unwrap();
    assert!(ahead(&files, &inodes[0]) > 0);
    // Space that was preallocated on purpose is nobody's to take.
    let number = inodes[1].read().number;
    let mut edit = FileEdit::open(files.volume(), number, Timestamp::default()).unwrap();
    edit.preallocate(4 << 20..5 << 20, Size::Keep).unwrap();
    drop(edit);
    files.trim().unwrap();
    assert_eq!([0, 2, 3].map(|number| ahead(&files, &inodes[number])), [0; 3]);
    assert!(ahead(&files, &inodes[1]) > 256);
    assert_eq!(read(&files, &inodes[2]), contents(2, 8192).repeat(200));
    files.close().unwrap();
}

#[test]
fn a_full_volume_takes_back_what_was_ahead() {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    make(&image, 300 << 20);
    let files = open_image(&image, 1 << 20);
    let growing = create(&files, "growing");
    for step in 0..12 {
        write(&files, &growing, step << 20, &contents(1, 1 << 20)).unwrap();
        files.fsync_and_wait(&growing).unwrap();
    }
    assert!(ahead(&files, &growing) > 1000);
    let (other, mut written) = (create(&files, "other"), 0);
    while write(&files, &other, written, &contents(2, 100_000)).is_ok() {
        written += 100_000;
    }
    assert_eq!((ahead(&files, &growing), ahead(&files, &other)), (0, 0));
    assert!(files.volume().available_blocks() < 64, "{}", files.volume().available_blocks());
    files.close().unwrap();
    drop((files, growing, other));
    repair_is_content(&image);
}

#[test]
fn shared_blocks_are_copied_by_windows_of_the_hint() {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    make(&image, 300 << 20);
    let files = open_image(&image, 8 << 20);
    let volume = files.volume();
    let now = Timestamp::default();
    let (source, model) = (create(&files, "source"), contents(1, 1 << 20));
    write(&files, &source, 0, &model).unwrap();
    files.fsync_and_wait(&source).unwrap();
    let pieces = |copy: u64| {
        let target = create(&files, &format!("copy-{copy}"));
        let [from, to] = [&source, &target].map(|file| file.read().number);
        ops::set_size_hints(volume, to, &SizeHints { copy: Some(copy), extent: None }, now)
            .unwrap();
        let range = CloneRange { source: 0, target: 0, len: 1 << 20 };
        ops::clone_range(volume, from, to, &range, now).unwrap();
        let mut changed = model.clone();
        for step in 0..40_u64 {
            let offset = (step * 7 % 64 * 16384) as usize;
            write(&files, &target, offset as u64, &[9; 4096]).unwrap();
            changed[offset..offset + 4096].fill(9);
            files.fsync_and_wait(&target).unwrap();
        }
        assert_eq!(read(&files, &target), changed);
        ops::extent_map(volume, &target.read()).unwrap().len()
    };
    let (with, without) = (pieces(131_072), pieces(0));
    assert!(without > 40 && with <= 8, "{without}, {with}");
    assert_eq!(read(&files, &source), model);
    let number = source.read().number;
    let hint = |extent| {
        ops::set_size_hints(volume, number, &SizeHints { extent: Some(extent), copy: None }, now)
    };
    assert!(hint(4096).unwrap_err().to_string().contains("has space already"));
    assert!(hint(5000).unwrap_err().to_string().contains("multiple of 4096"));
    files.close().unwrap();
    drop((files, source));
    repair_is_content(&image);
}

#[test]
fn threads_write_and_sync_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    make(&image, 512 << 20);
    let files = open_image(&image, 1 << 20);
    let shared = create(&files, "shared");
    std::thread::scope(|scope| {
        for thread in 0..4_usize {
            let (files, shared) = (&files, &shared);
            scope.spawn(move || {
                for round in 0..60 {
                    let file = create(files, &format!("file-{thread}-{round}"));
                    write(files, &file, 0, &contents(round, 20_000)).unwrap();
                    write(
                        files,
                        shared,
                        (thread * 60 + round) as u64 * 5000,
                        &contents(thread * 60 + round, 5000),
                    )
                    .unwrap();
                    match round % 4 {
                        0 => files.fsync_and_wait(&file).unwrap(),
                        1 => files.fsync(shared).wait().unwrap(),
                        2 => drop(files.fsync(&file)),
                        _ => files.sync().on_complete(Result::unwrap),
                    }
                }
            });
        }
    });
    let expected: Vec<u8> = (0..240).flat_map(|part| contents(part, 5000)).collect();
    assert!(read(&files, &shared) == expected);
    files.close().unwrap();
    drop((files, shared));
    repair_is_content(&image);
}

#[test]
fn a_direct_write_sees_what_is_dirty() {
    let files = open(memory(256 << 20), 8 << 20);
    let file = create(&files, "file");
    write(&files, &file, 0, b"0123456789").unwrap();
    let now = Timestamp::default();
    files.write_direct(&file, 4, &Arc::new(b"abc".to_vec()), 0..3, now).unwrap();
    assert_eq!(files.dirty_bytes(), 0);
    write(&files, &file, 8, b"XYZ").unwrap();
    assert_eq!(read(&files, &file), b"0123abc7XYZ");
    files.fsync(&file).wait().unwrap();
    assert_eq!(read(&files, &file), b"0123abc7XYZ");
    files.close().unwrap();
}
