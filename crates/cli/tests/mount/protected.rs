//! Images that cannot be changed, and images that others change.

use crate::mounted::{Volume, fails, signal, succeeds, undercroft};
use rustix::io::Errno;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A loop device that is only to be read.
struct Protected(PathBuf);

impl Protected {
    fn over(image: &Path) -> Self {
        let mut losetup = Command::new("losetup");
        let device = succeeds(losetup.args(["--read-only", "--find", "--show"]).arg(image));
        Self(device.trim_end().into())
    }
}

impl Drop for Protected {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.0).output();
    }
}

/// A volume with `/file`, which is in its journal alone.
fn dirty() -> Volume {
    let volume = Volume::new();
    let mounted = volume.mount(&[]);
    fs::write(mounted.path("file"), "text").unwrap();
    fs::File::open(mounted.path("file")).unwrap().sync_all().unwrap();
    signal("KILL", u32::try_from(mounted.process()).unwrap());
    succeeds(Command::new("umount").arg("-l").arg(volume.at()));
    drop(mounted);
    volume
}

#[test]
fn a_write_protected_disk_is_mounted_to_be_read() {
    let volume = dirty();
    let before = fs::read(volume.image()).unwrap();
    let disk = Protected::over(&volume.image());
    let output = undercroft().arg("mount").arg(&disk.0).arg(volume.at()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("is write-protected") && said.contains("mounted read-only"), "{said}");
    assert!(said.contains("replayed in memory"), "{said}");
    assert_eq!(fs::read_to_string(volume.at().join("file")).unwrap(), "text");
    let refused = fs::write(volume.at().join("other"), "text").unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(Errno::ROFS.raw_os_error()));
    succeeds(undercroft().arg("unmount").arg(volume.at()));
    assert!(fs::read(volume.image()).unwrap() == before);
    for change in [&["mkfs", "--force"][..], &["touch"], &["replay"], &["grow"]] {
        let mut command = undercroft();
        command.args(change).arg(&disk.0);
        if change == ["touch"] {
            command.arg("/other");
        }
        let said = fails(1, &mut command);
        assert!(said.contains("is write-protected"), "{command:?}: {said}");
    }
    drop(disk);
    assert!(fs::read(volume.image()).unwrap() == before);
}

#[test]
fn what_others_change_is_not_read() {
    let volume = Volume::new();
    let mounted = volume.mount(&[]);
    let second = volume.beside("second");
    fs::create_dir(&second).unwrap();
    let mount = |options: &str, image: &Path| {
        let mut command = undercroft();
        command.args(["mount", "-o", options]).arg(image).arg(&second);
        command
    };
    let disk = Protected::over(&volume.image());
    for image in [&volume.image(), &disk.0] {
        let said = fails(1, &mut mount("ro", image));
        assert!(said.contains("stale") && said.contains("in use"), "{said}");
    }
    succeeds(&mut mount("ro,stale", &volume.image()));
    succeeds(undercroft().arg("unmount").arg(&second));
    mounted.unmount();
    // Readers do not mind one another, and what they read stays as it is.
    let mounted = volume.mount(&["-o", "ro"]);
    succeeds(&mut mount("ro", &volume.image()));
    let said = fails(1, undercroft().arg("touch").arg(volume.image()).arg("/file"));
    assert!(said.contains("is in use"), "{said}");
    succeeds(undercroft().arg("unmount").arg(&second));
    mounted.unmount_only();
    succeeds(undercroft().arg("touch").arg(volume.image()).arg("/file"));
}

#[test]
fn what_the_kernel_has_mounted_is_not_read() {
    let volume = Volume::new();
    let by_kernel = volume.beside("kernel");
    fs::create_dir(&by_kernel).unwrap();
    succeeds(Command::new("mount").args(["-o", "loop"]).arg(volume.image()).arg(&by_kernel));
    let mut mount = undercroft();
    mount.args(["mount", "-o", "ro"]).arg(volume.image()).arg(volume.at());
    let output = mount.output().unwrap();
    succeeds(Command::new("umount").arg(&by_kernel));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("is mounted at"), "{said}");
}
