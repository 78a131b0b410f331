//! Volumes on network disks whose server dies under them.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use undercroft_judges::nbd::NbdServer;
use undercroft_judges::{ServedMount, Xfsprogs};

use crate::mounted::{script, succeeds};

const PROGRAM: &str = env!("CARGO_BIN_EXE_undercroft");

/// A file with an empty volume.
fn volume(home: &Path) -> PathBuf {
    let path = home.join("disk");
    Xfsprogs::newest().unwrap().mkfs(&path, 512 << 20, &[]).unwrap();
    path
}

/// A server whose cache is lost with it, and all that is not flushed.
fn cached(path: &Path) -> NbdServer {
    NbdServer::nbdkit(&["--filter=cache", "file", path.to_str().unwrap(), "cache=writeback"])
        .unwrap()
}

fn write(path: &Path, byte: u8) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(&vec![byte; 300_000])?;
    file.sync_all()
}

/// Writes to a mount while its server is killed and comes back again and again; nothing is missing at
/// the end.
fn goes_on(parameters: &[&str], serve: impl Fn(&Path) -> NbdServer) {
    let home = tempfile::tempdir().unwrap();
    let disk = volume(home.path());
    let mut server = serve(&disk);
    let uri = server.uri("", parameters);
    let mount = ServedMount::new(Path::new(PROGRAM), Path::new(&uri), &[]).unwrap();
    for round in 0..6_u8 {
        for number in 0..4_u8 {
            let path = mount.path().join(format!("{round}-{number}"));
            write(&path, round * 4 + number).unwrap();
        }
        fs::write(mount.path().join(format!("{round}-unsynced")), vec![round; 200_000]).unwrap();
        server.kill();
        server.start().unwrap();
    }
    mount.unmount().unwrap();
    server.kill();
    Xfsprogs::newest().unwrap().repair_check(&disk).unwrap();
    let out = home.path().join("out");
    let extracted = Command::new(PROGRAM).arg("extract").args([&disk, &out]).status().unwrap();
    assert!(extracted.success());
    for round in 0..6_u8 {
        for number in 0..4_u8 {
            let found = fs::read(out.join(format!("{round}-{number}"))).unwrap();
            assert!(found == vec![round * 4 + number; 300_000], "{round}-{number}");
        }
        assert!(fs::read(out.join(format!("{round}-unsynced"))).unwrap() == vec![round; 200_000]);
    }
}

#[test]
fn a_mount_goes_on_when_its_server_is_killed_and_comes_back() {
    goes_on(&[], cached);
}

#[test]
fn a_mount_goes_on_when_a_server_of_our_own_is_killed_and_comes_back() {
    let ours = |path: &Path| NbdServer::undercroft(Path::new(PROGRAM), &[path]).unwrap();
    goes_on(&["x-connections=1"], ours);
    goes_on(&["x-connections=4"], ours);
}

#[test]
fn a_program_runs_in_a_volume_behind_a_server_of_our_own() {
    let home = tempfile::tempdir().unwrap();
    let disk = volume(home.path());
    let mut server = NbdServer::undercroft(Path::new(PROGRAM), &[&disk]).unwrap();
    let uri = server.uri("disk", &[]);
    let mut mount = Command::new(PROGRAM);
    mount.args(["mount", &uri, "--exec"]).args(script("echo content >file; ls"));
    assert_eq!(succeeds(&mut mount), "file\n");
    server.stop().unwrap();
    Xfsprogs::newest().unwrap().repair_check(&disk).unwrap();
    assert_eq!(succeeds(Command::new(PROGRAM).arg("cat").arg(&disk).arg("/file")), "content\n");
}

/// A mount keeps its own copy of what it changes: nothing may change it beside.
#[test]
fn a_volume_behind_a_server_of_our_own_has_one_writer() {
    let home = tempfile::tempdir().unwrap();
    let disk = volume(home.path());
    let mut server = NbdServer::undercroft(Path::new(PROGRAM), &[&disk]).unwrap();
    let uri = server.uri("disk", &[]);
    let mount = ServedMount::new(Path::new(PROGRAM), Path::new(&uri), &[]).unwrap();
    write(&mount.path().join("one"), 1).unwrap();
    let name = disk.display().to_string();
    let commands: [&[&str]; 5] = [
        &["shrink", "--size", "min", &uri],
        &["put", &uri, "/etc/services", "/other"],
        &["build", "--force", "/etc/apt", &uri],
        &["replay", &uri],
        // What lies behind the server, too.
        &["put", &name, "/etc/services", "/other"],
    ];
    for command in commands {
        let output = Command::new(PROGRAM).args(command).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{command:?}: {message}");
        let expected =
            ["another client changes it: end that first", "is in use by another program"];
        assert!(expected.iter().any(|text| message.contains(text)), "{command:?}: {message}");
    }
    // Reading is no matter, and the kernel's copy is whole.
    succeeds(Command::new(PROGRAM).args(["check", "--no-replay", &uri]));
    write(&mount.path().join("two"), 2).unwrap();
    mount.unmount().unwrap();
    succeeds(Command::new(PROGRAM).args(["put", &uri, "/etc/services", "/other"]));
    server.stop().unwrap();
    Xfsprogs::newest().unwrap().repair_check(&disk).unwrap();
    for (file, byte) in [("/one", 1), ("/two", 2)] {
        let found = Command::new(PROGRAM).args(["cat", &name, file]).output().unwrap();
        assert!(found.stdout == vec![byte; 300_000], "{file}");
    }
}

#[test]
fn a_volume_whose_server_stays_away_is_read_only_at_the_limit() {
    let home = tempfile::tempdir().unwrap();
    let disk = volume(home.path());
    let mut server = cached(&disk);
    let uri = server.uri("", &["x-timeout=1s"]);
    let mount = ServedMount::new(Path::new(PROGRAM), Path::new(&uri), &[]).unwrap();
    write(&mount.path().join("before"), 1).unwrap();
    server.kill();
    write(&mount.path().join("after"), 2).unwrap_err();
    // Nothing waits any more, and nothing is durable. What fails may be a read of metadata.
    write(&mount.path().join("later"), 3).unwrap_err();
    // With the first write of the journal that fails, changes are refused.
    File::open(mount.path()).unwrap().sync_all().unwrap_err();
    let refused = File::create(mount.path().join("last")).unwrap_err();
    assert!(matches!(refused.raw_os_error(), Some(5 | 30)), "{refused}");
    assert!(mount.log().contains("no answer from the server of nbd+unix:///"), "{}", mount.log());
    drop(mount);

    server.start().unwrap();
    let replayed = Command::new(PROGRAM).args(["replay", &server.uri("", &[])]).status().unwrap();
    assert!(replayed.success());
    server.kill();
    let read = Command::new(PROGRAM).args(["cat", &disk.display().to_string(), "/before"]).output();
    assert!(read.unwrap().stdout == vec![1; 300_000]);
}
