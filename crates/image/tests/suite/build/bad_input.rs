//! Sources and targets that cannot be: an error that names the place, and a target as it was.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use undercroft_block::{Holder, OpenError};
use undercroft_image::pack::{PackError, SizeChoice};
use undercroft_judges::{LoopDevice, kernel};

use crate::build::archive_writer::ArchiveWriter;
use crate::build::child;
use undercroft_testkit::image::judged::{build, chain, image_of, options};

const OLD: &[u8] = b"an image that was there before";

/// Builds `source` twice where it must fail with a message that holds each of `words`: onto nothing
/// and over an image. Neither leaves anything behind.
#[track_caller]
fn assert_refused(source: &Path, words: &[&str]) {
    let home = tempfile::tempdir().unwrap();
    let mut options = options(source, &home.path().join("image"));
    for force in [false, true] {
        if force {
            // A program that another test starts just now may have inherited the file of before.
            let deadline = Instant::now() + Duration::from_secs(20);
            while fs::write(image_of(&options), OLD).is_err() {
                assert!(Instant::now() < deadline, "the image of before keeps its space");
            }
        }
        options.force = force;
        for size in [SizeChoice::Auto, SizeChoice::Exact(64 << 20)] {
            options.size = size;
            options.uuid = (size != SizeChoice::Auto).then_some(uuid::Uuid::from_u128(9));
            let text = chain(&build(&options).unwrap_err());
            for word in words {
                assert!(text.contains(word), "{word:?} is not in: {text}");
            }
            let left: Vec<_> = fs::read_dir(home.path()).unwrap().collect();
            assert_eq!(left.len(), usize::from(force), "{left:?}");
        }
    }
    assert_eq!(fs::read(image_of(&options)).unwrap(), OLD);
}

/// An archive in a directory of its own.
fn archive(write: impl FnOnce(&mut ArchiveWriter)) -> (TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("archive.tar");
    let mut writer = ArchiveWriter::create(&path);
    write(&mut writer);
    writer.finish();
    (home, path)
}

fn ordinary(archive: &mut ArchiveWriter) {
    (0..500).for_each(|number| archive.file(&format!("file-{number}"), &[7; 1000]));
}

#[test]
fn missing_and_strange_sources() {
    let home = tempfile::tempdir().unwrap();
    assert_refused(&home.path().join("nowhere"), &["nowhere", "No such file", "check"]);
    let text = home.path().join("text");
    fs::write(&text, "no archive at all\n".repeat(100)).unwrap();
    assert_refused(&text, &["text", "at byte 0", "chksum"]);
    let empty = home.path().join("empty");
    fs::write(&empty, "").unwrap();
    assert_refused(&empty, &["empty", "truncated"]);
}

#[test]
fn an_unreadable_file() {
    if !kernel::available_or_report() {
        return;
    }
    // Root may read everything, so another user builds.
    let home = tempfile::tempdir().unwrap();
    let program = home.path().join("program");
    // Not by this process: a child that another test starts meanwhile would hold the file open for
    // writing, and it could not be run.
    let own = std::env::current_exe().unwrap();
    assert!(Command::new("cp").arg(own).arg(&program).status().unwrap().success());
    let (tree, output) = (home.path().join("tree"), home.path().join("output"));
    fs::create_dir(&tree).unwrap();
    fs::create_dir(&output).unwrap();
    fs::write(tree.join("secret"), "secret").unwrap();
    for (path, mode) in [
        (home.path(), 0o755),
        (&program, 0o755),
        (&tree, 0o755),
        (&tree.join("secret"), 0o000),
        (&output, 0o777),
    ] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program);
    child::arguments(&mut command, &tree, &output.join("image"));
    let answer = command.current_dir(&output).output().unwrap();
    let text = String::from_utf8_lossy(&answer.stderr);
    assert!(!answer.status.success() && text.contains("PermissionDenied"), "{text}");
    assert_eq!(fs::read_dir(&output).unwrap().count(), 0);
}

