//! Mounts that get other options, with the arguments that mount(8) gives to the program of a type.

use crate::mounted::{Mounted, Volume, fails, signal, succeeds, undercroft, wait_for};
use nix::mount::MsFlags;
use rustix::io::Errno;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

/// What mount(8) adds to the options that it was given.
const LISTED: &str =
    "nosuid,nodev,relatime,remount,user_id=0,group_id=0,default_permissions,allow_other";

/// `mount -o remount,OPTIONS` of a volume.
fn remount(volume: &Volume, options: &str) -> Command {
    let helper = volume.beside("mount.fuse.undercroft");
    let _ = symlink(env!("CARGO_BIN_EXE_undercroft"), &helper);
    let mut command = Command::new(helper);
    command.arg(volume.image()).arg(volume.at()).stdin(Stdio::null());
    command.arg("-o").arg(format!("{options},{LISTED}"));
    command
}

fn is_refused(mounted: &Mounted<'_>) -> bool {
    let written = fs::write(mounted.path("other"), "x");
    written.is_err_and(|error| error.raw_os_error() == Some(Errno::ROFS.raw_os_error()))
}

/// Kills the server; the next opening finds nothing to replay.
fn crash(mounted: Mounted<'_>, volume: &Volume) {
    signal("KILL", u32::try_from(mounted.process()).unwrap());
    succeeds(Command::new("umount").arg("-l").arg(volume.at()));
    drop(mounted);
    let output = undercroft().arg("check").arg(volume.image()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("not unmounted"), "{said}");
    let mut logprint = Command::new("xfs_logprint");
    let state = succeeds(logprint.arg("-t").arg(volume.image()));
    assert!(state.contains("<CLEAN>"), "{state}");
    volume.is_clean();
}

#[test]
fn what_became_read_only_is_clean() {
    let volume = Volume::new();
    let mounted = volume.mount(&[]);
    let file = File::create(mounted.path("file")).unwrap();
    let said = fails(32, &mut remount(&volume, "ro"));
    assert!(said.contains("open for writing"), "{said}");
    drop(file);
    fs::write(mounted.path("file"), vec![7; 3 << 20]).unwrap();
    succeeds(&mut remount(&volume, "ro"));
    assert!(is_refused(&mounted));
    assert_eq!(mounted.status()["at_rest"], true);
    assert_eq!(fs::read(mounted.path("file")).unwrap().len(), 3 << 20);
    succeeds(&mut remount(&volume, "ro,noatime"));
    crash(mounted, &volume);
}

#[test]
fn what_became_read_only_is_changed_again() {
    let volume = Volume::new();
    let mounted = volume.mount(&[]);
    fs::create_dir(mounted.path("directory")).unwrap();
    succeeds(&mut remount(&volume, "ro"));
    succeeds(&mut remount(&volume, "rw"));
    assert_eq!(mounted.status()["at_rest"], false);
    fs::write(mounted.path("directory/file"), "text").unwrap();
    // Whatever program it is.
    let flags = MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
    nix::mount::mount(None::<&str>, &volume.at(), None::<&str>, flags, None::<&str>).unwrap();
    wait_for("the rest", || mounted.status()["at_rest"] == true);
    assert_eq!(fs::read(mounted.path("directory/file")).unwrap(), b"text");
    crash(mounted, &volume);
    let mounted = volume.mount(&[]);
    fs::write(mounted.path("directory/file"), "other").unwrap();
    succeeds(&mut remount(&volume, "ro"));
    mounted.unmount();
}

#[test]
fn a_remount_that_cannot_be_is_refused() {
    let volume = Volume::new();
    let said = fails(32, &mut remount(&volume, "ro"));
    assert!(said.contains("is not the root of a volume"), "{said}");
    let mounted = volume.mount(&["-o", "ro"]);
    let said = fails(32, &mut remount(&volume, "rw"));
    assert!(said.contains("mounted to be read") && said.contains("mount it again"), "{said}");
    assert!(is_refused(&mounted));
    succeeds(&mut remount(&volume, "ro,noexec"));
    let mut other = undercroft();
    other.args(["mount", "-o", "remount,ro"]).arg(volume.beside("other")).arg(volume.at());
    let said = fails(1, &mut other);
    assert!(said.contains("and not") && said.contains("other"), "{said}");
    mounted.unmount();
}
