//! Volumes in containers of LUKS: opened with a key, read, changed; cryptsetup and xfs_repair judge.

use crate::run::{fails, program, says, succeeds};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use undercroft_judges::{Xfsprogs, kernel};

/// A container with a volume that has `/etc/hosts`, and its key in a file.
struct Encrypted {
    home: tempfile::TempDir,
}

impl Encrypted {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let own = Self { home };
        fs::create_dir_all(own.home.path().join("tree/etc")).unwrap();
        fs::write(own.home.path().join("tree/etc/hosts"), "127.0.0.1 localhost\n").unwrap();
        fs::write(own.home.path().join("key"), "secret").unwrap();
        let image = own.path("image");
        succeeds(["build", "--size", "32M", "--label", "system", &own.path("tree"), &image]);
        let file = File::options().write(true).open(&image).unwrap();
        file.set_len(48 << 20).unwrap();
        own.cryptsetup(&[
            "reencrypt",
            "--encrypt",
            "--type=luks2",
            "--reduce-device-size=16M",
            "--force-offline-reencrypt",
            "--pbkdf=pbkdf2",
            "--pbkdf-force-iterations=1000",
            &image,
        ]);
        own
    }

    fn path(&self, name: &str) -> String {
        self.home.path().join(name).display().to_string()
    }

    fn cryptsetup(&self, arguments: &[&str]) {
        let mut command = Command::new("cryptsetup");
        let output = command.args(["-q", "--key-file", &self.path("key")]).args(arguments).output();
        let output = output.expect("cryptsetup, in the Debian package cryptsetup-bin");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Fails unless what cryptsetup decrypts is a sound volume.
    fn judge(&self) {
        let (copy, header) = (self.path("copy"), self.path("header"));
        fs::copy(self.path("image"), &copy).unwrap();
        self.cryptsetup(&[
            "reencrypt",
            "--decrypt",
            "--force-offline-reencrypt",
            "--header",
            &header,
            &copy,
        ]);
        fs::remove_file(header).unwrap();
        Xfsprogs::newest().unwrap().repair_check(Path::new(&copy)).unwrap();
    }
}

#[test]
fn a_volume_is_read_and_changed_with_its_key() {
    let own = Encrypted::new();
    let (image, key) = (own.path("image"), own.path("key"));
    let hosts = succeeds(["cat", "--key-file", &key, &image, "/etc/hosts"]);
    assert_eq!(hosts, "127.0.0.1 localhost\n");
    let note = says(["ls", "--key-file", &key, &image]);
    assert!(note.contains("is encrypted; the volume is in the LUKS container"), "{note}");
    succeeds(["mkdir", "--key-file", &key, &image, "/new"]);
    assert!(succeeds(["check", "--key-file", &key, &image]).starts_with("clean"));
    let length = fs::metadata(&image).unwrap().len();
    succeeds(["shrink", "--key-file", &key, "--size=min", &image]);
    assert_eq!(fs::metadata(&image).unwrap().len(), length);
    succeeds(["grow", "--key-file", &key, &image]);
    own.judge();
    let named =
        program().args(["ls", &image]).env("UNDERCROFT_PASSPHRASE", "secret").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&named.stdout), "etc\nnew\n");
    let table = succeeds(["disks", "--key-file", &key, &image]);
    assert!(table.contains("LUKS container") && table.contains("XFS file system"), "{table}");
    let json = succeeds(["disks", "--json", "--key-file", &key, &image]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["decrypted"]["label"], "system");
}

#[test]
fn without_its_key_the_way_is_told() {
    let own = Encrypted::new();
    let image = own.path("image");
    let message = fails(1, ["ls", &image]);
    assert!(message.contains("is encrypted with LUKS, and there is no key"), "{message}");
    assert!(message.contains("; --key-file or the variable UNDERCROFT_PASSPHRASE"), "{message}");
    fs::write(own.path("wrong"), "secret\n").unwrap();
    let message = fails(1, ["ls", "--key-file", &own.path("wrong"), &image]);
    assert!(message.contains("no key that was given opens one of the 1 key slots"), "{message}");
    assert!(succeeds(["disks", &image]).contains("there is no key"));
    let message = fails(1, ["ls", "--key-file", &own.path("none"), &image]);
    assert!(message.contains("cannot read the key file"), "{message}");
}

#[test]
fn a_passphrase_is_asked_for_at_the_terminal() {
    let own = Encrypted::new();
    let ls = format!("{} ls {}", env!("CARGO_BIN_EXE_undercroft"), own.path("image"));
    let mut terminal = Command::new("script")
        .args(["-qec", &ls, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script, in the Debian package bsdutils");
    let mut said = terminal.stdout.take().unwrap();
    let mut shown = String::new();
    while !shown.ends_with("image: ") {
        let mut byte = [0];
        said.read_exact(&mut byte).unwrap();
        shown.push(char::from(byte[0]));
    }
    assert!(shown.contains("Passphrase for the LUKS container "), "{shown}");
    terminal.stdin.take().unwrap().write_all(b"secret\n").unwrap();
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert!(terminal.wait().unwrap().success());
    assert!(rest.contains("etc") && !rest.contains("secret"), "{rest}");
}

#[test]
fn a_volume_is_mounted_with_its_key() {
    if !kernel::fuse_available_or_report() {
        return;
    }
    let own = Encrypted::new();
    let script = "cp etc/hosts etc/copy && sync -f . && cat etc/copy";
    let option = format!("key-file={}", own.path("key"));
    let said = succeeds(["mount", "-o", &option, &own.path("image"), "--exec", "sh", "-c", script]);
    assert_eq!(said, "127.0.0.1 localhost\n");
    own.judge();
}
