//! The command as fsck(8) calls it: by a name of its own, with exit statuses of its own.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use undercroft_judges::xfsprogs::Xfsprogs;
use undercroft_judges::{image, kernel};

use crate::endings::damage_inode;
use crate::run::{crashed, fails, sample, succeeds};

/// Runs it as fsck(8) does, by the name of the file system's kind.
fn fsck(words: &[&str]) -> Output {
    let home = tempfile::tempdir().unwrap();
    let name = home.path().join("fsck.undercroft");
    symlink(env!("CARGO_BIN_EXE_undercroft"), &name).unwrap();
    Command::new(name).args(words).stdin(Stdio::null()).output().unwrap()
}

#[track_caller]
fn ends(status: i32, words: &[&str]) {
    let output = fsck(words);
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert_eq!(output.status.code(), Some(status), "{words:?}: {said}");
}

#[test]
fn statuses_are_those_of_fsck() {
    let sample = sample(&["--size", "64M", "--mtime", "@0", "--owner", "0:0"]);
    let image = &sample.image[..];
    for flags in [&[][..], &["-n"], &["-a"], &["-p", "-f"], &["-y", "-C", "3"], &["-C0", "-a"]] {
        ends(0, &[flags, &[image]].concat());
    }
    ends(0, &["--help"]);
    ends(16, &["-z", image]);
    ends(16, &["-n", "-a", image]);
    ends(16, &[]);
    ends(8, &[&sample.path("missing")]);
    damage_inode(&sample, "/etc/hosts");
    for flag in ["-n", "-a"] {
        ends(4, &[flag, image]);
    }
}

#[test]
fn usage_names_the_command_once() {
    let help = String::from_utf8(fsck(&["--help"]).stdout).unwrap();
    assert!(help.contains("Usage: undercroft fsck [OPTIONS] <IMAGE>\n"), "{help}");
    let wrong = String::from_utf8(fsck(&["-z"]).stderr).unwrap();
    assert!(wrong.contains("Usage: undercroft fsck "), "{wrong}");
}

#[test]
fn a_journal_is_replayed_if_that_is_allowed() {
    if !kernel::available_or_report("undercroft::fsck::a_journal_is_replayed_if_that_is_allowed") {
        return;
    }
    let sample = sample(&["--size", "64M"]);
    let mounted = sample.path("mounted");
    image::copy(Path::new(&sample.image), Path::new(&mounted)).unwrap();
    crashed(Path::new(&mounted), Path::new(&sample.image));
    ends(0, &["-n", &sample.image]);
    let dirty = fs::read(&sample.image).unwrap();
    ends(0, &["-p", "--no-replay", &sample.image]);
    fails(2, ["replay", "--no-replay", &sample.image]);
    fails(1, ["shrink", "--abandon", "--no-replay", &sample.image]);
    fails(1, ["set", "--label", "new", "--no-replay", &sample.image]);
    assert!(fs::read(&sample.image).unwrap() == dirty, "--no-replay wrote");
    assert!(succeeds(["replay", "--dry-run", &sample.image]).contains("would replay"));
    ends(1, &["-p", &sample.image]);
    ends(0, &["-p", &sample.image]);
    assert_eq!(succeeds(["cat", "--no-replay", &sample.image, "early"]), "early");
    Xfsprogs::newest().unwrap().repair_check(Path::new(&sample.image)).unwrap();
}
