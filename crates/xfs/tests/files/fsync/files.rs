//! Reads return the data written in memory, before and after it is written back.

use std::sync::Arc;
use undercroft_judges::mount::Access;
use undercroft_judges::random::Random;
use undercroft_judges::{LoopMount, kernel};
use undercroft_testkit::xfs::fsync::work::{
    contents, create, make, memory, open, open_image, read, repair_is_content, write,
};
use undercroft_xfs::OpenFile;
use undercroft_xfs::format::Timestamp;
use undercroft_xfs::ops::{self, CloneRange, Size, SizeHints};

/// The content as the map of data ranges has it, each read for itself; the rest is zeros.
fn pieces(file: &OpenFile) -> Vec<u8> {
    let mut bytes = vec![0; file.size() as usize];
    let mut end = None;
    for range in file.data_ranges().unwrap() {
        assert!(end < Some(range.start) && range.end <= file.size(), "{range:?} behind {end:?}");
        end = Some(range.end);
        let piece = &mut bytes[range.start as usize..range.end as usize];
        piece.fill(0xff);
        assert_eq!(file.read(range.start, piece).unwrap(), piece.len());
    }
    bytes
}

/// A read of a part, which may end behind the file.
fn read_part(file: &OpenFile, offset: usize, len: usize, model: &[u8]) {
    let mut bytes = vec![0xff; len];
    let found = file.read(offset as u64, &mut bytes).unwrap();
    let expected = &model[offset.min(model.len())..(offset + len).min(model.len())];
    assert!(bytes[..found] == *expected, "{found} bytes at {offset}");
    assert!(bytes[found..].iter().all(|byte| *byte == 0xff), "behind the end");
}

#[test]
fn random_writes_are_read_before_and_after_write_back() {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    make(&image, 512 << 20);
    let volume = open_image(&image, 1 << 20);
    let mut random = Random::new(7);
    let files: Vec<_> = (0..6).map(|number| create(&volume, &format!("file-{number}"))).collect();
    let mut models = vec![Vec::new(); files.len()];
    for step in 0..1500 {
        let number = random.below(files.len() as u64) as usize;
        let (file, model) = (&files[number], &mut models[number]);
        let offset = match random.below(4) {
            0 => model.len(),
            1 => random.below(300_000) as usize,
            _ => random.below(model.len() as u64 + 1) as usize,
        };
        let len = 1 + random.below(if step % 5 == 0 { 60_000 } else { 6000 }) as usize;
        let bytes = contents(step, len);
        match random.below(12) {
            0 => {
                file.truncate(offset as u64, Timestamp::default()).unwrap();
                model.resize(offset, 0);
            }
            1 => file.fsync_and_wait().unwrap(),
            2 => file.fdatasync().wait().unwrap(),
            3 => volume.sync_all().wait().unwrap(),
            _ => {
                write(file, offset as u64, &bytes).unwrap();
                let end = model.len().max(offset + len);
                model.resize(end, 0);
                model[offset..offset + len].copy_from_slice(&bytes);
            }
        }
        assert!(read(file) == *model, "step {step}, file {number}");
        if step % 10 == 0 {
            assert!(pieces(file) == *model, "step {step}, file {number}");
        }
        read_part(file, offset, len, model);
    }
    volume.close().unwrap();
    assert_eq!(volume.dirty_bytes(), 0);
    drop((volume, files));
    repair_is_content(&image);
    if kernel::available_or_report() {
        let mount = LoopMount::new(&image, Access::ReadOnly, &[]).unwrap();
        for (number, model) in models.iter().enumerate() {
            let found = std::fs::read(mount.join(format!("file-{number}"))).unwrap();
            assert!(found == *model, "file {number}");
        }
        mount.unmount().unwrap();
    }
}

#[test]
fn a_budget_bounds_dirty_data() {
    let volume = open(memory(256 << 20), 1 << 20);
    let mut most = 0;
    for number in 0..50 {
        let file = create(&volume, &format!("file-{number}"));
        for piece in 0..10 {
            write(&file, piece * 100_000, &contents(number, 100_000)).unwrap();
            most = most.max(volume.dirty_bytes());
        }
    }
    assert!(most > 512 << 10 && most <= 1 << 20, "{most}");
    // More than the budget at once is written when nothing else is dirty.
    let file = create(&volume, "large");
    write(&file, 0, &contents(1, 5 << 20)).unwrap();
    assert!(read(&file) == contents(1, 5 << 20));
    volume.close().unwrap();
    assert_eq!(volume.dirty_bytes(), 0);
}

