//! One writer: a file or disk in use is kept from others, under any name.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use undercroft_block::stack::Stripe;
use undercroft_block::{
    BlockDevice, Engine, FileDevice, FileOptions, Holder, OpenError, Sector, Taken, Window,
    mounted_at, write_all_at,
};
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopDevice, LoopMount, Xfsprogs, kernel};

const SIZE: u64 = 320 << 20;

fn image() -> (TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("image");
    fs::File::create(&path).unwrap().set_len(SIZE).unwrap();
    (home, path)
}

/// An image with an empty volume.
fn volume() -> (TempDir, PathBuf) {
    let (home, path) = image();
    Xfsprogs::distribution().unwrap().mkfs(&path, SIZE, &[]).unwrap();
    (home, path)
}

/// The holder that keeps `path` from being opened for change.
fn holder(path: &Path) -> Holder {
    match FileDevice::open(path, false) {
        Err(OpenError::Taken(Taken { name, holder })) => {
            assert_eq!(name, path.display().to_string());
            holder
        }
        other => panic!("{}: {other:?}", path.display()),
    }
}

fn run(program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).status().unwrap();
    assert!(status.success(), "{program} {arguments:?}: {status}");
}

#[test]
fn a_file_is_open_for_change_once() {
    let (home, path) = image();
    let link = home.path().join("link");
    fs::hard_link(&path, &link).unwrap();
    let first = FileDevice::open(&path, false).unwrap();
    assert_eq!(holder(&path), Holder::Program);
    assert_eq!(holder(&link), Holder::Program);
    let message = FileDevice::open(&link, false).unwrap_err().to_string();
    let expected = "link is in use by another program; wait until that is done";
    assert!(message.ends_with(expected), "{message}");
    FileDevice::open(&path, true).unwrap();
    first.check_alone().unwrap();
    drop(first);
    FileDevice::open(&link, false).unwrap();
}

#[test]
fn a_file_that_lost_its_name_is_noticed_through_all_that_stands_on_it() {
    let (home, path) = image();
    let other = home.path().join("other");
    fs::copy(&path, &other).unwrap();
    let open = |path: &Path| Arc::new(FileDevice::open(path, false).unwrap());
    let stripe =
        Stripe::new(4096, vec![open(&path) as Arc<dyn BlockDevice>, open(&other)]).unwrap();
    let window = Window::from_sector(Arc::new(stripe), Sector(8)).unwrap();
    window.check_alone().unwrap();
    fs::rename(&path, &other).unwrap();
    let taken = window.check_alone().unwrap_err();
    assert_eq!(taken, Taken { name: other.display().to_string(), holder: Holder::Nameless });
    // A file without a name from the start has none to lose.
    let file = tempfile::tempfile().unwrap();
    let device = FileDevice::from_file(file, "scratch", &Default::default()).unwrap();
    device.check_alone().unwrap();
}

#[test]
fn a_mounted_file_is_refused_by_every_name() {
    if !kernel::available_or_report() {
        return;
    }
    let (home, path) = volume();
    let link = home.path().join("link");
    fs::hard_link(&path, &link).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let bound = elsewhere.path().to_str().unwrap();
    run("mount", &["--bind", home.path().to_str().unwrap(), bound]);
    let mount = LoopMount::new(&path, Access::ReadOnly, &[]).unwrap();
    let device = LoopDevice::attached(&path).unwrap().remove(0);
    let at = Holder::Mount(mount.path().into());
    let found = [&path, &link, &elsewhere.path().join("image"), &device].map(|path| holder(path));
    let seen = mounted_at(&link);
    let place = mount.path().to_owned();
    mount.unmount().unwrap();
    run("umount", &[bound]);
    assert_eq!(found, [at.clone(), at.clone(), at.clone(), at]);
    assert_eq!(seen, Some(place));
    assert_eq!(mounted_at(&path), None);
    FileDevice::open(&link, false).unwrap();
}

