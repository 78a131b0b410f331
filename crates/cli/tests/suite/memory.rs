//! The memory of a build does not depend on the sizes of files: measured as the most that the process
//! had. (A control group would count the pages of the files that it reads and writes, too.)

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use undercroft_judges::rounds;

use crate::run::program;

const MIB: u64 = 1 << 20;
/// What the most may be.
const LIMIT: u64 = 256 * MIB;
/// The largest size that eleven octal digits hold, in whole blocks of tar.
const LARGE: u64 = (8 << 30) - 512;

/// The header of a regular file.
fn header(size: u64) -> [u8; 512] {
    let mut header = [0; 512];
    header[..5].copy_from_slice(b"large");
    header[100..108].copy_from_slice(b"0000644\0");
    header[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
    header[156] = b'0';
    header[257..265].copy_from_slice(b"ustar\x0000");
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

/// Zeros compressed, as one frame.
fn frame(bytes: &[u8]) -> Vec<u8> {
    let mut zstd = Command::new("zstd");
    let mut child =
        zstd.args(["-q", "-c"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || pipe.write_all(bytes).unwrap());
        child.wait_with_output().unwrap().stdout
    })
}

/// An archive of one file of zeros, compressed in a moment: one frame, repeated.
fn compressed(path: &Path, size: u64) {
    let piece = 64 * MIB;
    let zeros = vec![0; piece as usize];
    let (many, rest) = (size / piece, size % piece);
    let mut archive = frame(&header(size));
    archive.extend(frame(&zeros).repeat(many as usize));
    archive.extend(frame(&vec![0; rest as usize + 1024]));
    fs::write(path, archive).unwrap();
}

/// Builds one large extent; the most memory that the process had.
fn peak(archive: &Path, from_pipe: bool, options: &[&str]) -> u64 {
    let image = archive.with_extension("image");
    let mut command = program();
    command.args(["build", "--json", "--agcount", "1"]).args(options);
    if from_pipe {
        command.arg("-").stdin(File::open(archive).unwrap());
    } else {
        command.arg(archive);
    }
    let output = command.arg(&image).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["files"], 1);
    fs::remove_file(image).unwrap();
    summary["peak_rss_bytes"].as_u64().unwrap()
}

#[test]
fn a_large_file_in_an_archive_takes_no_memory() {
    let directory = tempfile::tempdir().unwrap();
    let plain = directory.path().join("plain.tar");
    let file = File::create(&plain).unwrap();
    let size = rounds(1, 3) << 30;
    file.write_all_at(&header(size), 0).unwrap();
    file.set_len(512 + size + 1024).unwrap();
    let most = peak(&plain, false, &[]);
    assert!(most < LIMIT, "{most} bytes for a plain archive");

    let zstd = directory.path().join("large.tar.zst");
    compressed(&zstd, rounds(2 << 30, LARGE));
    assert!(zstd.metadata().unwrap().len() < MIB);
    let one_pass = ["--size=9G", "--uuid=2f5e0c3a-0000-4000-8000-000000000001"];
    let most = peak(&zstd, true, &one_pass);
    assert!(most < LIMIT, "{most} bytes for a compressed stream");

    // In two passes the stream is kept on the disk in between, so this one is smaller.
    compressed(&zstd, rounds(512 << 20, 1 << 30));
    let most = peak(&zstd, false, &[]);
    assert!(most < LIMIT, "{most} bytes for a compressed archive in two passes");
}
