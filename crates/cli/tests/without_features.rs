//! The command with none of its features, for which `cargo xtask soak tests` builds it once more.

#![cfg(not(any(feature = "network", feature = "xz", feature = "zstd")))]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::process::{Command, Output, Stdio};

fn undercroft(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_undercroft"));
    command.args(words).stdin(Stdio::null()).output().unwrap()
}

#[track_caller]
fn succeeds(words: &[&str]) -> String {
    let output = undercroft(words);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {message}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command that must end with `status`; returns its message.
#[track_caller]
fn fails(status: i32, words: &[&str]) -> String {
    let output = undercroft(words);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(status), "{words:?}: {message}");
    message
}

#[test]
fn network_disks_are_named_with_their_feature() {
    for words in [&["info", "nbd://host/x"][..], &["build", "/etc", "nbd+unix:///x?socket=/s"]] {
        let message = fails(2, words);
        assert!(message.contains("feature `network`"), "{message}");
        assert!(message.contains(words[words.len() - 1]), "{message}");
    }
    let message = fails(1, &["lab", "affinity", "--workload", "served", "--smoke"]);
    assert!(message.contains("feature `network`"), "{message}");
}

#[test]
fn no_page_tells_of_a_command_that_is_not_there() {
    assert!(!succeeds(&["--help"]).contains("serve "));
    assert!(fails(2, &["serve", "disk.img"]).contains("unrecognized subcommand 'serve'"));
    let home = tempfile::tempdir().unwrap();
    let pages = home.path().join("man");
    succeeds(&["man", "--all", pages.to_str().unwrap()]);
    assert!(pages.join("undercroft-build.1").exists());
    assert!(!pages.join("undercroft-serve.1").exists());
}

#[test]
fn a_volume_is_built_checked_and_extracted() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).display().to_string();
    let [tree, image, out, archive] = ["tree", "disk.img", "out", "tree.tar.zst"].map(path);
    fs::create_dir(&tree).unwrap();
    fs::write(format!("{tree}/file"), "contents").unwrap();
    succeeds(&["build", &tree, &image]);
    succeeds(&["check", &image]);
    succeeds(&["extract", &image, &out]);
    assert_eq!(fs::read(format!("{out}/file")).unwrap(), b"contents");
    fs::write(&archive, [0x28, 0xb5, 0x2f, 0xfd, 0, 0]).unwrap();
    let message = fails(1, &["build", "--force", &archive, &image]);
    assert!(message.contains("feature `zstd`"), "{message}");
}