#[test]
fn damaged_archives() {
    let (_home, path) = archive(ordinary);
    let bytes = fs::read(&path).unwrap();
    for length in [100, 512, 700, bytes.len() / 2, bytes.len() - 2000] {
        fs::write(&path, &bytes[..length]).unwrap();
        assert_refused(&path, &["archive.tar", "truncated"]);
    }
    let mut wrong = bytes.clone();
    wrong[1536 * 200 + 3] ^= 1;
    fs::write(&path, &wrong).unwrap();
    assert_refused(&path, &["archive.tar", "at byte 307200", "checksum"]);
    for program in ["gzip", "xz", "zstd"] {
        fs::write(&path, &bytes).unwrap();
        let run = Command::new(program).arg("-c").arg(&path).output().unwrap();
        assert!(run.status.success());
        fs::write(&path, &run.stdout[..run.stdout.len() / 2]).unwrap();
        assert_refused(&path, &["archive.tar"]);
        let mut wrong = run.stdout;
        let middle = wrong.len() / 2;
        wrong[middle..middle + 8].copy_from_slice(&[0x55; 8]);
        fs::write(&path, &wrong).unwrap();
        assert_refused(&path, &["archive.tar"]);
    }
}

#[test]
fn names_that_cannot_be() {
    let (_home, path) = archive(|archive| archive.renamed("../outside"));
    assert_refused(&path, &["../outside", "\"..\" component"]);
    let (_home, path) = archive(|archive| archive.renamed("inner/../../outside"));
    assert_refused(&path, &["\"..\" component"]);
    let (_home, path) = archive(|archive| archive.renamed("/etc/passwd"));
    assert_refused(&path, &["/etc/passwd", "absolute"]);
    let (_home, path) = archive(|archive| archive.renamed(&"n".repeat(256)));
    assert_refused(&path, &["256 bytes", "255"]);
    let (_home, path) = archive(|archive| archive.renamed(&"n".repeat(255)));
    let image = path.with_file_name("image");
    build(&options(&path, &image)).unwrap();
}

#[test]
fn links_and_duplicates() {
    let (_home, path) = archive(|archive| archive.link("link", "nowhere"));
    assert_refused(&path, &["link", "nowhere"]);
    let (_home, path) = archive(|archive| {
        archive.file("twice", b"one");
        archive.directory("twice");
    });
    assert_refused(&path, &["twice"]);
    let (_home, path) = archive(|archive| {
        archive.file("both", b"a file");
        archive.file("both/inner", b"in a file");
    });
    assert_refused(&path, &["both"]);
}

#[test]
fn a_full_disk() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let disk = Mounted::new("tmpfs", &["-o", "size=8m"], "none", home.path());
    let tree = tempfile::tempdir().unwrap();
    let file = File::create(tree.path().join("large")).unwrap();
    (0..24).for_each(|at| file.write_all_at(&vec![7; 1 << 20], at << 20).unwrap());
    let mut options = options(tree.path(), &home.path().join("image"));
    for force in [false, true] {
        if force {
            fs::write(image_of(&options), OLD).unwrap();
        }
        options.force = force;
        let error = build(&options).unwrap_err();
        assert!(matches!(error, PackError::HostFull { .. }), "{}", chain(&error));
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), usize::from(force));
    }
    assert_eq!(fs::read(image_of(&options)).unwrap(), OLD);
    drop(disk);
}

/// Something mounted until it is dropped.
struct Mounted(PathBuf);

impl Mounted {
    fn new(kind: &str, arguments: &[&str], what: &str, at: &Path) -> Self {
        let mut command = Command::new("mount");
        assert!(
            command
                .args(["-t", kind])
                .args(arguments)
                .arg(what)
                .arg(at)
                .status()
                .unwrap()
                .success()
        );
        Self(at.to_owned())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(&self.0).status();
        // A second panic would hide the first.
        if !unmounted.is_ok_and(|status| status.success()) {
            eprintln!("{} stays mounted", self.0.display());
        }
    }
}