fn extents(file: &OpenFile) -> usize {
    ops::extent_map(file.volume(), &file.inode().read()).unwrap().len()
}

/// Extents are as long as the dirty data when it is written back.
#[test]
fn allocation_is_delayed() {
    let volume = open(memory(256 << 20), 64 << 20);
    let files: Vec<_> = (0..8).map(|number| create(&volume, &format!("file-{number}"))).collect();
    for piece in 0..100 {
        for (number, file) in files.iter().enumerate() {
            write(file, piece * 8192, &contents(number, 8192)).unwrap();
        }
    }
    let tickets: Vec<_> = files.iter().map(OpenFile::fsync).collect();
    tickets.into_iter().for_each(|ticket| ticket.wait().unwrap());
    for file in &files {
        assert_eq!(extents(file), 1);
    }
    volume.close().unwrap();
}

#[test]
fn a_full_volume_refuses_the_write_and_not_the_write_back() {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    make(&image, 300 << 20);
    let volume = open_image(&image, 8 << 20);
    let file = create(&volume, "file");
    let mut written = 0;
    let refused = loop {
        match write(&file, written, &contents(3, 100_000)) {
            Ok(()) => written += 100_000,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, undercroft_xfs::Error::NoSpace { .. }), "{refused}");
    assert!(written > 100 << 20, "{written}");
    file.fsync_and_wait().unwrap();
    assert_eq!(file.size(), written);
    volume.close().unwrap();
    drop((volume, file));
    repair_is_content(&image);
}

/// Blocks of a file behind its end.
fn ahead(file: &OpenFile) -> u64 {
    let (volume, state) = (file.volume(), file.inode().read());
    let end = volume.geometry().blocks_for(state.core.size);
    let map = ops::extent_map(volume, &state).unwrap();
    map.last().map_or(0, |last| last.extent.end().0.saturating_sub(end))
}

/// Drops the last opening of a file, and looks at it again.
fn reopen(file: OpenFile) -> OpenFile {
    let (volume, number) = (Arc::clone(file.volume()), file.number());
    file.close().unwrap();
    OpenFile::open(&volume, number).unwrap()
}

#[test]
fn files_that_grow_get_space_ahead_and_give_it_back() {
    let volume = open(memory(512 << 20), 64 << 20);
    let mut files: Vec<_> =
        (0..4).map(|number| create(&volume, &format!("file-{number}"))).collect();
    for step in 0..200 {
        for (number, file) in files.iter().enumerate() {
            write(file, step * 8192, &contents(number, 8192)).unwrap();
            file.fsync_and_wait().unwrap();
        }
    }
    for file in &files {
        // Without space ahead there would be a piece for each write.
        assert!(extents(file) < 20);
        assert!(ahead(file) > 0);
    }
    let mut first = reopen(files.remove(0));
    assert_eq!(ahead(&first), 0);
    // Closed while it is dirty, and written on: next time it keeps its space.
    for step in 200..240 {
        write(&first, step * 8192, &contents(0, 8192)).unwrap();
        if step == 200 {
            first = reopen(first);
        }
        first.fsync_and_wait().unwrap();
    }
    first = reopen(first);
    assert!(ahead(&first) > 0);
    files.insert(0, first);
    // Space that was preallocated on purpose is not taken.
    files[1].preallocate(4 << 20..5 << 20, Size::Keep, Timestamp::default()).unwrap();
    files.iter().for_each(|file| file.trim().unwrap());
    assert_eq!([0, 2, 3].map(|number| ahead(&files[number])), [0; 3]);
    assert!(ahead(&files[1]) > 256);
    assert_eq!(read(&files[2]), contents(2, 8192).repeat(200));
    volume.close().unwrap();
}

