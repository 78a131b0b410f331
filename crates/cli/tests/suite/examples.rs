//! What the help shows as examples works as it stands, for whoever types it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::run::succeeds;

/// Where an example is typed, with the program in the path.
fn typed(directory: &Path, line: &str) -> Output {
    let mut shell = Command::new("bash");
    shell.args(["-o", "pipefail", "-c", line]).current_dir(directory).stdin(Stdio::null());
    let path = std::env::var("PATH").unwrap();
    shell.env("PATH", format!("{}/bin:{path}", directory.display()));
    shell.env("HOME", directory).env_remove("SOURCE_DATE_EPOCH").output().unwrap()
}

/// The lines of the help that begin with a command, without what is said about them.
fn examples(command: &[&str]) -> Vec<String> {
    let help = succeeds(command.iter().copied().chain(["--help"]));
    let mut found = Vec::new();
    if let Some(rest) = help.split("Examples:\n").nth(1) {
        let lines = rest.lines().take_while(|line| line.starts_with("  "));
        // What is behind several spaces is about the example.
        found.extend(lines.map(|line| line.trim().split("   ").next().unwrap().to_owned()));
    }
    for rest in help.split("For example: ").skip(1) {
        let text = rest.split("\n\n").next().unwrap().replace('\n', " ");
        found.push(text.replace(", undercroft", "; undercroft"));
    }
    // Experiments are to work, not to measure.
    let mut short = found;
    for experiment in ["tags", "unplug", "affinity", "alloc", "iops"] {
        let (long, smoke) = (format!("lab {experiment} "), format!("lab {experiment} --smoke "));
        short.iter_mut().for_each(|line| *line = line.replace(&long, &smoke));
    }
    short
}

/// Words of examples for machines with another program, a partitioned disk, or disks to fill.
const ELSEWHERE: [&str; 4] = ["docker", "--partition", "--fio", "/dev/"];

/// Files that examples speak of.
fn prepare(directory: &Path) {
    for path in
        ["bin", "rootfs/etc", "rootfs/var/lib/vm", ".local/share/bash-completion/completions"]
    {
        fs::create_dir_all(directory.join(path)).unwrap();
    }
    symlink(env!("CARGO_BIN_EXE_undercroft"), directory.join("bin/undercroft")).unwrap();
    fs::write(directory.join("rootfs/etc/fstab"), "none\n").unwrap();
    fs::write(directory.join("motd"), "welcome\n").unwrap();
    fs::write(directory.join("script"), "mkdir /srv\nls /\n").unwrap();
    let made = typed(
        directory,
        "tar -czf layer.tar.gz -C rootfs . && tar --zstd -cf rootfs.tar.zst -C rootfs .",
    );
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// A volume as each of these names calls it.
fn volume(directory: &Path, name: &str) {
    let made = typed(directory, &format!("undercroft build --force --size 64M rootfs/ {name}"));
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

#[test]
fn examples_of_the_help_work() {
    for (command, volumes) in [
        (&["build"][..], &[][..]),
        (&["mkfs"], &[]),
        (&["label"], &["root.img"][..]),
        (&["extsize"], &["disk.img"]),
        (&["grow"], &["root.img"]),
        (&["set"], &["copy.img"]),
        (&["completions"], &[]),
        (&[], &["disk.img"]),
        (&["extract"], &["root.img", "old.img"]),
        (&["resync"], &["'mirror(a.img,b.img)'"]),
        (&["lab", "table"], &[]),
        (&["lab", "unplug"], &[]),
        (&["lab", "affinity"], &[]),
        (&["lab", "alloc"], &[]),
        (&["lab", "iops"], &[]),
        (&["lab", "plot"], &[]),
    ] {
        let directory = tempfile::tempdir().unwrap();
        prepare(directory.path());
        for name in volumes {
            volume(directory.path(), name);
        }
        let mut tried = 0;
        for example in examples(command) {
            if ELSEWHERE.iter().any(|word| example.contains(word)) {
                continue;
            }
            // Each begins anew, or makes its volume anew.
            let target = example.split(' ').next_back().unwrap_or_default();
            let cleared = match () {
                () if volumes.is_empty() => "rm -f ./*.img; ".to_owned(),
                () if example.contains("undercroft build") => format!("rm -f {target}; "),
                () if example.ends_with(" rootfs/") => "rm -rf rootfs; ".to_owned(),
                () => String::new(),
            };
            let output = typed(directory.path(), &format!("{cleared}{example}"));
            let message = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{example}: {message}");
            tried += 1;
        }
        assert!(tried > 0, "{command:?}");
    }
}
