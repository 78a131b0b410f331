//! Ways in which a mount ends.

use crate::mounted::{Volume, fails, signal, succeeds, undercroft, wait_for};
use std::fs::{self, File};
use std::process::{Command, Stdio};

fn is_mounted(volume: &Volume) -> bool {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    mounts.contains(&format!(" {} ", volume.at().display()))
}

#[test]
fn the_image_is_free_when_unmount_returns() {
    let volume = Volume::new();
    for round in 0..10 {
        let mounted = volume.mount(&[]);
        fs::write(mounted.path(format!("{round}")), vec![1; 3 << 20]).unwrap();
        mounted.unmount_only();
        // It needs the lock of the image, and a journal with nothing to replay.
        let path = format!("/by-command-{round}");
        let output = undercroft().arg("touch").arg(volume.image()).arg(path).output().unwrap();
        assert!(output.status.success());
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }
    volume.is_clean();
}

#[test]
fn a_mount_in_use_stays() {
    let volume = Volume::new();
    let mounted = volume.mount(&[]);
    let file = File::create(mounted.path("file")).unwrap();
    let said = fails(1, undercroft().arg("unmount").arg(volume.at()));
    assert!(said.contains("is in use") && said.contains("--lazy"), "{said}");
    drop(file);
    mounted.unmount();
}

#[test]
fn a_lazy_unmount_waits_for_the_last_user() {
    let volume = Volume::new();
    let mounted = volume.mount(&[]);
    let file = File::create(mounted.path("file")).unwrap();
    let mut lazy = undercroft();
    let mut lazy = lazy.args(["unmount", "--lazy"]).arg(volume.at()).spawn().unwrap();
    wait_for("the unmount", || !is_mounted(&volume));
    assert!(lazy.try_wait().unwrap().is_none());
    std::os::unix::fs::FileExt::write_all_at(&file, b"late", 0).unwrap();
    drop(file);
    assert!(lazy.wait().unwrap().success());
    drop(mounted);
    volume.is_clean();
    let text = succeeds(undercroft().arg("cat").arg(volume.image()).arg("/file"));
    assert_eq!(text, "late");
}

#[test]
fn umount_of_the_system_does_as_well() {
    let volume = Volume::new();
    let mut mounted = volume.serve(&[]);
    fs::write(mounted.path("file"), "text").unwrap();
    // A process that another test is starting may have the file for a moment.
    let umount = || Command::new("umount").arg(volume.at()).stderr(Stdio::null()).status().unwrap();
    wait_for("the unmount", || umount().success());
    assert!(mounted.server().wait().unwrap().success());
    volume.is_clean();
}

#[test]
fn sigterm_is_an_orderly_unmount() {
    let volume = Volume::new();
    let mut mounted = volume.serve(&[]);
    fs::write(mounted.path("file"), "text").unwrap();
    let server = mounted.server();
    signal("TERM", server.id());
    assert!(server.wait().unwrap().success());
    assert!(!is_mounted(&volume));
    volume.is_clean();
    assert_eq!(succeeds(undercroft().arg("cat").arg(volume.image()).arg("/file")), "text");
}

#[test]
fn a_second_signal_keeps_what_was_synced() {
    let volume = Volume::new();
    let mut mounted = volume.serve(&[]);
    let mut file = File::create(mounted.path("file")).unwrap();
    std::io::Write::write_all(&mut file, b"synced").unwrap();
    file.sync_all().unwrap();
    let server = mounted.server();
    let process = server.id();
    signal("TERM", process);
    wait_for("the detaching", || !is_mounted(&volume));
    assert!(server.try_wait().unwrap().is_none(), "a file is open");
    signal("TERM", process);
    assert_eq!(server.wait().unwrap().code(), Some(1));
    drop(file);
    volume.is_clean();
    assert_eq!(succeeds(undercroft().arg("cat").arg(volume.image()).arg("/file")), "synced");
}
