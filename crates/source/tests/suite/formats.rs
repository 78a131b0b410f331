//! Archives in every format: by the system's tar from a real tree, and by hand.

use crate::archive::{Archive, header, record, seal};
use crate::collect::{Delivered, drain, open, read_bytes, read_path};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use undercroft_source::{
    DataRange, Device, Exclude, Kind, Links, Options, SourceSpec, Timestamp, Warnings,
};

fn scratch() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// A tree that every format can hold; long names only where the format has them.
fn tree(root: &Path, long_names: bool) {
    fs::create_dir_all(root.join("dir/sub")).unwrap();
    fs::write(root.join("dir/file"), b"some data").unwrap();
    fs::write(root.join("dir/empty"), b"").unwrap();
    fs::write(root.join("block"), [5; 512]).unwrap();
    fs::write(root.join("large"), vec![6; (3 << 20) + 17]).unwrap();
    fs::set_permissions(root.join("block"), PermissionsExt::from_mode(0o4755)).unwrap();
    symlink("dir/file", root.join("symlink")).unwrap();
    fs::hard_link(root.join("dir/file"), root.join("zlink")).unwrap();
    if long_names {
        let deep = root.join(["component-of-a-long-path"; 12].join("/"));
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("n".repeat(255)), b"long").unwrap();
        fs::hard_link(deep.join("n".repeat(255)), root.join("zlong")).unwrap();
        symlink("t".repeat(900), root.join("long-target")).unwrap();
        fs::write(root.join(std::str::from_utf8("\u{fc}\n".as_bytes()).unwrap()), b"odd").unwrap();
        let sparse = File::create(root.join("sparse")).unwrap();
        sparse.set_len(10 << 30).unwrap();
        for index in 0..60u64 {
            sparse.write_all_at(&[index as u8 + 1; 4096], (index * index) << 20).unwrap();
        }
        File::create(root.join("void")).unwrap().set_len(1 << 33).unwrap();
    }
}

fn tar(root: &Path, archive: &Path, arguments: &[&str]) {
    let status = Command::new("tar")
        .args(arguments)
        .args(["--sort=name", "-cf"])
        .arg(archive)
        .arg("-C")
        .arg(root)
        .arg(".")
        .status()
        .expect("these tests need GNU tar");
    assert!(status.success());
}

/// What must survive the way through an archive. Headers other than pax have whole seconds.
fn comparable(delivered: Vec<Delivered>, nanoseconds: bool) -> BTreeMap<String, Delivered> {
    let map = delivered.into_iter().map(|mut delivered| {
        let entry = &mut delivered.entry;
        entry.links = Links::Single;
        entry.xattrs.retain(|xattr| !xattr.name.starts_with(b"security."));
        if !nanoseconds {
            entry.metadata.mtime.nanoseconds = 0;
        }
        (delivered.path(), delivered)
    });
    map.collect()
}

#[test]
fn the_systems_tar_and_the_directory_give_the_same_tree() {
    let work = scratch();
    let (short, long) = (work.path().join("short"), work.path().join("long"));
    fs::create_dir(&short).unwrap();
    fs::create_dir(&long).unwrap();
    tree(&short, false);
    tree(&long, true);
    let archive = work.path().join("archive.tar");
    for (root, arguments) in [
        (&short, &["--format=v7"][..]),
        (&short, &["--format=ustar"]),
        (&short, &["--format=oldgnu"]),
        (&long, &["--format=gnu", "--sparse"]),
        (&long, &["--format=pax", "--sparse", "--sparse-version=0.0"]),
        (&long, &["--format=pax", "--sparse", "--sparse-version=0.1"]),
        (&long, &["--format=pax", "--sparse", "--sparse-version=1.0"]),
    ] {
        tar(root, &archive, arguments);
        let pax = arguments.contains(&"--format=pax");
        let expected = comparable(read_path(root, &Options::default()).unwrap(), pax);
        let found = comparable(read_path(&archive, &Options::default()).unwrap(), pax);
        assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        for (path, entry) in &expected {
            assert!(found[path] == *entry, "{path} with {arguments:?}: {:?}", found[path].entry);
        }
    }
}