#[test]
fn targets_that_exist() {
    let (home, source) = archive(ordinary);
    let image = home.path().join("image");
    fs::write(&image, OLD).unwrap();
    let mut options = options(&source, &image);
    let error = build(&options).unwrap_err();
    assert!(matches!(error, PackError::Exists(_)));
    assert_eq!(fs::read(&image).unwrap(), OLD);
    options.force = true;
    build(&options).unwrap();
    assert_ne!(fs::read(&image).unwrap(), OLD);
    options.image = home.path().into();
    assert!(matches!(build(&options).unwrap_err(), PackError::WrongTarget { .. }));
    options.image = home.path().join("no directory/image").into();
    assert!(matches!(build(&options).unwrap_err(), PackError::Target { .. }));
}

#[test]
fn mounted_targets() {
    if !kernel::available_or_report() {
        return;
    }
    let (home, source) = archive(ordinary);
    let mut options = options(&source, &home.path().join("image"));
    build(&options).unwrap();
    let before = fs::read(image_of(&options)).unwrap();
    options.force = true;
    let place = tempfile::tempdir().unwrap();
    let image = image_of(&options).display().to_string();
    let mounted = Mounted::new("xfs", &["-o", "loop,ro,nouuid"], &image, place.path());
    let device = LoopDevice::attached(image_of(&options)).unwrap().remove(0);
    for target in [image_of(&options).to_owned(), device] {
        options.image = target.clone().into();
        let error = build(&options).unwrap_err();
        let PackError::Device(OpenError::Taken(taken)) = &error else {
            panic!("{}", chain(&error))
        };
        assert_eq!(taken.holder, Holder::Mount(place.path().into()));
    }
    drop(mounted);
    assert_eq!(fs::read(home.path().join("image")).unwrap(), before);
}

#[test]
fn a_block_device_that_holds_something_takes_an_image_with_force_only() {
    if !kernel::available_or_report() {
        return;
    }
    let (home, source) = archive(ordinary);
    let backing = home.path().join("backing");
    File::create(&backing).unwrap().set_len(40 << 20).unwrap();
    let device = LoopDevice::attach(&backing).unwrap();
    let mut options = options(&source, device.path());
    build(&options).unwrap();
    let refused = build(&options);
    options.force = true;
    options.size = SizeChoice::Exact(80 << 20);
    let too_large = build(&options);
    options.size = SizeChoice::Auto;
    let built = build(&options);
    drop(device);
    assert!(matches!(refused, Err(PackError::Holds { .. })));
    assert!(
        matches!(too_large, Err(PackError::DeviceTooSmall { available, .. }) if available == 40 << 20)
    );
    assert_eq!(built.unwrap().image_bytes, 40 << 20);
    undercroft_testkit::image::judged::repair(&backing, 40 << 20, &options.volume).unwrap();
}

#[test]
fn a_killed_build_leaves_nothing() {
    use std::io::{BufRead, BufReader};
    let (_home, source) = archive(ordinary);
    for existing in [false, true] {
        let home = tempfile::tempdir().unwrap();
        let image = home.path().join("image");
        if existing {
            fs::write(&image, OLD).unwrap();
        }
        let mut command = Command::new(std::env::current_exe().unwrap());
        child::arguments(&mut command, &source, &image);
        child::pause(&mut command);
        if existing {
            child::force(&mut command);
        }
        let mut running = command.stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(running.stdout.take().unwrap());
        let waits = output.lines().any(|line| line.unwrap().ends_with(child::HALF_DONE));
        running.kill().unwrap();
        running.wait().unwrap();
        assert!(waits);
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), usize::from(existing));
        assert!(!existing || fs::read(&image).unwrap() == OLD);
    }
}
