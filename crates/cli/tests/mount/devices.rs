//! Devices that never answer, and devices that fail: an image on another mount, whose server is
//! stopped or killed.

use crate::mounted::{Mounted, Volume, pattern, signal, succeeds, undercroft, wait_for};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::process::Command;

const SIZE: usize = 16 << 20;

/// Far from what else is read, so that nothing has it in memory.
const FAR: u64 = 12 << 20;

/// A volume on a mount of `host`, with a file; the mount below has nothing of it in memory.
fn volume_on(host: &Volume) -> (Volume, Mounted<'_>) {
    let below = host.serve(&[]);
    let volume = Volume::stored_at(below.path("image"), "64M");
    let mounted = volume.mount(&[]);
    fs::write(mounted.path("file"), pattern(SIZE, 3)).unwrap();
    mounted.unmount();
    below.unmount_only();
    (volume, host.serve(&[]))
}

fn mounted_with_log<'v>(volume: &'v Volume, options: &[&str]) -> Mounted<'v> {
    let log = volume.beside("log").display().to_string();
    volume.mount(&[options, &["--log", &log]].concat())
}

fn log(volume: &Volume) -> String {
    fs::read_to_string(volume.beside("log")).unwrap_or_default()
}

/// Stops a process; returns when all its threads have.
fn stop(process: u32) {
    signal("STOP", process);
    let is_stopped = |thread: fs::DirEntry| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        // The state stands behind the name, which is in brackets.
        stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
    };
    wait_for("the stop", || {
        fs::read_dir(format!("/proc/{process}/task")).unwrap().flatten().all(is_stopped)
    });
}

#[test]
fn a_device_that_never_answers_is_an_error_in_time() {
    let host = Volume::new();
    let (volume, mut below) = volume_on(&host);
    let mounted = mounted_with_log(&volume, &["--device-timeout", "1"]);
    let file = File::open(mounted.path("file")).unwrap();
    let mut bytes = [0; 4096];

    stop(below.server().id());
    let read = file.read_exact_at(&mut bytes, FAR);
    signal("CONT", below.server().id());
    assert_eq!(read.unwrap_err().raw_os_error(), Some(Errno::IO.raw_os_error()));
    let status = mounted.status();
    assert!(status["device_errors"].as_u64().unwrap() > 0, "{status}");
    // Nothing is lost by a read.
    assert_eq!(status["read_only"], false, "{status}");
    assert!(log(&volume).contains("image"), "{}", log(&volume));

    // It answers again.
    wait_for("an answer", || file.read_exact_at(&mut bytes, FAR).is_ok());
    assert!(bytes[..] == pattern(SIZE, 3)[FAR as usize..][..4096]);
    drop(file);
    mounted.unmount();
    below.unmount();
}

#[test]
fn a_device_that_fails_makes_the_mount_read_only() {
    let host = Volume::new();
    let (volume, mut below) = volume_on(&host);
    let mounted = mounted_with_log(&volume, &[]);
    let mut synced = File::create(mounted.path("synced")).unwrap();
    synced.write_all(b"synced").unwrap();
    synced.sync_all().unwrap();
    fs::read(mounted.path("synced")).unwrap();

    below.server().kill().unwrap();
    below.server().wait().unwrap();
    let mut late = File::create(mounted.path("late")).unwrap();
    late.write_all(b"late").unwrap();
    let lost = late.sync_all().unwrap_err();
    assert_eq!(lost.raw_os_error(), Some(Errno::IO.raw_os_error()));
    drop(late);
    let refused = fs::create_dir(mounted.path("directory")).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(Errno::ROFS.raw_os_error()));
    // What is in memory can be read.
    assert_eq!(fs::read(mounted.path("synced")).unwrap(), b"synced");
    let status = mounted.status();
    assert_eq!(status["read_only"], true, "{status}");
    assert!(status["failed"].is_string(), "{status}");
    let text = succeeds(undercroft().arg("status").arg(volume.at()));
    assert!(text.contains("read-only") || text.contains("read only"), "{text}");
    wait_for("a line in the log", || log(&volume).contains("read-only"));

    // The end says that the volume is not clean; the next mount replays it.
    drop(synced);
    let ended = undercroft().arg("unmount").arg(volume.at()).output().unwrap();
    assert!(!ended.status.success(), "{ended:?}");
    drop(mounted);
    drop(below);
    succeeds(Command::new("umount").arg("-l").arg(host.at()));
    let below = host.mount(&[]);
    let mounted = volume.mount(&[]);
    assert_eq!(fs::read(mounted.path("synced")).unwrap(), b"synced");
    assert!(fs::read(mounted.path("file")).unwrap() == pattern(SIZE, 3));
    mounted.unmount();
    below.unmount();
}

/// What another program cuts off an image reads as an error, and not as zeroes.
#[test]
fn an_image_that_is_cut_is_an_error() {
    let volume = Volume::new();
    let mounted = volume.mount(&[]);
    fs::write(mounted.path("file"), vec![7; 128 << 20]).unwrap();
    mounted.unmount();
    let mounted = volume.mount(&["-o", "ro"]);
    let file = File::open(mounted.path("file")).unwrap();
    File::options().write(true).open(volume.image()).unwrap().set_len(64 << 20).unwrap();
    let mut bytes = [0; 4096];
    file.read_exact_at(&mut bytes, 0).unwrap();
    let read = file.read_exact_at(&mut bytes, 100 << 20);
    assert_eq!(read.unwrap_err().raw_os_error(), Some(Errno::IO.raw_os_error()));
    drop(file);
    mounted.unmount_only();
}
