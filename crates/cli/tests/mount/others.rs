//! Mounts of others beside ours: over it, below it, in it, and copies of it in other mount name spaces.

use crate::mounted::{Volume, fails, script, signal, succeeds, undercroft, wait_for};
use nix::mount::{MntFlags, MsFlags, umount2};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A file system in memory with a file, mounted by the test.
struct Other(PathBuf);

impl Other {
    fn at(directory: &Path) -> Self {
        succeeds(Command::new("mount").args(["-t", "tmpfs", "other"]).arg(directory));
        let other = Self(directory.to_owned());
        fs::write(directory.join("precious"), "precious").unwrap();
        other
    }

    #[track_caller]
    fn is_there(&self) {
        assert_eq!(fs::read_to_string(self.0.join("precious")).unwrap(), "precious");
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = umount2(&self.0, MntFlags::MNT_DETACH);
    }
}

/// A process with a mount name space of its own, and the path of ours as it sees that.
struct NameSpace(Child);

impl NameSpace {
    fn new() -> Self {
        let mut command = Command::new("unshare");
        command.args(["-m", "--propagation", "private"]).args(script("echo; exec sleep 1000"));
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        // It is in its name space when it says so.
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        Self(child)
    }

    fn sees(&self, path: &Path) -> PathBuf {
        let inside = path.strip_prefix("/").unwrap();
        Path::new("/proc").join(self.0.id().to_string()).join("root").join(inside)
    }
}

impl Drop for NameSpace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_is_mounted_below_stays() {
    let volume = Volume::new();
    let other = Other::at(&volume.at());
    let mut mounted = volume.serve(&[]);
    fs::write(mounted.path("file"), "text").unwrap();
    umount2(&volume.at(), MntFlags::empty()).unwrap();
    assert!(mounted.server().wait().unwrap().success());
    other.is_there();
    volume.mount(&[]).unmount_only();
    other.is_there();
    volume.is_clean();
}

#[test]
fn what_is_mounted_over_it_stays() {
    let volume = Volume::new();
    let log = volume.beside("log");
    let log_text = || fs::read_to_string(&log).unwrap_or_default();
    let mounted = volume.mount(&["--log", log.to_str().unwrap()]);
    let process = u32::try_from(mounted.process()).unwrap();
    let other = Other::at(&volume.at());
    let said = fails(1, undercroft().arg("unmount").arg(volume.at()));
    assert!(said.contains("is not the root of a volume"), "{said}");
    signal("TERM", process);
    wait_for("the word", || log_text().contains("tmpfs at"));
    other.is_there();
    // With that the server ends.
    drop(other);
    wait_for("the end", || !fs::exists(format!("/proc/{process}")).unwrap());
    assert!(
        !fs::read_to_string("/proc/self/mounts").unwrap().contains(&*volume.at().to_string_lossy())
    );
    drop(mounted);
    volume.is_clean();
}

#[test]
fn what_is_mounted_in_it_stays() {
    let volume = Volume::new();
    let mounted = volume.mount(&[]);
    fs::create_dir(mounted.path("directory")).unwrap();
    let other = Other::at(&mounted.path("directory"));
    for options in [&[][..], &["--lazy"]] {
        let said = fails(1, undercroft().arg("unmount").args(options).arg(volume.at()));
        assert!(said.contains("tmpfs at") && said.contains("unmount that first"), "{said}");
        other.is_there();
    }
    drop(other);
    mounted.unmount();
}

/// A file system of another program whose server has ended.
#[test]
fn a_dead_mount_of_another_program_stays() {
    let volume = Volume::new();
    {
        let device = fs::File::options().read(true).write(true).open("/dev/fuse").unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&device);
        let options = format!("fd={number},rootmode=40000,user_id=0,group_id=0,subtype=other");
        let none = MsFlags::empty();
        nix::mount::mount(Some("x"), &volume.at(), Some("fuse"), none, Some(&*options)).unwrap();
    }
    let said = fails(1, undercroft().arg("unmount").arg(volume.at()));
    assert!(said.contains("is not the root of a volume"), "{said}");
    let said = fails(1, undercroft().arg("mount").arg(volume.image()).arg(volume.at()));
    assert!(said.contains("umount"), "{said}");
    umount2(&volume.at(), MntFlags::empty()).unwrap();
}

#[test]
fn copies_in_other_name_spaces_end_in_time() {
    let volume = Volume::new();
    let mounted = volume.mount(&[]);
    fs::write(mounted.path("file"), "text").unwrap();
    let space = NameSpace::new();
    let seen = space.sees(&mounted.path("file"));
    assert_eq!(fs::read_to_string(&seen).unwrap(), "text");
    let mut unmount = undercroft();
    unmount.args(["unmount", "--timeout", "2"]).arg(volume.at()).stderr(Stdio::piped());
    let unmount = unmount.spawn().unwrap();
    // What is written meanwhile is kept.
    wait_for("the unmount", || !mounted.path("file").exists());
    fs::write(space.sees(&mounted.path("late")), "late").unwrap();
    let ended = unmount.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}");
    assert!(said.contains(&format!("process {} (sleep)", space.0.id())), "{said}");
    // What is held is dead.
    fs::write(&seen, "lost").unwrap_err();
    fs::create_dir(space.sees(&mounted.path("directory"))).unwrap_err();
    drop(mounted);
    volume.is_clean();
    for name in ["text", "late"] {
        let path = format!("/{}", if name == "text" { "file" } else { name });
        assert_eq!(succeeds(undercroft().arg("cat").arg(volume.image()).arg(path)), name);
    }
}

#[test]
fn other_directories_that_it_is_bound_to_end_in_time() {
    let volume = Volume::new();
    let mounted = volume.mount(&[]);
    let bound = volume.beside("bound");
    fs::create_dir(&bound).unwrap();
    succeeds(Command::new("mount").arg("--bind").arg(volume.at()).arg(&bound));
    let output =
        undercroft().args(["unmount", "--timeout", "0"]).arg(volume.at()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("the mount at"), "{said}");
    umount2(&bound, MntFlags::MNT_DETACH).unwrap();
    drop(mounted);
    volume.is_clean();
}

/// In a container the copy goes, and the volume goes on where its server is.
#[test]
fn a_copy_is_unmounted_alone() {
    let volume = Volume::new();
    let mounted = volume.mount(&[]);
    let mut inside = Command::new("unshare");
    inside.args(["-m", "--propagation", "private", env!("CARGO_BIN_EXE_undercroft"), "unmount"]);
    let said = fails(1, inside.arg(volume.at()));
    assert!(said.contains("in that of its server"), "{said}");
    fs::write(mounted.path("file"), "text").unwrap();
    mounted.unmount();
}

#[test]
fn the_root_of_all_is_no_place() {
    let volume = Volume::new();
    for root in ["/", "/..", "/proc/self/root"] {
        let said = fails(1, undercroft().arg("mount").arg(volume.image()).arg(root));
        assert!(said.contains("cannot mount at /"), "{said}");
    }
}