#[test]
fn a_full_volume_takes_back_what_was_ahead() {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    make(&image, 300 << 20);
    let volume = open_image(&image, 1 << 20);
    let growing = create(&volume, "growing");
    for step in 0..12 {
        write(&growing, step << 20, &contents(1, 1 << 20)).unwrap();
        growing.fsync_and_wait().unwrap();
    }
    assert!(ahead(&growing) > 1000);
    let (other, mut written) = (create(&volume, "other"), 0);
    while write(&other, written, &contents(2, 100_000)).is_ok() {
        written += 100_000;
    }
    assert_eq!((ahead(&growing), ahead(&other)), (0, 0));
    assert!(volume.available_blocks() < 64, "{}", volume.available_blocks());
    volume.close().unwrap();
    drop((volume, growing, other));
    repair_is_content(&image);
}

#[test]
fn shared_blocks_are_copied_by_windows_of_the_hint() {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    make(&image, 300 << 20);
    let volume = open_image(&image, 8 << 20);
    let now = Timestamp::default();
    let (source, model) = (create(&volume, "source"), contents(1, 1 << 20));
    write(&source, 0, &model).unwrap();
    source.fsync_and_wait().unwrap();
    let pieces = |copy: u64| {
        let target = create(&volume, &format!("copy-{copy}"));
        let hints = SizeHints { copy: Some(copy), extent: None };
        ops::set_size_hints(&volume, target.number(), &hints, now).unwrap();
        let range = CloneRange { source: 0, target: 0, len: 1 << 20 };
        target.clone_range(&source, &range, now).unwrap();
        let mut changed = model.clone();
        for step in 0..40_u64 {
            let offset = (step * 7 % 64 * 16384) as usize;
            write(&target, offset as u64, &[9; 4096]).unwrap();
            changed[offset..offset + 4096].fill(9);
            target.fsync_and_wait().unwrap();
        }
        assert_eq!(read(&target), changed);
        extents(&target)
    };
    let (with, without) = (pieces(131_072), pieces(0));
    assert!(without > 40 && with <= 8, "{without}, {with}");
    assert_eq!(read(&source), model);
    let hint = |extent| {
        let hints = SizeHints { extent: Some(extent), copy: None };
        ops::set_size_hints(&volume, source.number(), &hints, now)
    };
    assert!(hint(4096).unwrap_err().to_string().contains("has space already"));
    assert!(hint(5000).unwrap_err().to_string().contains("multiple of 4096"));
    volume.close().unwrap();
    drop((volume, source));
    repair_is_content(&image);
}

#[test]
fn threads_write_and_sync_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    make(&image, 512 << 20);
    let volume = open_image(&image, 1 << 20);
    let shared = create(&volume, "shared");
    std::thread::scope(|scope| {
        for thread in 0..4_usize {
            let (volume, shared) = (&volume, &shared);
            scope.spawn(move || {
                for round in 0..60 {
                    let file = create(volume, &format!("file-{thread}-{round}"));
                    write(&file, 0, &contents(round, 20_000)).unwrap();
                    let part = thread * 60 + round;
                    write(shared, part as u64 * 5000, &contents(part, 5000)).unwrap();
                    match round % 4 {
                        0 => file.fsync_and_wait().unwrap(),
                        1 => shared.fsync().wait().unwrap(),
                        2 => drop(file.fsync()),
                        _ => volume.sync_all().on_complete(Result::unwrap),
                    }
                }
            });
        }
    });
    let expected: Vec<u8> = (0..240).flat_map(|part| contents(part, 5000)).collect();
    assert!(read(&shared) == expected);
    volume.close().unwrap();
    drop((volume, shared));
    repair_is_content(&image);
}

#[test]
fn a_direct_write_sees_dirty_data() {
    let volume = open(memory(256 << 20), 8 << 20);
    let file = create(&volume, "file");
    write(&file, 0, b"0123456789").unwrap();
    let now = Timestamp::default();
    file.write_direct(4, &Arc::new(b"abc".to_vec()), 0..3, now).unwrap();
    assert_eq!(volume.dirty_bytes(), 0);
    write(&file, 8, b"XYZ").unwrap();
    assert_eq!(read(&file), b"0123abc7XYZ");
    file.fsync().wait().unwrap();
    assert_eq!(read(&file), b"0123abc7XYZ");
    volume.close().unwrap();
}