#[test]
fn a_mount_in_another_namespace_is_found_by_its_device() {
    if !kernel::available_or_report() {
        return;
    }
    let (home, path) = volume();
    let device = LoopDevice::attach(&path).unwrap();
    let place = home.path().join("place");
    fs::create_dir(&place).unwrap();
    // Its mounts are private; it says when they are there, and goes when its input ends.
    let mut other = Command::new("unshare")
        .args([
            "--mount",
            "sh",
            "-c",
            "mount -o ro,norecovery \"$1\" \"$2\" && echo there && read line",
            "sh",
        ])
        .args([device.path(), &place])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = [0; 6];
    std::io::Read::read_exact(other.stdout.as_mut().unwrap(), &mut line).unwrap();
    assert_eq!(mounted_at(&path), None, "it can be seen here");
    let found = [holder(&path), holder(device.path())];
    drop(other.stdin.take());
    other.wait().unwrap();
    assert_eq!(found, [Holder::Device(device.path().into()), Holder::Program]);
    FileDevice::open(&path, false).unwrap();
}

#[test]
fn a_mounted_partition_keeps_its_disk() {
    if !kernel::available_or_report() {
        return;
    }
    let (home, path) = image();
    let device = LoopDevice::attach(&path).unwrap();
    let loop_path = device.path().to_str().unwrap();
    // Without a table, which this kernel need not know.
    run("addpart", &[loop_path, "1", "2048", &(SIZE / 512 - 2048).to_string()]);
    let partition = format!("{loop_path}p1");
    run("mkfs.xfs", &["-q", "-f", &partition]);
    let place = home.path().join("place");
    fs::create_dir(&place).unwrap();
    run("mount", &[&partition, place.to_str().unwrap()]);
    let found = [path.as_path(), device.path(), Path::new(&partition)].map(holder);
    run("umount", &[place.to_str().unwrap()]);
    run("delpart", &[loop_path, "1"]);
    assert_eq!(found, [0; 3].map(|_| Holder::Mount(place.clone())));
}

#[test]
fn a_loop_device_and_its_file_are_one() {
    if !kernel::available_or_report() {
        return;
    }
    let (_home, path) = image();
    let device = LoopDevice::attach(&path).unwrap();
    let on_disk = FileDevice::open(device.path(), false).unwrap();
    let found = holder(&path);
    drop(on_disk);
    let on_file = FileDevice::open(&path, false).unwrap();
    let other = holder(device.path());
    drop(on_file);
    assert_eq!(found, Holder::Device(device.path().into()));
    assert_eq!(other, Holder::Program);
    FileDevice::open(device.path(), false).unwrap();
}

#[test]
fn a_mount_that_comes_later_is_refused_or_noticed() {
    if !kernel::available_or_report() {
        return;
    }
    let (_home, path) = volume();
    let device = FileDevice::open(&path, false).unwrap();
    device.check_alone().unwrap();
    let mount = LoopMount::new(&path, Access::ReadOnly, &[]).unwrap();
    let taken = device.check_alone();
    let at = mount.path().to_owned();
    mount.unmount().unwrap();
    assert_eq!(taken.unwrap_err().holder, Holder::Mount(at));
    device.check_alone().unwrap();
    // A loop device that was there for a moment is held: the kernel cannot mount it any more.
    let attached = LoopDevice::attach(&path).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    device.check_alone().unwrap();
    let place = tempfile::tempdir().unwrap();
    let status = Command::new("mount").arg(attached.path()).arg(place.path()).output().unwrap();
    if status.status.success() {
        run("umount", &[place.path().to_str().unwrap()]);
    }
    drop(device);
    assert!(!status.status.success(), "it was mounted");
}

#[test]
fn a_device_that_was_dropped_is_free_at_once() {
    let kernel = kernel::available_or_report();
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = home.path().join("image");
    fs::File::create(&path).unwrap().set_len(SIZE).unwrap();
    let engines = [Engine::Threads, Engine::Uring];
    let again = |path: &Path, rounds| {
        for round in 0..rounds {
            for (engine, direct) in
                engines.iter().flat_map(|engine| [(engine, false), (engine, true)])
            {
                let options = FileOptions { engine: *engine, direct, ..FileOptions::default() };
                let device = FileDevice::open_with(path, &options)
                    .unwrap_or_else(|error| panic!("round {round}, {engine:?}: {error}"));
                write_all_at(&device, Sector(8), &[round; 4096]).unwrap();
            }
        }
    };
    again(&path, 20);
    if kernel {
        let device = LoopDevice::attach(&path).unwrap();
        again(device.path(), 20);
    }
}