#[test]
fn incremental_archives_hold_their_directories_and_what_changed() {
    let work = scratch();
    let (root, archive) = (work.path().join("tree"), work.path().join("archive.tar"));
    fs::create_dir(&root).unwrap();
    tree(&root, false);
    // Directories come before all files, so another name of this one would be its first.
    fs::remove_file(root.join("zlink")).unwrap();
    // More names than a block holds.
    for index in 0..100 {
        fs::write(root.join(format!("dir/sub/number {index}")), [index; 3]).unwrap();
    }
    for format in ["gnu", "oldgnu", "pax"] {
        let names = work.path().join(format);
        let listed = format!("--listed-incremental={}", names.display());
        let arguments = [&format!("--format={format}")[..], &listed];
        tar(&root, &archive, &arguments);
        let old_type = fs::read(&archive).unwrap()[156] == b'D';
        assert_eq!(old_type, format != "pax", "{format}");
        let expected = comparable(read_path(&root, &Options::default()).unwrap(), format == "pax");
        let mut found =
            comparable(read_path(&archive, &Options::default()).unwrap(), format == "pax");
        assert!(found == expected, "{format}: {:?}", found.keys());
        // The second archive has all directories, and of the files those that changed.
        let changed = format!("new for {format}");
        fs::write(root.join("dir").join(&changed), b"new").unwrap();
        tar(&root, &archive, &arguments);
        found = comparable(read_path(&archive, &Options::default()).unwrap(), format == "pax");
        let names: Vec<_> = found.keys().map(String::as_str).collect();
        assert_eq!(names, ["", "dir", &format!("dir/{changed}"), "dir/sub"], "{format}");
    }
    let exclude = Exclude::new(["dir"]).unwrap();
    let listed = format!("--listed-incremental={}", work.path().join("whole").display());
    tar(&root, &archive, &["--format=gnu", &listed]);
    let kept = read_path(&archive, &Options { exclude, ..Options::default() }).unwrap();
    let names: Vec<_> = kept.iter().map(Delivered::path).collect();
    assert_eq!(names, ["", "block", "large", "symlink"]);
}

#[test]
fn later_volumes_of_the_systems_tar_are_refused() {
    let work = scratch();
    let root = work.path().join("tree");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("large"), [7; 150_000]).unwrap();
    for format in ["gnu", "pax"] {
        let volumes = [1, 2].map(|number| work.path().join(format!("{format}.{number}")));
        let first = format!("--file={}", volumes[0].display());
        let format = format!("--format={format}");
        tar(&root, &volumes[1], &["--multi-volume", "--tape-length=100", &format, &first]);
        let read = |path: &PathBuf| read_path(path, &Options::default()).unwrap_err().to_string();
        let [first, second] = [read(&volumes[0]), read(&volumes[1])];
        assert!(first.contains("inside a file"), "{format}: {first}");
        assert!(second.contains("begins in the volume before"), "{format}: {second}");
    }
}

#[test]
fn attributes_and_access_control_lists_survive_the_systems_tar() {
    let work = scratch();
    let (root, archive) = (work.path().join("tree"), work.path().join("archive.tar"));
    fs::create_dir(&root).unwrap();
    fs::write(root.join("file"), b"").unwrap();
    let acl = [
        &[2u8, 0, 0, 0][..],
        &[1, 0, 6, 0, 255, 255, 255, 255],
        &[2, 0, 4, 0, 0, 0, 0, 0],
        &[4, 0, 4, 0, 255, 255, 255, 255],
        &[16, 0, 4, 0, 255, 255, 255, 255],
        &[32, 0, 0, 0, 255, 255, 255, 255],
    ]
    .concat();
    for (name, value) in
        [("system.posix_acl_access", &acl[..]), ("user.empty", b""), ("user.=\n%", b"\0\n=")]
    {
        let flags = rustix::fs::XattrFlags::empty();
        rustix::fs::setxattr(root.join("file"), name, value, flags).unwrap();
    }
    let expected = comparable(read_path(&root, &Options::default()).unwrap(), true);
    assert_eq!(expected["file"].entry.xattrs.len(), 3);
    for arguments in [&["--acls", "--xattrs"][..], &["--xattrs", "--xattrs-include=*"]] {
        tar(&root, &archive, arguments);
        let found = comparable(read_path(&archive, &Options::default()).unwrap(), true);
        assert_eq!(found, expected, "{arguments:?}");
    }
}

