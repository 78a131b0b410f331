//! The command where a small container may have it: without /proc, without /sys, and with /dev/null
//! alone.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;
use undercroft_judges::kernel;
use undercroft_judges::xfsprogs::Xfsprogs;

use crate::run::program;

/// Hides the file systems, and becomes the command line that follows.
const HIDE: &str = "mount -t tmpfs none /sys && mount -t tmpfs none /dev && \
     mknod -m 666 /dev/null c 1 3 && mount -t tmpfs none /proc && exec \"$@\"";

fn hidden() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", HIDE, "sh"]);
    command.arg(program().get_program()).env_remove("SOURCE_DATE_EPOCH");
    command.stdin(Stdio::null());
    command
}

#[track_caller]
fn succeeds(directory: &Path, words: &str) -> String {
    let output = hidden().args(words.split(' ')).current_dir(directory).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}: {message}");
    String::from_utf8(output.stdout).unwrap()
}

/// A directory that is not hidden, as one in /dev/shm would be.
fn visible_home() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn images_are_built_changed_and_read() {
    if !kernel::available_or_report() {
        return;
    }
    let home = visible_home();
    let directory = home.path();
    fs::create_dir_all(directory.join("tree/etc")).unwrap();
    fs::write(directory.join("tree/etc/hostname"), "box\n").unwrap();
    std::os::unix::fs::symlink("hostname", directory.join("tree/etc/link")).unwrap();
    let set = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(directory.join("tree/etc/hostname"), "user.kept", b"yes", set).unwrap();
    succeeds(directory, "build tree disk.img");
    // Replaced, and two files that get their names together.
    succeeds(directory, "build --force tree disk.img");
    succeeds(directory, "build tree stripe:64k(a.img,b.img)");
    assert_eq!(names(directory), ["a.img", "b.img", "disk.img", "tree"]);
    succeeds(directory, "put disk.img tree/etc/hostname /etc/other");
    succeeds(directory, "grow --size 1G disk.img");
    succeeds(directory, "set --uuid generate --label data2 disk.img");
    succeeds(directory, "replay disk.img");
    succeeds(directory, "check disk.img");
    assert_eq!(succeeds(directory, "cat disk.img /etc/other"), "box\n");
    let kept = "getxattr disk.img /etc/hostname user.kept";
    assert!(succeeds(directory, kept).contains("yes"));
    succeeds(directory, "extract disk.img out");
    assert_eq!(fs::read_link(directory.join("out/etc/link")).unwrap(), Path::new("hostname"));
    Xfsprogs::newest().unwrap().repair_check(&directory.join("disk.img")).unwrap();
}

#[test]
fn a_build_that_is_killed_leaves_nothing() {
    if !kernel::available_or_report() {
        return;
    }
    let home = visible_home();
    let mut child = hidden()
        .args(["build", "--size=64M", "--uuid=2f5e0c3a-0000-4000-8000-000000000001", "-", "x.img"])
        .current_dir(home.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // Half of a file of an archive: the build has begun and waits for more.
    let tar = "printf x > file; truncate -s 8M file; tar -c file; rm file";
    let scratch = visible_home();
    let archive =
        Command::new("sh").args(["-c", tar]).current_dir(scratch.path()).output().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(&archive.stdout[..4 << 20]).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    drop(pipe);
    assert_eq!(names(home.path()), [""; 0]);
}
