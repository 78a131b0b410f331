//! What a scan keeps for the pass behind it, and when it keeps nothing.

use crate::archive::Archive;
use crate::collect::drain;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use undercroft_source::directory::DirectorySource;
use undercroft_source::tar::TarSource;
use undercroft_source::{Entry, Options, Source};

fn scratch() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Scans a tree and reads it, and says whether the second pass went by what the first one saw: a
/// file that was made between them is then missing.
fn is_kept(root: &Path) -> bool {
    let mut source = DirectorySource::open(root, &Options::default()).unwrap();
    let mut scanned = Vec::new();
    source.scan(&mut |entry| scanned.push(entry.path.clone())).unwrap();
    let late = root.join("~late");
    fs::write(&late, "x").unwrap();
    let mut read: Vec<_> = drain(&mut source).unwrap().into_iter().map(|d| d.entry.path).collect();
    fs::remove_file(late).unwrap();
    // It is the last of all by its name.
    let is_late = |path: &mut undercroft_source::EntryPath| path.as_bytes() == b"~late";
    let found = read.pop_if(is_late).is_some();
    assert_eq!(read, scanned);
    !found
}

/// Directories in one another, each with a file of one byte.
fn nested(root: &Path, levels: usize) -> PathBuf {
    let mut directory = root.to_owned();
    for _ in 0..levels {
        directory.push("d");
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("f"), "x").unwrap();
    }
    directory
}

#[test]
fn only_a_tree_of_few_levels_is_kept() {
    // A file in 63 directories has 64 above it with the root.
    for (levels, kept) in [(1, true), (63, true), (64, false), (200, false)] {
        let root = scratch();
        nested(root.path(), levels);
        assert_eq!(is_kept(root.path()), kept, "{levels} levels");
    }
}

#[test]
fn only_a_tree_of_few_bytes_is_kept() {
    let root = scratch();
    let mut directory = root.path().to_owned();
    for _ in 0..14 {
        directory.push("d".repeat(255));
        fs::create_dir(&directory).unwrap();
    }
    // Each costs more than its path of 3,590 bytes: 32 MiB are 9,347 of those at most.
    let make = |numbers: std::ops::Range<usize>| {
        numbers.for_each(|number| fs::write(directory.join(format!("{number:06}")), "").unwrap());
    };
    make(0..4000);
    assert!(is_kept(root.path()));
    make(4000..9400);
    assert!(!is_kept(root.path()));
}

/// Directories and files below `root` that this process has open.
fn open_below(root: &Path) -> usize {
    let all = fs::read_dir("/proc/self/fd").unwrap();
    let targets = all.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    targets
        .filter(|path| path.as_os_str().as_bytes().starts_with(root.as_os_str().as_bytes()))
        .count()
}

#[test]
fn a_deep_tree_takes_few_descriptors() {
    const LEVELS: usize = 900;
    let root = scratch();
    nested(root.path(), LEVELS);
    let mut source = DirectorySource::open(root.path(), &Options::default()).unwrap();
    let (mut count, mut most) = (0, 0);
    let mut look = || {
        count += 1;
        if count % 50 == 0 {
            most = most.max(open_below(root.path()));
        }
    };
    source.scan(&mut |_| look()).unwrap();
    while source.next_entry().unwrap().is_some() {
        look();
    }
    assert_eq!(count, 2 * (1 + 2 * LEVELS));
    // Those of 64 levels, and of 16 batches with 16 directories each.
    assert!((1..400).contains(&most), "{most} are open");
}

#[test]
fn a_scan_refuses_files_that_have_more_than_their_size_says() {
    let root = Path::new("/proc/sys/fs/inotify");
    let mut source = DirectorySource::open(root, &Options::default()).unwrap();
    let error = source.scan(&mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("grew while it was read: it had 0 bytes"), "{error}");
}

/// A directory with files of these contents.
fn files(contents: &[(&str, &str)]) -> TempDir {
    let root = scratch();
    contents.iter().for_each(|(name, text)| fs::write(root.path().join(name), text).unwrap());
    root
}

/// A source of a directory that was scanned, and the entries.
fn scanned(root: &Path) -> (DirectorySource, Vec<Entry>) {
    scan(DirectorySource::open(root, &Options::default()).unwrap())
}

fn scan<S: Source>(mut source: S) -> (S, Vec<Entry>) {
    let mut entries = Vec::new();
    source.scan(&mut |entry| entries.push(entry.clone())).unwrap();
    (source, entries)
}

