//! A volume has one writer: one in use by another program is refused, and one that is taken away is
//! noticed.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use undercroft_judges::mount::Access;
use undercroft_judges::{LoopDevice, LoopMount, Xfsprogs, kernel};

use crate::run::{Sample, fails, program, sample, succeeds};

/// A shell with a volume open. It ends when it is told to.
struct Shell(Child);

impl Shell {
    fn open(image: &str, file: &Path) -> Self {
        let mut child = program()
            .args(["shell", image])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while File::open(file).unwrap().try_lock().is_ok() {
            assert!(child.try_wait().unwrap().is_none(), "the shell ended");
            assert!(Instant::now() < deadline, "the volume is not opened");
            std::thread::sleep(Duration::from_millis(5));
        }
        Self(child)
    }

    fn end(mut self, script: &str) -> Output {
        self.0.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
        self.0.wait_with_output().unwrap()
    }
}

fn volume() -> Sample {
    sample(&["--size", "320M"])
}

fn judged(sample: &Sample) {
    assert!(succeeds(["check", &sample.image]).starts_with("clean: "));
    Xfsprogs::newest().unwrap().repair_check(Path::new(&sample.image)).unwrap();
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Every command that would change the volume, by `name`, says the same.
fn all_refuse(sample: &Sample, name: &str, expected: &str) {
    let tree = sample.path("tree");
    fs::create_dir_all(&tree).unwrap();
    let commands: [&[&str]; 10] = [
        &["mkdir", name, "/x"],
        &["replay", name],
        &["grow", name],
        &["shrink", "--size", "min", name],
        &["set", "--label", "x", name],
        &["mkfs", "--force", name],
        &["build", "--force", &tree, name],
        &["shell", name],
        &["lab", "fsync", "--image", name, "--files", "10"],
        &["lab", "meta", "--image", name, "--files", "10", "--repeat", "1"],
    ];
    for command in commands {
        let message = fails(1, command);
        assert!(message.contains(expected), "{command:?}: {message}");
    }
}

#[test]
fn a_volume_in_a_shell_has_one_user() {
    let sample = volume();
    let shell = Shell::open(&sample.image, Path::new(&sample.image));
    all_refuse(&sample, &sample.image, "is in use by another program");
    let output = shell.end("mkdir /mine\n");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(succeeds(["ls", &sample.image, "/"]).contains("mine"));
    judged(&sample);
}

#[test]
fn a_loop_device_is_its_file_to_every_command() {
    if !kernel::available_or_report() {
        return;
    }
    let sample = volume();
    let device = LoopDevice::attach(Path::new(&sample.image)).unwrap();
    let name = device.path().display().to_string();
    let shell = Shell::open(&name, Path::new(&sample.image));
    all_refuse(&sample, &sample.image, &format!("is in use through {name}"));
    let output = shell.end("mkdir /mine\n");
    assert!(output.status.success(), "{}", text(&output.stderr));
    drop(device);
    judged(&sample);
}

#[test]
fn a_mounted_volume_is_the_kernels() {
    if !kernel::available_or_report() {
        return;
    }
    let sample = volume();
    let mount = LoopMount::new(Path::new(&sample.image), Access::ReadWrite, &[]).unwrap();
    let link = sample.path("link");
    fs::hard_link(&sample.image, &link).unwrap();
    let expected = format!("is mounted at {}", mount.path().display());
    all_refuse(&sample, &link, &expected);
    for verb in ["info", "check", "ls"] {
        let output = program().args([verb, &link]).output().unwrap();
        let message = text(&output.stderr);
        assert!(message.contains(&expected) && message.contains("changing"), "{verb}: {message}");
    }
    mount.unmount().unwrap();
    judged(&sample);
}

#[test]
fn a_volume_that_the_kernel_mounts_meanwhile_is_left_alone() {
    if !kernel::available_or_report() {
        return;
    }
    let sample = volume();
    let shell = Shell::open(&sample.image, Path::new(&sample.image));
    let mount = LoopMount::new(Path::new(&sample.image), Access::ReadWrite, &[]).unwrap();
    fs::write(mount.join("theirs"), "the kernel's").unwrap();
    let output = shell.end("mkdir /mine\nsync\n");
    let message = text(&output.stderr);
    assert!(!output.status.success());
    let expected = format!("is mounted at {}", mount.path().display());
    assert!(message.contains(&expected), "{message}");
    mount.unmount().unwrap();
    assert!(!succeeds(["ls", &sample.image, "/"]).contains("mine"));
    judged(&sample);
}

#[test]
fn a_volume_whose_file_is_replaced_says_so() {
    let sample = volume();
    let shell = Shell::open(&sample.image, Path::new(&sample.image));
    let other = sample.path("other");
    fs::copy(&sample.image, &other).unwrap();
    fs::rename(&other, &sample.image).unwrap();
    let output = shell.end("mkdir /mine\nsync\n");
    assert!(!output.status.success());
    let message = text(&output.stderr);
    assert!(message.contains("was removed or replaced while it was open"), "{message}");
    judged(&sample);
}

#[test]
fn build_goes_through_a_link_and_refuses_one_that_leads_nowhere() {
    let sample = volume();
    let (link, nowhere, tree) = (sample.path("link"), sample.path("nowhere"), sample.path("new"));
    std::os::unix::fs::symlink("disk.img", &nowhere).unwrap();
    std::os::unix::fs::symlink(&sample.image, &link).unwrap();
    fs::create_dir(&tree).unwrap();
    fs::write(Path::new(&tree).join("one"), "1").unwrap();
    let message = fails(1, ["build", "--force", &tree, &nowhere]);
    assert!(message.contains("a symbolic link to disk.img, which does not exist"), "{message}");
    succeeds(["build", "--force", &tree, &link]);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(succeeds(["ls", &sample.image, "/"]).contains("one"));
    let message = fails(2, ["build", &tree, "-"]);
    assert!(message.contains("a volume cannot be streamed"), "{message}");
}

#[test]
fn an_experiment_that_fails_leaves_no_image() {
    let home = tempfile::tempdir().unwrap();
    let image = home.path().join("new.img").display().to_string();
    let run = |size| {
        Command::new(env!("CARGO_BIN_EXE_undercroft"))
            .args([
                "lab",
                "fsync",
                "--mode",
                "async",
                "--files",
                "10",
                "--image",
                &image,
                "--image-size",
                size,
            ])
            .output()
            .unwrap()
    };
    assert!(!run("1M").status.success());
    assert!(!Path::new(&image).exists());
    let output = run("320M");
    assert!(output.status.success(), "{}", text(&output.stderr));
}
