//! Directory sources.

use crate::collect::{Delivered, drain, open, read_path};
use rustix::fs::{CWD, FileType, Mode, XattrFlags, mknodat};
use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};
use tempfile::TempDir;
use undercroft_source::directory::DirectorySource;
use undercroft_source::{
    DataRange, Device, Exclude, Kind, Lending, Links, Options, Source, SourceError, SourceSpec,
    Timestamp,
};

fn scratch() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn excluding(patterns: &[&str]) -> Options {
    Options { exclude: Exclude::new(patterns).unwrap(), ..Options::default() }
}

fn paths(delivered: &[Delivered]) -> Vec<String> {
    delivered.iter().map(Delivered::path).collect()
}

fn get<'a>(delivered: &'a [Delivered], path: &str) -> &'a Delivered {
    delivered.iter().find(|entry| entry.path() == path).unwrap_or_else(|| panic!("no {path}"))
}

#[test]
fn entries_come_depth_first_and_sorted_by_bytes() {
    let root = scratch();
    for directory in ["b", "a/z", "a/b", "A"] {
        fs::create_dir_all(root.path().join(directory)).unwrap();
    }
    for file in ["a.x", "a/b/2", "a/b/1", "a/y", "A/f", "\u{e9}"] {
        fs::write(root.path().join(file), file).unwrap();
    }
    let delivered = read_path(root.path(), &Options::default()).unwrap();
    let expected =
        ["", "A", "A/f", "a", "a/b", "a/b/1", "a/b/2", "a/y", "a/z", "a.x", "b", "\u{e9}"];
    assert_eq!(paths(&delivered), expected);
    assert_eq!(get(&delivered, "a/b/2").data, b"a/b/2");
}