#[test]
fn entries_with_and_without_data_keep_their_order() {
    let root = files(&[("a", "1"), ("b", ""), ("c", ""), ("d", "4"), ("e", "5"), ("f", "")]);
    std::os::unix::fs::symlink("a", root.path().join("cc")).unwrap();
    fs::hard_link(root.path().join("a"), root.path().join("dd")).unwrap();
    let (mut source, expected) = scanned(root.path());
    for taken in [3, expected.len()] {
        // A pass may be given up half-way.
        for _ in 0..taken {
            source.next_entry().unwrap().unwrap();
        }
        source.restart().unwrap();
        let read = drain(&mut source).unwrap();
        assert!(read.iter().map(|drained| &drained.entry).eq(&expected));
        let data: Vec<_> = read.iter().map(|drained| drained.data.len()).collect();
        assert_eq!(data, [0, 1, 0, 0, 0, 1, 0, 1, 0]);
        source.restart().unwrap();
    }
}

#[test]
fn data_that_was_not_taken_is_not_that_of_the_next_entry() {
    let root = files(&[("a", "first"), ("b", ""), ("c", "third")]);
    let (mut source, _) = scanned(root.path());
    for _ in ["", "a", "b"] {
        source.next_entry().unwrap().unwrap();
    }
    assert!(source.lent_file().unwrap().is_none());
    assert!(source.next_data().unwrap().is_none());
    source.next_entry().unwrap().unwrap();
    assert_eq!(source.next_data().unwrap().unwrap().chunk.as_slice(), b"third");
}

#[test]
fn what_has_no_data_is_not_looked_up_again() {
    let root = files(&[("a", ""), ("b", "")]);
    let (mut source, expected) = scanned(root.path());
    root.close().unwrap();
    let read = drain(&mut source).unwrap();
    assert!(read.iter().map(|drained| &drained.entry).eq(&expected));
}

#[test]
fn nothing_comes_after_an_error() {
    let root = files(&[("a", "1"), ("b", "2"), ("c", "")]);
    let (mut source, _) = scanned(root.path());
    fs::remove_file(root.path().join("b")).unwrap();
    let error = drain(&mut source).unwrap_err().to_string();
    assert!(error.contains("b was removed or replaced"), "{error}");
    assert!(source.next_entry().unwrap().is_none());
    assert!(source.next_data().unwrap().is_none());
}

/// A source of the archive that was scanned, and the entries.
fn scanned_archive(path: &Path) -> (TarSource, Vec<Entry>) {
    scan(TarSource::open(path, &Options::default()).unwrap())
}

#[test]
fn an_archive_is_read_by_what_its_scan_saw() {
    let large: Vec<u8> = (0..3_000_000_u32).map(|index| (index % 251) as u8).collect();
    let archive = Archive::default()
        .file("implied/a", b"first")
        .file("b", b"")
        .link("c", b'1', "implied/a")
        .file("large", &large)
        .directory("d")
        .file("d/e", b"last")
        .end();
    let root = scratch();
    let path = root.path().join("a.tar");
    fs::write(&path, &archive).unwrap();
    let (mut source, expected) = scanned_archive(&path);
    // Data of the first file alone, then all of it.
    source.next_entry().unwrap().unwrap();
    source.next_entry().unwrap().unwrap();
    assert_eq!(source.next_data().unwrap().unwrap().chunk.as_slice(), b"first");
    for _ in 0..2 {
        source.restart().unwrap();
        let read = drain(&mut source).unwrap();
        assert!(read.iter().map(|drained| &drained.entry).eq(&expected));
        let data: Vec<_> = read.iter().map(|drained| drained.data.len()).collect();
        assert_eq!(data, [0, 5, 0, 0, 3_000_000, 0, 4]);
        assert_eq!(read[4].data, large);
    }
}

#[test]
fn an_archive_that_changed_after_its_scan_is_decoded_anew() {
    let root = scratch();
    let path = root.path().join("a.tar");
    fs::write(&path, Archive::default().file("before", b"1").end()).unwrap();
    let (mut source, _) = scanned_archive(&path);
    let after = Archive::default().file("after", b"22").file("more", b"").end();
    fs::write(&path, &after[..1536]).unwrap();
    let read = drain(&mut source).unwrap();
    assert_eq!((read[0].path(), &read[0].data[..]), ("after".to_owned(), &b"22"[..]));
}
