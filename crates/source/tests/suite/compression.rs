//! Compressed archives as the real tools make, join and fill them up.

use crate::archive::Archive;
use crate::collect::{drain, open, read_bytes, read_path};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;
use undercroft_source::{Options, SourceSpec};

fn scratch() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// What `program` makes of `input`.
fn filter(program: &str, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input).unwrap());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{program} {arguments:?}");
        output.stdout
    })
}

fn archive() -> Vec<u8> {
    let data: Vec<u8> =
        (0..700_000u32).map(|index| (index.wrapping_mul(index) >> 7) as u8).collect();
    Archive::default().file("large", &data).file("small", b"small").end()
}

/// Three pieces of `plain`, each compressed alone, with `between` after each.
fn joined(program: &str, plain: &[u8], between: &[u8]) -> Vec<u8> {
    let pieces = plain.chunks(plain.len().div_ceil(3));
    pieces.flat_map(|piece| [&filter(program, &["-c"], piece), between].concat()).collect()
}

/// Both passes over an archive give its entries.
#[track_caller]
fn assert_read(path: &Path, bytes: &[u8]) {
    let expected = read_bytes(&archive(), &Options::default()).unwrap();
    fs::write(path, bytes).unwrap();
    assert_eq!(read_path(path, &Options::default()).unwrap(), expected);
    let mut source = open(&SourceSpec::Path(path.into()), &Options::default()).unwrap();
    let mut scanned = 0;
    source.scan(&mut |_| scanned += 1).unwrap();
    assert_eq!(scanned, expected.len());
    assert_eq!(drain(source.as_mut()).unwrap(), expected);
}

/// Both passes over an archive end in an error with `text` in it.
#[track_caller]
fn assert_refused(path: &Path, bytes: &[u8], text: &str) {
    fs::write(path, bytes).unwrap();
    let error = read_path(path, &Options::default()).unwrap_err().to_string();
    assert!(error.contains(text), "{error}");
    let mut source = open(&SourceSpec::Path(path.into()), &Options::default()).unwrap();
    let error = source.scan(&mut |_| {}).unwrap_err().to_string();
    assert!(error.contains(text), "{error}");
}

#[test]
fn gzip_members_and_padding() {
    let work = scratch();
    let path = work.path().join("archive");
    let plain = archive();
    let whole = filter("gzip", &["-c"], &plain);
    assert_read(&path, &whole);
    assert_read(&path, &joined("gzip", &plain, b""));
    for zeros in [1, 2, 511, 10_240, 1 << 20] {
        let padded = [&whole[..], &vec![0; zeros]].concat();
        assert_eq!(filter("gzip", &["-dc"], &padded), plain, "gzip(1) takes it too");
        assert_read(&path, &padded);
    }
    // As GNU tar writes it to a tape: in records of 10 KiB.
    let record = filter("dd", &["bs=10240", "conv=sync", "status=none"], &whole);
    assert_eq!(record.len() % 10_240, 0);
    assert_read(&path, &record);
}

#[test]
fn what_follows_gzip_data_is_named_with_its_place() {
    let work = scratch();
    let path = work.path().join("archive");
    let whole = filter("gzip", &["-c"], &archive());
    let end = whole.len();
    for (trailing, at) in [
        (&b"garbage"[..], end),
        (b"\0\0\0garbage", end + 3),
        (b"\x1f", end),
        (b"\x1f\x8c\0\0", end),
        (&[&[0; 512][..], &whole].concat(), end + 512),
    ] {
        let text = format!("at byte {at} of the compressed stream");
        assert_refused(&path, &[&whole, trailing].concat(), &text);
    }
    // A member that begins and does not end.
    assert_refused(&path, &[&whole, &whole[..end / 2]].concat(), "truncated");
    assert_refused(&path, &[&whole, &whole[..2]].concat(), "truncated");
}

#[test]
fn zstd_frames() {
    let work = scratch();
    let path = work.path().join("archive");
    let plain = archive();
    assert_read(&path, &joined("zstd", &plain, b""));
    let skippable = b"\x50\x2a\x4d\x18\x04\0\0\0skip";
    assert_read(&path, &joined("zstd", &plain, skippable));
    assert_read(&path, &[&skippable[..], &filter("zstd", &["-c"], &plain)].concat());
    assert_refused(&path, &[&filter("zstd", &["-c"], &plain)[..], b"garbage"].concat(), "at byte");
}

#[test]
fn xz_streams_and_padding() {
    let work = scratch();
    let path = work.path().join("archive");
    let plain = archive();
    for padding in [0, 4, 512] {
        let streams = joined("xz", &plain, &vec![0; padding]);
        assert_eq!(filter("xz", &["-dc"], &streams), plain, "xz(1) takes it too");
        assert_read(&path, &streams);
    }
    let whole = filter("xz", &["-c"], &plain);
    for trailing in [&b"garbage!"[..], &[0; 3], &[0, 0, 0, 0, 7]] {
        assert_refused(&path, &[&whole, trailing].concat(), "at byte");
    }
}
