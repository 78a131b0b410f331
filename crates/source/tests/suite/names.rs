//! Names of archives that mean another place: by records beside them, and over symbolic links.

use crate::archive::{Archive, header, seal};
use crate::collect::{Delivered, drain, open, read_bytes, read_path};
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;
use undercroft_source::{Exclude, Kind, Options, SourceSpec};

fn scratch() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What a tar program unpacks: paths, kinds, targets and names of one file, sorted.
fn unpacked(tar: &str, archive: &Path, at: &Path) -> Vec<String> {
    fs::create_dir(at).unwrap();
    run(Command::new(tar).arg("-xPpf").arg(archive).arg("-C").arg(at));
    let found =
        run(Command::new("find").arg(at).args(["-mindepth", "1", "-printf", "%P %y %l %n\n"]));
    let mut lines: Vec<_> = found.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// The same of what a source delivers.
fn delivered(all: &[Delivered]) -> Vec<String> {
    let firsts = |path: &str| {
        let is_link = |other: &&Delivered| matches!(&other.entry.kind, Kind::HardLink(first) if first.as_bytes() == path.as_bytes());
        all.iter().filter(is_link).count() + 1
    };
    let mut lines: Vec<_> = all
        .iter()
        .filter(|one| one.entry.kind != Kind::Directory)
        .map(|one| match &one.entry.kind {
            Kind::Symlink(target) => {
                format!("{} l {} 1", one.path(), String::from_utf8_lossy(target))
            }
            Kind::HardLink(first) => {
                let first = String::from_utf8_lossy(first.as_bytes()).into_owned();
                format!("{} f  {}", one.path(), firsts(&first))
            }
            _ => format!("{} f  {}", one.path(), firsts(&one.path())),
        })
        .collect();
    lines.sort();
    lines
}

#[test]
fn entries_below_a_symbolic_link_are_where_it_leads() {
    let work = scratch();
    let path = work.path().join("merged.tar");
    let bytes = Archive::default()
        .directory("usr/")
        .directory("usr/lib/")
        .directory("usr/lib64/")
        .link("lib", b'2', "usr/lib")
        .link("usr/lib32", b'2', "lib")
        .file("lib/x.so", b"x")
        .link("usr/y.so", b'1', "lib/x.so")
        .link("usr/lib32/z.so", b'1', "usr/lib/x.so")
        .directory("lib/modules/")
        .file("./lib/modules/m.ko", b"m")
        .file("usr/lib64/own", b"own")
        .end();
    fs::write(&path, &bytes).unwrap();
    let all = read_path(&path, &Options::default()).unwrap();
    let ours = delivered(&all);
    for tar in ["tar", "bsdtar"] {
        let theirs = unpacked(tar, &path, &work.path().join(tar));
        let theirs: Vec<_> = theirs.into_iter().filter(|line| !line.contains(" d ")).collect();
        assert_eq!(ours, theirs, "{tar}");
    }
    // Both passes, and the sorted form.
    for sorted in [false, true] {
        let options = Options { sorted, ..Options::default() };
        let mut source = open(&SourceSpec::Path(path.clone()), &options).unwrap();
        let mut scanned = Vec::new();
        source.scan(&mut |entry| scanned.push(entry.clone())).unwrap();
        let all = drain(source.as_mut()).unwrap();
        assert!(all.iter().map(|one| &one.entry).eq(&scanned));
        assert_eq!(delivered(&all).len(), ours.len());
    }
}

#[test]
fn links_lead_nowhere_outside_of_the_root() {
    let bytes = Archive::default()
        .link("up", b'2', "../../../..")
        .link("whole", b'2', "/etc/deep")
        .file("up/a", b"a")
        .file("whole/b", b"b")
        .end();
    let all = read_bytes(&bytes, &Options::default()).unwrap();
    let paths: Vec<_> = all.iter().map(Delivered::path).collect();
    assert_eq!(paths, ["up", "whole", "a", "etc", "etc/deep", "etc/deep/b"]);
    let cycle = Archive::default().link("a", b'2', "b").link("b", b'2', "a").file("a/f", b"").end();
    let error = read_bytes(&cycle, &Options::default()).unwrap_err();
    assert!(error.contains("\"a/f\"") && error.contains("40 symbolic links"), "{error}");
    let file = Archive::default().file("f", b"").link("l", b'2', "f").file("l/x", b"").end();
    let error = read_bytes(&file, &Options::default()).unwrap_err();
    assert!(error.contains("its parent \"f\" is no directory"), "{error}");
}

/// A name in a pax header counts, whatever GNU header stands before or behind it; of several pax
/// headers the last.
#[test]
fn names_of_pax_headers_go_before_gnu_names() {
    let work = scratch();
    let path = work.path().join("mixed.tar");
    let pax: [(&str, &[u8]); 1] = [("path", b"one")];
    let link: [(&str, &[u8]); 1] = [("linkpath", b"a")];
    let long = |archive: Archive, kind, name: &[u8]| archive.entry("././@LongLink", kind, name);
    let time: [(&str, &[u8]); 1] = [("mtime", b"5")];
    let symlink = || seal(header(b"link", b'2', 0));
    for (number, (archive, expected)) in [
        (long(Archive::default().pax(&pax), b'L', b"two\0").file("three", b""), "one"),
        (long(Archive::default(), b'L', b"two\0").pax(&pax).file("three", b""), "one"),
        (long(Archive::default().pax(&link), b'K', b"b\0").raw(&symlink()), "a"),
        (long(Archive::default(), b'K', b"b\0").pax(&link).raw(&symlink()), "a"),
        (Archive::default().pax(&pax).pax(&time).file("three", b""), "three"),
        (long(Archive::default().pax(&pax), b'L', b"two\0").pax(&time).file("three", b""), "two"),
        (long(Archive::default().pax(&time), b'L', b"two\0").pax(&pax).file("three", b""), "one"),
    ]
    .into_iter()
    .enumerate()
    {
        fs::write(&path, archive.end()).unwrap();
        let listed = run(Command::new("tar").arg("-tvf").arg(&path));
        assert!(listed.trim_end().ends_with(expected), "{number}: {listed}");
        let all = read_path(&path, &Options::default()).unwrap();
        let said = match &all[0].entry.kind {
            Kind::Symlink(target) => String::from_utf8(target.clone()).unwrap(),
            _ => all[0].path(),
        };
        assert_eq!(said, expected, "{number}");
    }
}

/// The data of a file lies at its first name, and is found there when that is left out; what is left out is
/// not read: a TiB of it would take its time.
#[test]
fn what_is_left_out_is_passed_over_and_may_be_linked_to() {
    let work = scratch();
    let path = work.path().join("large.tar");
    let size: u64 = 1 << 40;
    let mut large = header(b"large", b'0', 0);
    large[124..136].copy_from_slice(&[&[0x80, 0, 0, 0][..], &size.to_be_bytes()].concat());
    let start = Archive::default().file("first", b"data").raw(&seal(large)).bytes;
    let end = Archive::default().link("second", b'1', "first").link("third", b'1', "first").end();
    fs::write(&path, &start).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &end, start.len() as u64 + size).unwrap();
    let exclude = Exclude::new(["/first", "/large"]).unwrap();
    let options = Options { exclude, ..Options::default() };
    let mut source = open(&SourceSpec::Path(path), &options).unwrap();
    let mut scanned = Vec::new();
    source.scan(&mut |entry| scanned.push(entry.clone())).unwrap();
    let all = drain(source.as_mut()).unwrap();
    assert!(all.iter().map(|one| &one.entry).eq(&scanned));
    assert_eq!((all[0].path(), &all[0].data[..]), ("second".to_owned(), &b"data"[..]));
    assert!(matches!(&all[1].entry.kind, Kind::HardLink(first) if first.as_bytes() == b"second"));
    assert_eq!((all.len(), all[1].path()), (2, "third".to_owned()));
}
