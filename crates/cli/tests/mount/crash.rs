//! Servers that are killed, volumes that were not unmounted, and locks.

use crate::mounted::{Volume, fails, succeeds, undercroft};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

/// A volume whose server was killed with something in its journal.
fn killed() -> Volume {
    let volume = Volume::new();
    let mut mounted = volume.serve(&[]);
    let mut file = File::create(mounted.path("file")).unwrap();
    file.write_all(b"synced").unwrap();
    file.sync_all().unwrap();
    mounted.server().kill().unwrap();
    mounted.server().wait().unwrap();
    drop(file);
    drop(mounted);
    volume
}

#[test]
fn a_killed_server_leaves_what_replays() {
    let volume = killed();
    // The kernel still has the mount, and says that nothing answers.
    assert!(fs::read_dir(volume.at()).is_err());
    let output = undercroft().arg("unmount").arg(volume.at()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.success() && said.contains("the next mount replays its journal"),
        "{said}"
    );
    let before = fs::read(volume.image()).unwrap();

    // To read it, it is replayed in memory.
    let mounted = volume.mount(&["-o", "ro"]);
    assert_eq!(fs::read(mounted.path("file")).unwrap(), b"synced");
    mounted.unmount_only();
    assert!(fs::read(volume.image()).unwrap() == before, "the image has changed");

    // Without its journal it is not changed.
    let mut refused = undercroft();
    refused.args(["mount", "-o", "norecovery"]).arg(volume.image()).arg(volume.at());
    assert!(fails(1, &mut refused).contains("was not unmounted"));
    let mounted = volume.mount(&["-o", "ro,norecovery"]);
    mounted.unmount_only();
    assert!(fs::read(volume.image()).unwrap() == before, "the image has changed");

    let mounted = volume.mount(&[]);
    assert_eq!(fs::read(mounted.path("file")).unwrap(), b"synced");
    mounted.unmount();
}

/// As after a crash of a machine's service: what is left of the old mount is no obstacle.
#[test]
fn a_dead_mount_makes_way() {
    let volume = killed();
    let mounted = volume.mount(&[]);
    assert_eq!(fs::read(mounted.path("file")).unwrap(), b"synced");
    mounted.unmount();
    assert_eq!(fs::read_dir(volume.at()).unwrap().count(), 0);
}

#[test]
fn a_mounted_image_is_not_mounted_again() {
    let volume = Volume::new();
    let mounted = volume.mount(&[]);
    let other = volume.beside("other");
    fs::create_dir(&other).unwrap();
    let said = fails(1, undercroft().arg("mount").arg(volume.image()).arg(&other));
    let at = volume.at().display().to_string();
    assert!(
        said.contains(&format!("mounted at {at} by process"))
            && said.contains(&format!("undercroft unmount {at}")),
        "{said}"
    );
    mounted.unmount();
}

/// What no program asked for is durable soon, by itself.
#[test]
fn closed_files_become_durable() {
    let volume = Volume::new();
    let mut mounted = volume.serve(&["-o", "commit=1"]);
    fs::write(mounted.path("file"), "closed").unwrap();
    let clean = || {
        let status = succeeds(undercroft().args(["status", "--json"]).arg(volume.at()));
        status.contains("\"dirty_data\":0")
    };
    while !clean() {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    // Written back; and committed with the next turn at the latest.
    std::thread::sleep(std::time::Duration::from_millis(2500));
    mounted.server().kill().unwrap();
    mounted.server().wait().unwrap();
    drop(mounted);
    succeeds(Command::new("umount").arg("-l").arg(volume.at()));
    let mounted = volume.mount(&[]);
    assert_eq!(fs::read_to_string(mounted.path("file")).unwrap(), "closed");
    mounted.unmount();
}

/// With `sync` what was written, and with `dirsync` names, without an fsync.
#[test]
fn synchronous_mounts_survive_a_crash() {
    for option in ["sync", "dirsync"] {
        let volume = Volume::new();
        let mut mounted = volume.serve(&["-o", &format!("{option},commit=3600")]);
        let path = |name: &str| mounted.path(name);
        fs::create_dir(path("directory")).unwrap();
        fs::write(path("directory/file"), "content").unwrap();
        std::os::unix::fs::symlink("file", path("directory/link")).unwrap();
        fs::hard_link(path("directory/file"), path("other")).unwrap();
        fs::write(path("gone"), "x").unwrap();
        fs::remove_file(path("gone")).unwrap();
        fs::create_dir(path("empty")).unwrap();
        fs::remove_dir(path("empty")).unwrap();
        fs::rename(path("other"), path("directory/moved")).unwrap();
        let server = mounted.server();
        server.kill().unwrap();
        server.wait().unwrap();
        drop(mounted);
        let mounted = volume.mount(&[]);
        let names = |name: &str| {
            let entries = fs::read_dir(mounted.path(name)).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        assert_eq!(names(""), ["directory"]);
        assert_eq!(names("directory"), ["file", "link", "moved"]);
        if option == "sync" {
            assert_eq!(fs::read_to_string(mounted.path("directory/moved")).unwrap(), "content");
        }
        mounted.unmount();
    }
}

#[test]
fn damage_is_one_file_and_one_line() {
    let volume = Volume::new();
    let mounted = volume.mount(&[]);
    for number in 0..200 {
        fs::write(mounted.path(format!("file {number}")), "x").unwrap();
    }
    let last = fs::metadata(mounted.path("file 199")).unwrap().ino();
    mounted.unmount();
    let mut image = fs::OpenOptions::new().write(true).open(volume.image()).unwrap();
    // Of 512 bytes each, in group 0.
    std::io::Seek::seek(&mut image, std::io::SeekFrom::Start(last * 512 + 100)).unwrap();
    image.write_all(&[0xff; 8]).unwrap();
    drop(image);

    let log = volume.beside("log");
    let path = log.display().to_string();
    let mounted = volume.mount(&["--log", &path]);
    let mut damaged = 0;
    for number in 0..200 {
        match fs::read(mounted.path(format!("file {number}"))) {
            Ok(content) => assert_eq!(content, b"x"),
            Err(error) => {
                assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::UCLEAN.raw_os_error()));
                damaged += 1;
            }
        }
    }
    assert!(damaged > 0 && damaged < 200, "{damaged} files");
    let status = succeeds(undercroft().args(["status", "--json"]).arg(volume.at()));
    assert!(!status.contains("\"damage_errors\":0"), "{status}");
    let lines = fs::read_to_string(&log).unwrap();
    assert!(lines.contains(&format!("damaged inode {last}: checksum")), "{lines}");
    mounted.unmount_only();
}
