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
    found.iter().map(|line| line.replace("lab tags", "lab tags --smoke")).collect()
}

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
        (&["lab", "table"], &[]),
        (&["lab", "plot"], &[]),
    ] {
        let directory = tempfile::tempdir().unwrap();
        prepare(directory.path());
        for name in volumes {
            volume(directory.path(), name);
        }
        let mut tried = 0;
        for example in examples(command) {
            // What only machines with another program have.
            if example.contains("docker") {
                continue;
            }
            // Each begins anew.
            let cleared = if volumes.is_empty() { "rm -f ./*.img; " } else { "" };
            let output = typed(directory.path(), &format!("{cleared}{example}"));
            let message = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{example}: {message}");
            tried += 1;
        }
        assert!(tried > 0, "{command:?}");
    }
}
