//! Reading commands on files that are no volume: an error that says so.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use undercroft_judges::random::Random;

use crate::run::undercroft;

/// All ways to read, as arguments before and after the name of the image.
const READERS: [(&str, &[&str]); 6] = [
    ("info", &[]),
    ("ls", &["-lR"]),
    ("stat", &["/"]),
    ("cat", &["etc/hosts"]),
    ("extract", &["-"]),
    ("check", &[]),
];

/// Things that are no volume, with a word of the message.
fn foreign(home: &Path) -> Vec<(PathBuf, &'static str)> {
    let at = |name: &str| home.join(name);
    fs::write(at("empty"), b"").unwrap();
    fs::write(at("text"), "no volume at all\n".repeat(10_000)).unwrap();
    let mut random = Random::new(11);
    let noise: Vec<u8> = (0..1 << 20).map(|_| random.below(256) as u8).collect();
    fs::write(at("noise"), &noise).unwrap();
    // The right first bytes, and nothing behind them that fits.
    fs::write(at("magic"), [&b"XFSB"[..], &[9; 4096], &noise].concat()).unwrap();
    File::create(at("zeros")).unwrap().set_len(1 << 30).unwrap();
    let other = File::create(at("other")).unwrap();
    other.set_len(16 << 20).unwrap();
    let made = Command::new("mke2fs").args(["-q", "-F"]).arg(at("other")).status();
    assert!(made.expect("mke2fs, in the Debian package e2fsprogs").success());
    fs::create_dir(at("directory")).unwrap();
    vec![
        (at("empty"), "empty"),
        (at("text"), "nothing that is known"),
        (at("noise"), "nothing that is known"),
        (at("magic"), "XFS is not supported"),
        (at("zeros"), "zeroes"),
        (at("other"), "ext4 file system"),
        (at("directory"), "directory"),
        (at("missing"), "No such file"),
    ]
}

#[test]
fn every_reader_refuses_files_that_are_no_volume() {
    let home = tempfile::tempdir().unwrap();
    for (image, word) in foreign(home.path()) {
        let name = image.display().to_string();
        for (command, arguments) in READERS {
            let output = undercroft([&[command, &name], arguments].concat());
            // A check prints its findings on standard output.
            let message = [output.stdout, output.stderr].concat();
            let message = String::from_utf8(message).unwrap();
            assert_eq!(output.status.code(), Some(1), "{command} {name}: {message}");
            assert!(message.starts_with("error: "), "{command} {name}: {message}");
            assert!(message.contains(word), "{command} {name}: {message}");
            assert!(!message.contains("panicked"), "{command} {name}: {message}");
        }
    }
}
