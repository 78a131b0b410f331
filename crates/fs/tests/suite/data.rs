//! Data of files.

use crate::volumes::{close_and_check, contents, create, fresh, memory, open, open_to_crash, same};
use undercroft_fs::{Allocation, Change, Error, File, InodeFlags, NewFile};

const BLOCK: u64 = 4096;

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 7 % 251) as u8).collect()
}

#[test]
fn reads_and_writes_end_where_the_file_does() {
    let fs = fresh();
    let file = create(&fs, fs.root(), "file");
    file.write_at(10, b"abc").unwrap();
    assert_eq!(file.size(), 13);
    let mut bytes = [1; 20];
    assert_eq!(file.read_at(8, &mut bytes).unwrap(), 5);
    assert_eq!(&bytes[..6], b"\0\0abc\x01");
    assert_eq!(file.read_at(13, &mut bytes).unwrap(), 0);
    assert!(matches!(file.read_exact_at(8, &mut bytes), Err(Error::EndOfFile(_))));
    file.read_exact_at(8, &mut bytes[..5]).unwrap();
    assert_eq!(file.append(b"def").unwrap(), 13);
    file.set_len(12).unwrap();
    file.set_len(14).unwrap();
    assert_eq!(&contents(&file)[10..], b"ab\0\0");
    assert!(file.write_at(u64::MAX - 1, b"xyz").is_err());
    assert!(file.set_len(1 << 63).is_err());
    let root = fs.nodes().open(fs.root()).unwrap();
    assert!(matches!(root.read_at(0, &mut bytes), Err(Error::WrongKind { .. })));
    assert!(matches!(root.write_at(0, b"x"), Err(Error::WrongKind { .. })));
}

#[test]
fn appends_of_threads_do_not_meet() {
    let fs = fresh();
    let file = create(&fs, fs.root(), "log");
    std::thread::scope(|scope| {
        for thread in 0..4_u8 {
            let file = &file;
            scope.spawn(move || {
                for _ in 0..300 {
                    file.append(&[thread; 13]).unwrap();
                }
            });
        }
    });
    let bytes = contents(&file);
    assert_eq!(bytes.len(), 4 * 300 * 13);
    let mut counts = [0; 4];
    for record in bytes.chunks(13) {
        assert!(record.iter().all(|byte| *byte == record[0]), "{record:?}");
        counts[usize::from(record[0])] += 1;
    }
    assert_eq!(counts, [300; 4]);
}

#[test]
fn space_is_given_and_taken() {
    let device = memory();
    let fs = open(&device);
    let file = create(&fs, fs.root(), "file");
    let bytes = pattern(10 * BLOCK as usize);
    file.write_at(0, &bytes).unwrap();
    let allocate = |mode, range: std::ops::Range<u64>| {
        file.allocate(mode, range.start * BLOCK..range.end * BLOCK).unwrap();
    };
    let block = |number: usize| &bytes[number * BLOCK as usize..][..BLOCK as usize];
    let at = |file: &File, number: usize| {
        let mut bytes = vec![0; BLOCK as usize];
        file.read_exact_at(number as u64 * BLOCK, &mut bytes).unwrap();
        bytes
    };
    let zeros = vec![0; BLOCK as usize];
    allocate(Allocation::PunchHole, 2..4);
    assert_eq!((at(&file, 2), at(&file, 4)), (zeros.clone(), block(4).to_vec()));
    allocate(Allocation::Zero { keep_size: true }, 5..6);
    assert_eq!(at(&file, 5), zeros);
    allocate(Allocation::Collapse, 0..1);
    assert_eq!((file.size(), at(&file, 0)), (9 * BLOCK, block(1).to_vec()));
    allocate(Allocation::Insert, 0..2);
    assert_eq!((file.size(), at(&file, 2)), (11 * BLOCK, block(1).to_vec()));
    allocate(Allocation::Reserve { keep_size: true }, 11..20);
    assert_eq!(file.size(), 11 * BLOCK);
    allocate(Allocation::Reserve { keep_size: false }, 11..20);
    assert_eq!(file.size(), 20 * BLOCK);
    assert!(file.allocate(Allocation::Collapse, 1..BLOCK).is_err());
    assert!(file.allocate(Allocation::PunchHole, 5..5).is_err());
    let map = file.extent_map().unwrap();
    assert!(map.iter().any(|extent| extent.unwritten && extent.offset == 11 * BLOCK), "{map:?}");
    assert!(map.is_sorted_by(|left, right| left.offset + left.len <= right.offset), "{map:?}");
    drop(file);
    close_and_check(fs, &device);
}

