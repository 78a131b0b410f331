//! The forms in which the command is run to mount.

use crate::mounted::{Volume, fails, succeeds, undercroft};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{FdFlags, fcntl_setfd};
use std::ffi::OsStr;
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{chown, symlink};
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};

#[test]
fn mount_of_the_system_runs_it() {
    let volume = Volume::new();
    let helper = volume.beside("mount.undercroft");
    symlink(env!("CARGO_BIN_EXE_undercroft"), &helper).unwrap();
    let mut mount = Command::new(&helper);
    mount.arg(volume.image()).arg(volume.at()).args(["-n", "-o", "rw,noatime,x-systemd.automount"]);
    succeeds(&mut mount);
    fs::write(volume.at().join("file"), "x").unwrap();
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let at = volume.at().display().to_string();
    let line = mounts.lines().find(|line| line.contains(&at)).unwrap();
    assert!(line.contains(" fuse.undercroft rw,") && line.contains("noatime"), "{line}");
    succeeds(undercroft().arg("unmount").arg(volume.at()));
    volume.is_clean();
    // As `mount.fuse` does it.
    succeeds(undercroft().arg(volume.image()).arg(volume.at()).args(["-o", "ro"]));
    assert!(fs::write(volume.at().join("file"), "y").is_err());
    succeeds(undercroft().arg("unmount").arg(volume.at()));
    volume.is_clean();
}

/// mount(8) passes neither `dev` nor `suid` on, which it has for its default, and reads exit statuses.
#[test]
fn a_helper_of_mount_has_its_defaults_and_statuses() {
    let volume = Volume::new();
    let helper = volume.beside("mount.undercroft");
    symlink(env!("CARGO_BIN_EXE_undercroft"), &helper).unwrap();
    let mount = |image: &std::path::Path, rest: &[&str]| {
        let mut mount = Command::new(&helper);
        mount.arg(image).arg(volume.at()).args(rest).stdin(Stdio::null());
        mount
    };
    let line = || {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let at = volume.at().display().to_string();
        mounts.lines().find(|line| line.contains(&at)).unwrap().to_owned()
    };
    let output = mount(&volume.image(), &["-o", "rw,nouuid,logbsize=32k"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("nouuid,logbsize=32k"), "{said}");
    assert!(!line().contains("nosuid") && !line().contains("nodev"), "{}", line());
    succeeds(undercroft().arg("unmount").arg(volume.at()));
    succeeds(&mut mount(&volume.image(), &["-s", "-o", "rw,nosuid,no-such-option"]));
    assert!(line().contains("nosuid") && !line().contains("nodev"), "{}", line());
    succeeds(undercroft().arg("unmount").arg(volume.at()));
    fails(1, &mut mount(&volume.image(), &["-o", "no-such-option"]));
    let none = volume.beside("none");
    fails(32, &mut mount(&none, &["-o", "rw"]));
    succeeds(&mut mount(&none, &["-o", "rw,nofail"]));
    fs::write(volume.beside("text"), "no volume").unwrap();
    fails(32, &mut mount(&volume.beside("text"), &["-o", "rw,nofail"]));
    volume.is_clean();
}

/// A program with the rights for it mounts, and hands the descriptor on.
#[test]
fn a_descriptor_of_a_mount_is_served() {
    let volume = Volume::new();
    let device = open("/dev/fuse", OFlags::RDWR, Mode::empty()).unwrap();
    let number = device.as_raw_fd();
    let options = format!("fd={number},rootmode=40000,user_id=0,group_id=0");
    nix::mount::mount(
        Some("test"),
        &volume.at(),
        Some("fuse"),
        nix::mount::MsFlags::empty(),
        Some(options.as_str()),
    )
    .unwrap();
    fcntl_setfd(&device, FdFlags::empty()).unwrap();
    let mut mount = undercroft();
    mount.arg("mount").arg(volume.image()).arg(format!("/dev/fd/{number}"));
    succeeds(&mut mount);
    drop(device);
    fs::write(volume.at().join("file"), "x").unwrap();
    succeeds(undercroft().arg("unmount").arg(volume.at()));
    volume.is_clean();
    let closed = undercroft().arg("mount").arg(volume.image()).arg("/dev/fd/99").output().unwrap();
    assert!(String::from_utf8_lossy(&closed.stderr).contains("descriptor 99 is not open"));
}

/// By `fusermount3`, which has the rights for it and asks for the name of the user.
#[test]
fn a_user_mounts_and_unmounts() {
    let volume = Volume::new();
    let as_user = |arguments: &[&OsStr]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        command.arg(env!("CARGO_BIN_EXE_undercroft")).args(arguments).stdin(Stdio::null());
        // That of the tests may be one for root alone.
        command.env("TMPDIR", volume.beside("."));
        command
    };
    let (image, at) = (volume.image(), volume.at());
    for path in [&image, &at, &volume.beside(".")] {
        chown(path, Some(65534), Some(65534)).unwrap();
    }
    succeeds(undercroft().arg("chown").arg(&image).args(["65534", "/"]));
    succeeds(&mut as_user(&["mount".as_ref(), image.as_ref(), at.as_ref()]));
    let line = fs::read_to_string("/proc/self/mounts").unwrap();
    let line = line.lines().find(|line| line.contains(&*at.to_string_lossy())).unwrap();
    assert!(line.contains(" fuse.undercroft ") && line.contains("user_id=65534"), "{line}");
    succeeds(&mut as_user(&["unmount".as_ref(), at.as_ref()]));
    let words = ["mount".as_ref(), image.as_ref(), "--exec".as_ref()];
    let program = ["sh".as_ref(), "-ec".as_ref(), "echo text >file".as_ref()];
    succeeds(&mut as_user(&[words, program].concat()));
    volume.is_clean();
    assert_eq!(succeeds(undercroft().arg("cat").arg(&image).arg("/file")), "text\n");
}

