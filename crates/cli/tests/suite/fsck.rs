//! The command as fsck(8) calls it: by a name of its own, with exit statuses of its own.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use undercroft_judges::mount::Access;
use undercroft_judges::xfsprogs::Xfsprogs;
use undercroft_judges::{LoopMount, image, kernel};

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
    ends(4, &["-n", image]);
    // Its checksum is all that is wrong with it.
    ends(1, &["-a", image]);
    ends(0, &["-n", image]);
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
    if !kernel::available_or_report() {
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

/// Makes the blocks of a file those of a journal that moved: nothing else has them.
fn leave_a_journal(image: &Path) {
    let newest = Xfsprogs::newest().unwrap();
    newest.mkfs(image, 128 << 20, &["-d", "agcount=4"]).unwrap();
    let mount = LoopMount::new(image, Access::ReadWrite, &[]).unwrap();
    fs::write(mount.join("file"), vec![7; 1 << 20]).unwrap();
    let number = fs::metadata(mount.join("file")).unwrap().ino();
    mount.unmount().unwrap();
    let records = newest.db(image, &["agf 0", "addr rmaproot", "print recs"]).unwrap();
    let owned = format!(",256,{number},0,");
    let record = records.lines().find(|line| line.contains(&owned)).unwrap();
    let record = record.split_once(':').unwrap().0;
    let commands = [
        &format!("inode {number}")[..],
        "write -d core.size 0",
        "write -d core.nblocks 0",
        "write -d core.nextents 0",
        "agf 0",
        "addr rmaproot",
        &format!("write -d -- recs[{record}].owner -4"),
    ];
    newest.db_expert(image, &commands).unwrap();
}

#[test]
fn blocks_of_a_journal_that_moved_are_freed() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("image");
    leave_a_journal(&path);
    let (image, newest) = (path.to_str().unwrap(), Xfsprogs::newest().unwrap());
    let complaint = newest.repair_check(&path).unwrap_err().to_string();
    assert!(complaint.contains("unknown block state"), "{complaint}");
    ends(4, &["-n", image]);
    let copy = home.path().join("copy");
    image::copy(&path, &copy).unwrap();
    ends(1, &["-p", image]);
    ends(0, &["-p", image]);
    newest.repair_check(&path).unwrap();
    let text = succeeds(["shrink", "--abandon", copy.to_str().unwrap()]);
    assert!(text.contains("the shrink is given up"), "{text}");
    newest.repair_check(&copy).unwrap();
}