#[test]
fn data_and_holes_are_found() {
    let fs = fresh();
    let file = create(&fs, fs.root(), "sparse");
    file.write_at(4 * BLOCK, &pattern(BLOCK as usize)).unwrap();
    file.write_at(8 * BLOCK + 5, b"x").unwrap();
    file.set_len(12 * BLOCK + 1).unwrap();
    let check = |file: &File| {
        assert_eq!(file.seek_data(0).unwrap(), Some(4 * BLOCK));
        assert_eq!(file.seek_hole(0).unwrap(), Some(0));
        assert_eq!(file.seek_hole(4 * BLOCK + 9).unwrap(), Some(5 * BLOCK));
        assert_eq!(file.seek_data(4 * BLOCK + 9).unwrap(), Some(4 * BLOCK + 9));
        assert_eq!(file.seek_data(5 * BLOCK).unwrap(), Some(8 * BLOCK));
        assert_eq!(file.seek_data(9 * BLOCK).unwrap(), None);
        assert_eq!(file.seek_hole(8 * BLOCK).unwrap(), Some(9 * BLOCK));
        assert_eq!(file.seek_hole(12 * BLOCK + 1).unwrap(), None);
    };
    // Truncation wrote it back; dirty data counts as well.
    check(&file);
    file.write_at(4 * BLOCK, b"dirty").unwrap();
    file.write_at(8 * BLOCK, b"dirty").unwrap();
    check(&file);
    file.write_at(12 * BLOCK, b"y").unwrap();
    assert_eq!(file.seek_hole(12 * BLOCK).unwrap(), Some(12 * BLOCK + 1));
    file.allocate(Allocation::Reserve { keep_size: true }, 0..2 * BLOCK).unwrap();
    assert_eq!(file.seek_data(0).unwrap(), Some(4 * BLOCK), "preallocated space is no data");
}

#[test]
fn dirty_data_has_space_in_the_eyes_of_programs() {
    let fs = fresh();
    let file = create(&fs, fs.root(), "file");
    file.write_at(0, &pattern(1 << 20)).unwrap();
    assert_eq!(file.metadata().blocks, (1 << 20) / 512);
    file.fsync_and_wait().unwrap();
    assert_eq!(file.metadata().blocks, (1 << 20) / 512);
}

#[test]
fn ranges_are_copied_and_whole_blocks_shared() {
    let device = memory();
    let fs = open(&device);
    let source = create(&fs, fs.root(), "source");
    let bytes = pattern(50_000);
    source.write_at(0, &bytes).unwrap();
    let target = create(&fs, fs.root(), "target");
    assert_eq!(target.copy_range(0, &source, 0, u64::MAX).unwrap(), 50_000);
    same(&contents(&target), &bytes);
    assert!(target.extent_map().unwrap().iter().all(|extent| extent.shared));
    // Ends inside blocks, at the same and at other places in them.
    for (to, from, len) in [(100, 4196, 20_000), (7, 3, 9_000), (60_000, 0, 5_000)] {
        let target = create(&fs, fs.root(), &format!("target-{to}"));
        target.write_at(0, &[9; 30_000]).unwrap();
        let mut expected = vec![9; 30_000];
        assert_eq!(target.copy_range(to, &source, from, len).unwrap(), len);
        let (to, from, len) = (to as usize, from as usize, len as usize);
        expected.resize(expected.len().max(to + len), 0);
        expected[to..to + len].copy_from_slice(&bytes[from..from + len]);
        same(&contents(&target), &expected);
    }
    assert_eq!(target.copy_range(0, &source, 60_000, 5).unwrap(), 0);
    assert!(matches!(target.copy_range(10, &target, 0, 100), Err(Error::Invalid(_))));
    assert_eq!(target.copy_range(49_000, &target, 0, 4_000).unwrap(), 4_000);
    same(&contents(&target)[49_000..], &bytes[..4_000]);
    source.allocate(Allocation::Unshare, 0..50_000).unwrap();
    assert!(source.extent_map().unwrap().iter().all(|extent| !extent.shared));
    same(&contents(&source), &bytes);
    drop((source, target));
    close_and_check(fs, &device);
}