#[test]
fn every_kind_of_entry_keeps_what_it_has() {
    let root = scratch();
    let at = |name: &str| root.path().join(name);
    fs::write(at("file"), b"contents").unwrap();
    fs::set_permissions(at("file"), PermissionsExt::from_mode(0o6751)).unwrap();
    let before_1970 = UNIX_EPOCH - Duration::from_nanos(1_500_000_000);
    File::options().write(true).open(at("file")).unwrap().set_modified(before_1970).unwrap();
    symlink("no/such/target", at("symlink")).unwrap();
    mknodat(CWD, at("fifo"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let _listener = UnixListener::bind(at("socket")).unwrap();
    fs::create_dir(at("sticky")).unwrap();
    fs::set_permissions(at("sticky"), PermissionsExt::from_mode(0o1777)).unwrap();
    let delivered = read_path(root.path(), &Options::default()).unwrap();

    let file = &get(&delivered, "file").entry;
    let metadata = fs::metadata(at("file")).unwrap();
    assert_eq!((file.metadata.mode, file.links), (0o6751, Links::Single));
    assert_eq!((file.metadata.uid, file.metadata.gid), (metadata.uid(), metadata.gid()));
    assert_eq!(file.metadata.mtime, Timestamp { seconds: -2, nanoseconds: 500_000_000 });
    assert_eq!(get(&delivered, "file").contents(), b"contents");
    let kind = |path| &get(&delivered, path).entry.kind;
    assert_eq!(*kind("symlink"), Kind::Symlink(b"no/such/target".to_vec()));
    assert_eq!((kind("fifo"), kind("socket")), (&Kind::Fifo, &Kind::Socket));
    assert_eq!(get(&delivered, "sticky").entry.metadata.mode, 0o1777);
}

#[test]
fn device_numbers_are_kept() {
    let only_null = excluding(&["/[!n]*", "/n[!u]*", "/nu[!l]*"]);
    let delivered = read_path(Path::new("/dev"), &only_null).unwrap();
    assert_eq!(get(&delivered, "null").entry.kind, Kind::CharDevice(Device { major: 1, minor: 3 }));
}

#[test]
fn attributes_of_files_and_directories_are_kept_with_empty_values_and_acls() {
    let root = scratch();
    let directory = root.path().join("d");
    let file = directory.join("f");
    fs::create_dir(&directory).unwrap();
    fs::write(&file, b"").unwrap();
    let acl = [
        &[2u8, 0, 0, 0][..],
        &[1, 0, 6, 0, 255, 255, 255, 255],
        &[2, 0, 4, 0, 232, 3, 0, 0],
        &[4, 0, 4, 0, 255, 255, 255, 255],
        &[16, 0, 4, 0, 255, 255, 255, 255],
        &[32, 0, 0, 0, 255, 255, 255, 255],
    ]
    .concat();
    let set = |path: &Path, name: &str, value: &[u8]| {
        rustix::fs::setxattr(path, name, value, XattrFlags::empty()).unwrap();
    };
    let large = vec![0xa5; 2000];
    set(&file, "user.large", &large);
    set(&file, "user.empty", b"");
    set(&file, "system.posix_acl_access", &acl);
    set(&directory, "system.posix_acl_default", &acl);
    let delivered = read_path(root.path(), &Options::default()).unwrap();
    let xattrs = |path| {
        let xattrs = &get(&delivered, path).entry.xattrs;
        let pairs = xattrs.iter().map(|xattr| (xattr.name.as_slice(), xattr.value.as_slice()));
        pairs.filter(|(name, _)| !name.starts_with(b"security.")).collect::<Vec<_>>()
    };
    let default = (&b"system.posix_acl_default"[..], &acl[..]);
    let access = (&b"system.posix_acl_access"[..], &acl[..]);
    assert_eq!(xattrs("d"), [default]);
    assert_eq!(xattrs("d/f"), [access, (b"user.empty", b""), (b"user.large", &large)]);
}

#[test]
fn holes_are_found_wherever_they_are() {
    let root = scratch();
    let file = File::create(root.path().join("sparse")).unwrap();
    file.set_len(1 << 40).unwrap();
    file.write_all_at(&[1; 4096], 1 << 20).unwrap();
    file.write_all_at(&[2; 8192], 1 << 39).unwrap();
    File::create(root.path().join("void")).unwrap().set_len(1 << 30).unwrap();
    let delivered = read_path(root.path(), &Options::default()).unwrap();
    let Kind::Regular { size, data } = &get(&delivered, "sparse").entry.kind else { panic!() };
    let expected =
        [DataRange { offset: 1 << 20, length: 4096 }, DataRange { offset: 1 << 39, length: 8192 }];
    assert_eq!((*size, &data[..]), (1 << 40, &expected[..]));
    assert_eq!(get(&delivered, "sparse").data, [vec![1; 4096], vec![2; 8192]].concat());
    let void = Kind::Regular { size: 1 << 30, data: vec![] };
    assert_eq!(get(&delivered, "void").entry.kind, void);
}

#[test]
fn the_first_name_in_order_is_the_file_and_the_others_are_links() {
    let root = scratch();
    let at = |name: &str| root.path().join(name);
    fs::create_dir(at("d")).unwrap();
    fs::write(at("d/file"), b"linked").unwrap();
    fs::hard_link(at("d/file"), at("z")).unwrap();
    fs::hard_link(at("d/file"), at("a")).unwrap();
    symlink("x", at("s2")).unwrap();
    rustix::fs::linkat(CWD, at("s2"), CWD, at("s1"), rustix::fs::AtFlags::empty()).unwrap();
    let link_to = |delivered: &[Delivered], path: &str| match &get(delivered, path).entry.kind {
        Kind::HardLink(first) => first.to_string(),
        other => format!("{other:?}"),
    };
    let delivered = read_path(root.path(), &Options::default()).unwrap();
    assert_eq!(get(&delivered, "a").data, b"linked");
    assert_eq!(get(&delivered, "a").entry.links, Links::Several);
    assert_eq!((link_to(&delivered, "d/file"), link_to(&delivered, "z")), ("a".into(), "a".into()));
    assert_eq!(link_to(&delivered, "s2"), "s1");

    let delivered = read_path(root.path(), &excluding(&["/a"])).unwrap();
    assert_eq!(get(&delivered, "d/file").data, b"linked");
    assert_eq!(link_to(&delivered, "z"), "d/file");
}

#[test]
fn excluded_entries_are_left_out_with_everything_below() {
    let root = scratch();
    fs::create_dir_all(root.path().join("src/target/deep")).unwrap();
    fs::write(root.path().join("src/target/deep/file"), b"").unwrap();
    fs::write(root.path().join("src/a.o"), b"").unwrap();
    fs::write(root.path().join("src/a.c"), b"").unwrap();
    let delivered = read_path(root.path(), &excluding(&["target", "*.o"])).unwrap();
    assert_eq!(paths(&delivered), ["", "src", "src/a.c"]);
}

/// More directories than one batch and more levels than stay open.
fn large_tree(root: &Path) {
    let deep = root.join(["level"; 150].join("/"));
    fs::create_dir_all(&deep).unwrap();
    for level in deep.ancestors().take(150) {
        fs::write(level.join("zz-after"), level.as_os_str().as_encoded_bytes()).unwrap();
    }
    for directory in 0..40 {
        let directory = root.join(format!("{directory}"));
        fs::create_dir(&directory).unwrap();
        for file in 0..30 {
            let contents = vec![b'0' + file; usize::from(file) * 1000];
            fs::write(directory.join(format!("{}", u32::from(file) * 7919 % 101)), contents)
                .unwrap();
        }
        fs::hard_link(directory.join("0"), root.join("level").join(directory.file_name().unwrap()))
            .unwrap();
    }
    fs::write(root.join("large"), vec![9; 20 << 20]).unwrap();
}

#[test]
fn the_stream_is_the_same_for_any_number_of_threads_and_any_copy() {
    let (first, second) = (scratch(), scratch());
    large_tree(first.path());
    let expected = read_path(first.path(), &Options::default()).unwrap();
    assert_eq!(expected.len(), 1 + 150 + 150 + 40 * 31 + 40 + 1);
    for threads in [1, 2, 3, 8] {
        let options = Options { threads: NonZeroUsize::new(threads), ..Options::default() };
        assert_eq!(read_path(first.path(), &options).unwrap(), expected, "{threads} threads");
    }
    // A copy made in another order lists its entries in another order.
    let mut reversed: Vec<_> = expected.iter().rev().collect();
    reversed.sort_by_key(|entry| entry.entry.kind != Kind::Directory);
    for entry in reversed {
        let target = second.path().join(entry.path());
        match &entry.entry.kind {
            Kind::Directory => fs::create_dir_all(target).unwrap(),
            Kind::Regular { .. } => fs::write(target, entry.contents()).unwrap(),
            _ => {}
        }
    }
    let copy = read_path(second.path(), &Options::default()).unwrap();
    let kept = expected.iter().filter(|entry| !matches!(entry.entry.kind, Kind::HardLink(_)));
    assert!(copy.iter().map(|e| (e.path(), &e.data)).eq(kept.map(|e| (e.path(), &e.data))));
}

#[test]
fn a_scan_shows_the_same_entries_without_data_and_only_before_reading() {
    let root = scratch();
    large_tree(root.path());
    let mut source = DirectorySource::open(root.path(), &Options::default()).unwrap();
    let mut scanned = Vec::new();
    source.scan(&mut |entry| scanned.push(entry.clone())).unwrap();
    assert!(matches!(source.scan(&mut |_| {}), Err(SourceError::ScanTooLate)));
    let delivered = drain(&mut source).unwrap();
    assert!(scanned.iter().eq(delivered.iter().map(|delivered| &delivered.entry)));
    assert!(matches!(source.scan(&mut |_| {}), Err(SourceError::ScanTooLate)));
}

#[test]
fn data_that_is_not_taken_is_skipped() {
    let root = scratch();
    large_tree(root.path());
    let mut source = DirectorySource::open(root.path(), &Options::default()).unwrap();
    let mut count = 0;
    while source.next_entry().unwrap().is_some() {
        count += 1;
    }
    assert_eq!(count, 1 + 150 + 150 + 40 * 31 + 40 + 1);
}

#[test]
fn a_file_that_changes_its_size_while_it_is_read_is_an_error() {
    for (new_size, text) in [(40u64 << 20, "shrank"), (100 << 20, "grew")] {
        let root = scratch();
        let file = File::create(root.path().join("victim")).unwrap();
        file.write_all_at(&vec![1; 64 << 20], 0).unwrap();
        let mut source = DirectorySource::open(root.path(), &Options::default()).unwrap();
        while source.next_entry().unwrap().unwrap().path.is_root() {}
        // The window of read-ahead is far smaller than the file.
        file.set_len(new_size).unwrap();
        let error = loop {
            match source.next_data() {
                Ok(data) => assert!(data.is_some()),
                Err(error) => break error.to_string(),
            }
        };
        let expected = format!("victim {text} while it was read: it had 67108864 bytes");
        assert!(error.contains(&expected), "{error}");
        assert!(source.next_entry().unwrap().is_none(), "an error is the end");
    }
}

#[test]
fn what_cannot_be_read_is_named_with_a_remedy() {
    // Opens, but nothing is mapped at its start.
    let only_mem = excluding(&["/[!m]*", "/m[!e]*"]);
    let error = read_path(Path::new("/proc/self"), &only_mem).unwrap_err().to_string();
    assert!(error.contains("cannot read mem") && error.contains("leave it out"), "{error}");

    let missing = open(&SourceSpec::Path("/no/such/tree".into()), &Options::default());
    let error = missing.err().unwrap().to_string();
    assert!(error.contains("/no/such/tree") && error.contains("exists"), "{error}");

    let root = scratch();
    symlink("t".repeat(1024), root.path().join("link")).unwrap();
    let error = read_path(root.path(), &Options::default()).unwrap_err().to_string();
    assert!(error.contains("link") && error.contains("1024 bytes, the most is 1023"), "{error}");
}

#[test]
fn a_consumer_that_stops_early_leaves_no_thread_waiting() {
    let root = scratch();
    large_tree(root.path());
    let mut source = DirectorySource::open(root.path(), &Options::default()).unwrap();
    source.next_entry().unwrap();
    drop(source);
}

/// The source behind its scan, with files from 64 KiB on lent.
fn lending(root: &Path) -> (DirectorySource, Lending) {
    let mut source = DirectorySource::open(root, &Options::default()).unwrap();
    let lending = Lending::new(64 << 10);
    assert!(source.lend_files(&lending));
    (source, lending)
}

#[test]
fn large_files_are_lent_and_small_ones_delivered() {
    let root = scratch();
    let lengths = [0, 1, 65_535, 65_536, 300_000];
    for length in lengths {
        fs::write(root.path().join(format!("{length:06}")), vec![7; length]).unwrap();
    }
    // More than are handed over together.
    (0..30).for_each(|number| {
        fs::write(root.path().join(format!("many-{number}")), vec![8; 70_000]).unwrap();
    });
    let (mut source, _) = lending(root.path());
    let mut found = Vec::new();
    while let Some(entry) = source.next_entry().unwrap() {
        let Kind::Regular { size, .. } = entry.kind else { continue };
        let lent = source.lent_file().unwrap();
        assert_eq!(lent.is_some(), size >= 65_536, "{}", entry.path);
        let mut bytes = 0;
        while let Some(data) = source.next_data().unwrap() {
            bytes += data.chunk.len() as u64;
        }
        assert_eq!(bytes, if lent.is_some() { 0 } else { size });
        if let Some(lent) = lent {
            let mut at = 0;
            while at < size {
                at += lent.read(at, size - at).unwrap().len() as u64;
            }
            lent.check().unwrap();
        }
        found.push(size);
    }
    assert_eq!(found.len(), lengths.len() + 30);
}

#[test]
fn a_lent_file_that_changes_is_told() {
    let root = scratch();
    let path = root.path().join("file");
    fs::write(&path, vec![7; 100_000]).unwrap();
    let (mut source, _) = lending(root.path());
    let lent = loop {
        source.next_entry().unwrap().unwrap();
        if let Some(lent) = source.lent_file().unwrap() {
            break lent;
        }
    };
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(100_001).unwrap();
    assert!(lent.check().unwrap_err().to_string().contains("grew"));
    file.set_len(50_000).unwrap();
    assert!(lent.check().unwrap_err().to_string().contains("shrank"));
    assert!(lent.read(60_000, 10).unwrap_err().to_string().contains("shrank"));
}

#[test]
fn files_of_a_file_system_that_was_refused_are_delivered() {
    let root = scratch();
    // More than are read ahead.
    (0..3000).for_each(|number| {
        fs::write(root.path().join(format!("{number:04}")), vec![7; 65_536]).unwrap();
    });
    let (mut source, _) = lending(root.path());
    let (mut lent, mut delivered) = (0, 0);
    while let Some(entry) = source.next_entry().unwrap() {
        if let Some(file) = source.lent_file().unwrap() {
            file.refuse();
            lent += 1;
        } else if matches!(entry.kind, Kind::Regular { .. }) {
            assert_eq!(source.next_data().unwrap().unwrap().chunk.len(), 65_536);
            delivered += 1;
        }
    }
    assert_eq!(lent + delivered, 3000);
    assert!((1..1000).contains(&lent), "{lent} were lent");
}