#[test]
fn a_service_manager_hears_when_it_is_ready() {
    let volume = Volume::new();
    let path = volume.beside("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let mut server = undercroft();
    server.args(["mount", "--foreground"]).arg(volume.image()).arg(volume.at());
    let mut server = server.env("NOTIFY_SOCKET", &path).stderr(Stdio::null()).spawn().unwrap();
    let mut word = [0; 64];
    let len = socket.recv(&mut word).unwrap();
    assert_eq!(&word[..len], b"READY=1");
    // It answers.
    fs::write(volume.at().join("file"), "x").unwrap();
    succeeds(undercroft().arg("unmount").arg(volume.at()));
    assert!(server.wait().unwrap().success());
    volume.is_clean();
}

/// The streams of the command end with it, although the server goes on: pipes are not held open.
#[test]
fn the_server_lets_the_streams_of_the_command_go() {
    let volume = Volume::new();
    let output = undercroft().arg("mount").arg(volume.image()).arg(volume.at()).output().unwrap();
    assert!(output.status.success());
    fs::write(volume.at().join("file"), "x").unwrap();
    succeeds(undercroft().arg("unmount").arg(volume.at()));
    volume.is_clean();
}

#[test]
fn mistakes_are_named() {
    let volume = Volume::new();
    let mount = |arguments: &[&str]| {
        let mut command = undercroft();
        command.arg("mount").args(arguments).arg(volume.image()).arg(volume.at());
        command
    };
    assert!(fails(2, &mut mount(&["-o", "ro,quota"])).contains("\"quota\""));
    assert!(fails(2, &mut mount(&["-o", "uid=0"])).contains("-o ro"));
    let mut missing = undercroft();
    missing.arg("mount").arg(volume.image()).arg(volume.beside("none"));
    assert!(fails(1, &mut missing).contains("none"));
    let mut no_volume = undercroft();
    fs::write(volume.beside("text"), "no volume").unwrap();
    no_volume.arg("mount").arg(volume.beside("text")).arg(volume.at());
    fails(1, &mut no_volume);
    let said = fails(1, undercroft().arg("unmount").arg(volume.beside(".")));
    assert!(said.contains("is not the root of a volume"), "{said}");
    volume.is_clean();
}