#[test]
fn holes_stay_holes_in_copies() {
    let fs = fresh();
    let source = create(&fs, fs.root(), "source");
    source.write_at(7 + (10 << 20), b"end").unwrap();
    source.set_len(20 << 20).unwrap();
    let target = create(&fs, fs.root(), "target");
    // Other places in their blocks, so nothing can be shared.
    assert_eq!(target.copy_range(1, &source, 0, u64::MAX).unwrap(), 20 << 20);
    assert_eq!(target.size(), (20 << 20) + 1);
    assert!(target.metadata().blocks < 64, "{:?}", target.metadata());
    let mut bytes = [0; 3];
    target.read_exact_at(8 + (10 << 20), &mut bytes).unwrap();
    assert_eq!(&bytes, b"end");
    fs.copy("/source", "/copy").unwrap();
    same(&fs.read("/copy").unwrap(), &contents(&source));
    // Over what is there: data goes, and nothing is stored for what was a hole in both.
    target.write_at(3 << 20, &[9; 100_000]).unwrap();
    target.set_len(1 << 40).unwrap();
    source.set_len(1 << 40).unwrap();
    assert_eq!(target.copy_range(1, &source, 0, (1 << 40) - 1).unwrap(), (1 << 40) - 1);
    assert!(target.metadata().blocks < 64, "{:?}", target.metadata());
    let mut bytes = vec![1; 100_000];
    target.read_exact_at(3 << 20, &mut bytes).unwrap();
    same(&bytes, &[0; 100_000]);
}

#[test]
fn flags_forbid_changes() {
    let fs = fresh();
    let file = create(&fs, fs.root(), "file");
    file.write_at(0, b"bytes").unwrap();
    let set = |flags| file.set_attributes(&Change { flags: Some(flags), ..Change::default() });
    set(InodeFlags::APPEND).unwrap();
    assert!(file.write_at(0, b"x").is_err());
    assert!(file.set_len(0).is_err());
    assert_eq!(file.append(b" more").unwrap(), 5);
    set(InodeFlags::IMMUTABLE).unwrap();
    assert!(file.append(b"x").is_err());
    assert!(file.allocate(Allocation::PunchHole, 0..4).is_err());
    assert!(fs.nodes().unlink(fs.root(), b"file").is_err());
    set(InodeFlags::empty()).unwrap();
    fs.nodes().unlink(fs.root(), b"file").unwrap();
    assert_eq!(contents(&file), b"bytes more");
}

#[test]
fn changes_of_an_answered_ticket_survive_a_crash() {
    let device = memory();
    let fs = open_to_crash(&device);
    let file = create(&fs, fs.root(), "file");
    file.write_at(0, b"durable").unwrap();
    file.fsync().wait().unwrap();
    fs.sync().wait().unwrap();
    drop((file, fs));
    assert_eq!(open(&device).read("/file").unwrap(), b"durable");
}

/// As `std::fs::File` has it.
#[test]
fn a_file_is_a_stream() {
    use std::io::{Read, Seek, SeekFrom, Write};
    let fs = fresh();
    let mut file = fs.create_file("/stream", &NewFile::new(0o600)).unwrap();
    assert_eq!(std::io::copy(&mut &b"one two three"[..], &mut file).unwrap(), 13);
    let mut rest = String::new();
    assert_eq!(file.read_to_string(&mut rest).unwrap(), 0, "at its end");
    assert_eq!(file.seek(SeekFrom::End(-5)).unwrap(), 8);
    file.write_all(b"THREE four").unwrap();
    assert_eq!(file.seek(SeekFrom::Current(-10)).unwrap(), 8);
    file.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "THREE four");
    assert_eq!(file.rewind().and_then(|()| file.stream_position()).unwrap(), 0);
    assert_eq!(
        file.seek(SeekFrom::Current(-1)).unwrap_err().kind(),
        std::io::ErrorKind::InvalidInput
    );
    // Behind the end: the bytes between are a hole.
    file.seek(SeekFrom::Start(1 << 20)).unwrap();
    file.write_all(b"end").unwrap();
    assert_eq!(file.size(), (1 << 20) + 3);
    // Each opening has a place of its own.
    let mut bytes = [0; 3];
    fs.open_file("/stream").unwrap().read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"one");
    let error = fs.open_file("/").unwrap().read(&mut bytes).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::IsADirectory);
}