fn compressed(plain: &[u8]) -> [(&'static str, Vec<u8>); 4] {
    let gzip = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let mut zstd = zstd::Encoder::new(Vec::new(), 1).unwrap();
    zstd.include_checksum(true).unwrap();
    zstd.write_all(plain).unwrap();
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
    xz.write_all(plain).unwrap();
    let (head, tail) = plain.split_at(plain.len() / 2);
    [
        ("gzip", gzip(plain)),
        ("gzip in two members", [gzip(head), gzip(tail)].concat()),
        ("zstd", zstd.finish().unwrap()),
        ("xz", xz.finish().unwrap()),
    ]
}

fn write(work: &TempDir, bytes: &[u8]) -> PathBuf {
    let path = work.path().join("archive");
    fs::write(&path, bytes).unwrap();
    path
}

fn small_archive() -> Vec<u8> {
    let large: Vec<u8> =
        (0..2_000_000u32).map(|index| (index.wrapping_mul(index) >> 7) as u8).collect();
    Archive::default().directory("./").file("./large", &large).file("small", b"small").end()
}

#[test]
fn compression_is_found_by_the_first_bytes_and_both_passes_see_the_same() {
    let work = scratch();
    let plain = small_archive();
    let expected = read_bytes(&plain, &Options::default()).unwrap();
    assert_eq!(expected.len(), 3);
    for (name, bytes) in compressed(&plain).into_iter().chain([("plain", plain.clone())]) {
        let path = write(&work, &bytes);
        assert_eq!(read_path(&path, &Options::default()).unwrap(), expected, "{name}");
        let options = Options { temporary_directory: work.path().into(), ..Options::default() };
        let mut source = open(&SourceSpec::Path(path), &options).unwrap();
        let mut scanned = Vec::new();
        source.scan(&mut |entry| scanned.push(entry.clone())).unwrap();
        assert!(scanned.iter().eq(expected.iter().map(|delivered| &delivered.entry)), "{name}");
        assert_eq!(drain(source.as_mut()).unwrap(), expected, "{name}");
    }
    assert_eq!(fs::read_dir(work.path()).unwrap().count(), 1, "the copies have no names");
}

/// A scan reads headers where their sizes lead it, and those are not always the ones that count.
#[test]
fn a_scan_sees_what_is_there_where_headers_misstate_their_size() {
    let mut inner = Archive::default();
    for number in 0..300 {
        inner = inner.file(&format!("inner{number}"), &[4; 1000][number..]);
    }
    let inner = inner.end();
    let size = inner.len().to_string();
    let many = |archive: Archive, name: &str| {
        (0..200).fold(archive, |archive, number| archive.file(&format!("{name}{number}"), b"few"))
    };
    // What follows this header looks like headers, too.
    let bytes = many(Archive::default(), "first")
        .pax(&[("size", size.as_bytes())])
        .raw(&header(b"archive", b'0', 0))
        .raw(&inner);
    let bytes = many(bytes, "second").end();
    let expected = read_bytes(&bytes, &Options::default()).unwrap();
    assert_eq!(expected.len(), 401);
    let work = scratch();
    let mut source = open(&SourceSpec::Path(write(&work, &bytes)), &Options::default()).unwrap();
    let mut scanned = Vec::new();
    source.scan(&mut |entry| scanned.push(entry.clone())).unwrap();
    assert!(scanned.iter().eq(expected.iter().map(|delivered| &delivered.entry)));
    assert_eq!(drain(source.as_mut()).unwrap(), expected);
}

#[test]
fn a_pipe_serves_one_pass_directly_and_two_through_a_copy() {
    let work = scratch();
    let pipe = work.path().join("pipe");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let bytes = small_archive();
    let expected = read_bytes(&bytes, &Options::default()).unwrap();
    for scan in [false, true] {
        let writer = std::thread::spawn({
            let (pipe, bytes) = (pipe.clone(), bytes.clone());
            move || fs::write(pipe, bytes).unwrap()
        });
        let mut source = open(&SourceSpec::Path(pipe.clone()), &Options::default()).unwrap();
        let mut scanned = 0;
        if scan {
            source.scan(&mut |_| scanned += 1).unwrap();
            assert_eq!(scanned, expected.len());
        }
        assert_eq!(drain(source.as_mut()).unwrap(), expected);
        writer.join().unwrap();
    }
}

#[test]
fn truncated_and_corrupt_compression_is_an_error_in_both_passes() {
    let work = scratch();
    for (name, bytes) in compressed(&small_archive()) {
        let mut corrupt = bytes.clone();
        let middle = corrupt.len() / 2;
        for byte in &mut corrupt[middle..middle + 16] {
            *byte ^= 0x55;
        }
        // Without its last byte only the check sum at the end is incomplete.
        for (what, damaged) in [
            ("cut", &bytes[..middle]),
            ("without its last byte", &bytes[..bytes.len() - 1]),
            ("corrupt", &corrupt[..]),
        ] {
            // One of the members is whole when the cut is between them.
            if name.ends_with("members") {
                continue;
            }
            let path = write(&work, damaged);
            let result = read_path(&path, &Options::default());
            let error = result.err().unwrap_or_else(|| panic!("{name} {what}")).to_string();
            assert!(error.contains("at byte") && error.contains("again"), "{name} {what}: {error}");
            let mut source = open(&SourceSpec::Path(path), &Options::default()).unwrap();
            let error = source.scan(&mut |_| {}).unwrap_err().to_string();
            assert!(error.contains("at byte"), "{name} {what}: {error}");
        }
    }
}

#[test]
fn a_spool_directory_that_does_not_exist_is_named() {
    let work = scratch();
    let path = write(&work, &compressed(&small_archive())[0].1);
    let options = Options { temporary_directory: "/no/such/place".into(), ..Options::default() };
    let mut source = open(&SourceSpec::Path(path), &options).unwrap();
    let error = source.scan(&mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("/no/such/place") && error.contains("temporary"), "{error}");
}

fn only(bytes: &[u8]) -> Delivered {
    let mut all = read_bytes(bytes, &Options::default()).unwrap();
    assert_eq!(all.len(), 1);
    all.remove(0)
}

#[test]
fn pax_records_replace_header_fields() {
    let long = "d".repeat(200);
    let records: [(&str, &[u8]); 8] = [
        ("path", long.as_bytes()),
        ("uid", b"4294967294"),
        ("gid", b"3000000000"),
        ("mtime", b"-1.5"),
        ("atime", b"1"),
        ("hdrcharset", b"BINARY"),
        ("SCHILY.xattr.trusted.t", b""),
        ("SCHILY.acl.access", b"user::rw-,group::r--,other::---"),
    ];
    let Delivered { entry, data } =
        only(&Archive::default().pax(&records).file("short", b"data").end());
    assert_eq!((entry.path.as_bytes(), &data[..]), (long.as_bytes(), &b"data"[..]));
    assert_eq!((entry.metadata.uid, entry.metadata.gid), (4_294_967_294, 3_000_000_000));
    assert_eq!(entry.metadata.mtime, Timestamp { seconds: -2, nanoseconds: 500_000_000 });
    let names: Vec<_> = entry.xattrs.iter().map(|xattr| &xattr.name[..]).collect();
    assert_eq!(names, [&b"system.posix_acl_access"[..], b"trusted.t"]);
    assert_eq!((entry.xattrs[0].value.len(), entry.xattrs[1].value.len()), (28, 0));
}

#[test]
fn the_size_in_a_pax_header_is_the_one_that_counts() {
    let bytes = Archive::default()
        .pax(&[("size", b"700")])
        .raw(&header(b"file", b'0', 0))
        .raw(&[3; 700])
        .file("next", b"")
        .end();
    let all = read_bytes(&bytes, &Options::default()).unwrap();
    assert_eq!((all[0].data.len(), all[1].path()), (700, "next".to_owned()));
}

#[test]
fn global_headers_hold_until_a_header_of_the_entry_says_otherwise() {
    let global = [record("uid", b"7"), record("gid", b"8")].concat();
    let bytes = Archive::default()
        .entry("g", b'g', &global)
        .file("a", b"")
        .pax(&[("uid", b"9")])
        .file("b", b"")
        .pax(&[("gid", b"")])
        .file("c", b"")
        .end();
    let all = read_bytes(&bytes, &Options::default()).unwrap();
    let owners: Vec<_> =
        all.iter().map(|all| (all.entry.metadata.uid, all.entry.metadata.gid)).collect();
    assert_eq!(owners, [(7, 8), (9, 8), (7, 0o144)]);
}

#[test]
fn gnu_long_names_and_old_directories() {
    let (long, target) = (format!("{}\0", "l".repeat(150)), format!("{}\0", "t".repeat(150)));
    let bytes = Archive::default()
        .entry("././@LongLink", b'L', long.as_bytes())
        .entry("././@LongLink", b'K', target.as_bytes())
        .link("cut", b'2', "cut")
        .file("old/", b"")
        .end();
    let all = read_bytes(&bytes, &Options::default()).unwrap();
    assert_eq!(all[0].path(), "l".repeat(150));
    assert_eq!(all[0].entry.kind, Kind::Symlink(vec![b't'; 150]));
    assert_eq!(all[1].entry.kind, Kind::Directory);
}

#[test]
fn devices_and_pipes() {
    let device = |entry_type| {
        let mut header = header(&[entry_type], entry_type, 0);
        header[329..337].copy_from_slice(b"0000010\0");
        header[337..345].copy_from_slice(b"0000401\0");
        seal(header)
    };
    let bytes = Archive::default().raw(&device(b'3')).raw(&device(b'4')).raw(&device(b'6')).end();
    let kinds: Vec<_> = read_bytes(&bytes, &Options::default())
        .unwrap()
        .into_iter()
        .map(|delivered| delivered.entry.kind)
        .collect();
    let number = Device { major: 8, minor: 257 };
    assert_eq!(kinds, [Kind::CharDevice(number), Kind::BlockDevice(number), Kind::Fifo]);
}

#[test]
fn sparse_ranges_need_no_alignment() {
    let records: [(&str, &[u8]); 3] = [
        ("GNU.sparse.size", b"1000"),
        ("GNU.sparse.numblocks", b"2"),
        ("GNU.sparse.map", b"1,3,500,4"),
    ];
    let Delivered { entry, data } =
        only(&Archive::default().pax(&records).file("s", b"abcdefg").end());
    let ranges = [DataRange { offset: 1, length: 3 }, DataRange { offset: 500, length: 4 }];
    assert_eq!(entry.kind, Kind::Regular { size: 1000, data: ranges.to_vec() });
    assert_eq!(data, b"abcdefg");
}

#[test]
fn missing_parents_are_made_and_repeated_directories_are_updates() {
    let bytes = Archive::default().file("a/b/c", b"x").directory("a").directory("a/b/").end();
    let all = read_bytes(&bytes, &Options::default()).unwrap();
    let paths: Vec<_> = all.iter().map(Delivered::path).collect();
    assert_eq!(paths, ["a", "a/b", "a/b/c", "a", "a/b"]);
    let implicit = all[0].entry.metadata;
    assert_eq!((implicit.mode, implicit.uid, implicit.gid), (0o755, 0, 0));
    assert_eq!(implicit.mtime, all[2].entry.metadata.mtime);
    assert_eq!((all[3].entry.metadata.mode, all[3].entry.metadata.uid), (0o640, 0o1750));
    assert_eq!(all[2].data, b"x");
}

#[test]
fn a_hard_links_size_counts_only_after_a_pax_header() {
    let sized = || {
        let mut header = header(b"link", b'1', 5);
        header[157] = b'f';
        seal(header)
    };
    let old = Archive::default().file("f", b"12345").raw(&sized()).file("next", b"").end();
    let all = read_bytes(&old, &Options::default()).unwrap();
    assert_eq!(all[2].path(), "next");
    let pax = Archive::default().file("f", b"12345").pax(&[("comment", b"")]);
    let pax = pax.raw(&sized()).raw(b"12345").file("next", b"").end();
    let all = read_bytes(&pax, &Options::default()).unwrap();
    assert_eq!((all[1].data.len(), all[2].path()), (0, "next".to_owned()));
    assert!(matches!(&all[1].entry.kind, Kind::HardLink(first) if first.as_bytes() == b"f"));
}

#[test]
fn excluded_members_are_skipped_with_their_data() {
    let bytes = Archive::default()
        .directory("target")
        .file("target/x", &[1; 3000])
        .file("kept", b"kept")
        .file("a.o", &[2; 600])
        .end();
    let exclude = Exclude::new(["target", "*.o"]).unwrap();
    let all = read_bytes(&bytes, &Options { exclude, ..Options::default() }).unwrap();
    assert_eq!((all.len(), all[0].path(), &all[0].data[..]), (1, "kept".into(), &b"kept"[..]));
}

#[test]
fn absolute_paths_can_be_stripped() {
    let bytes = Archive::default().file("/etc/f", b"").link("/l", b'1', "/etc/f").end();
    let options = Options { strip_absolute: true, ..Options::default() };
    let all = read_bytes(&bytes, &options).unwrap();
    let paths: Vec<_> = all.iter().map(Delivered::path).collect();
    assert_eq!(paths, ["etc", "etc/f", "l"]);
}

#[test]
fn one_zero_block_at_the_end_and_anything_after_two_is_accepted() {
    let archive = Archive::default().file("f", b"");
    let lone = archive.clone().raw(&[0; 512]).bytes;
    let trailing = archive.raw(&[0; 1024]).raw(&[9; 5000]).bytes;
    for bytes in [lone, trailing] {
        assert_eq!(read_bytes(&bytes, &Options::default()).unwrap().len(), 1);
    }
}

#[test]
fn what_comes_twice_replaces_what_came_before() {
    let bytes = Archive::default()
        .file("f", b"old")
        .link("l", b'1', "f")
        .file("./f", b"new")
        .link("f", b'2', "target")
        .end();
    let all = read_bytes(&bytes, &Options::default()).unwrap();
    let replaces: Vec<_> = all.iter().map(|all| (all.path(), all.entry.replaces)).collect();
    let expected = [("f", false), ("l", false), ("f", true), ("f", true)];
    assert_eq!(replaces, expected.map(|(path, replaces)| (path.to_owned(), replaces)));
    assert_eq!((&all[0].data[..], &all[2].data[..]), (&b"old"[..], &b"new"[..]));
}

#[test]
fn warnings_are_told_after_each_pass() {
    let work = scratch();
    let foreign: [(&str, &[u8]); 3] = [
        ("SCHILY.xattr.foo", b"1"),
        ("LIBARCHIVE.xattr.com.apple.provenance", b"Zm9v"),
        ("SCHILY.xattr.user.kept", b"2"),
    ];
    let nfs4: [(&str, &[u8]); 1] = [("SCHILY.acl.ace", b"owner@:rw-p--aARWcCos:-------:allow")];
    let archive = Archive::default().pax(&foreign).file("f", b"data").pax(&nfs4).file("g", b"");
    let (cut, whole) = (archive.bytes.clone(), archive.end());
    for (bytes, no_end) in [(&cut, true), (&whole, false)] {
        let path = write(&work, bytes);
        let mut source = open(&SourceSpec::Path(path.clone()), &Options::default()).unwrap();
        assert_eq!(source.warnings(), Warnings::default());
        let expected = Warnings {
            no_end,
            foreign_attributes: 3,
            first_foreign: Some("f: com.apple.provenance".into()),
            ..Warnings::default()
        };
        source.scan(&mut |_| {}).unwrap();
        assert_eq!(source.warnings(), expected);
        let all = drain(source.as_mut()).unwrap();
        assert_eq!(source.warnings(), expected);
        let names: Vec<_> = all[0].entry.xattrs.iter().map(|xattr| &xattr.name[..]).collect();
        assert_eq!(names, [b"user.kept"]);
        let strict = Options { strict: true, ..Options::default() };
        assert!(read_path(&path, &strict).is_err());
    }
}
