//! Whole trees that are copied into a volume: of this machine, and of another volume.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, XattrFlags, makedev, mknodat, setxattr};
use undercroft_judges::mount::Access;
use undercroft_judges::tree::{Options, compare};
use undercroft_judges::{LoopMount, kernel};

use crate::run::{Sample, fails, sample, says, succeeds};

/// An access list: the user 1234 may read and write, as `setfacl -m u:1234:rw` makes it.
const ACL: &[u8] = b"\x02\0\0\0\x01\0\x06\0\xff\xff\xff\xff\x02\0\x06\0\xd2\x04\0\0\
    \x04\0\x04\0\xff\xff\xff\xff\x10\0\x06\0\xff\xff\xff\xff\x20\0\x04\0\xff\xff\xff\xff";

/// A tree with all that a directory can hold.
fn tree(at: &Path) {
    let path = |name: &str| at.join(name);
    for directory in ["shared", "deep/er", "deep/empty"] {
        fs::create_dir_all(path(directory)).unwrap();
    }
    fs::write(path("deep/file"), "text").unwrap();
    fs::write(path("deep/er/large"), vec![7; 3_000_000]).unwrap();
    fs::write(path("odd\n'name'"), "").unwrap();
    fs::hard_link(path("deep/file"), path("again")).unwrap();
    symlink("deep/file", path("link")).unwrap();
    symlink("/nowhere", path("dangling")).unwrap();
    File::create(path("hole")).unwrap().set_len(1 << 30).unwrap();
    UnixListener::bind(path("socket")).unwrap();
    let mode = Mode::from_raw_mode(0o640);
    for (name, kind, device) in [
        ("pipe", FileType::Fifo, makedev(0, 0)),
        ("null", FileType::CharacterDevice, makedev(1, 3)),
        ("disk", FileType::BlockDevice, makedev(259, 1000)),
    ] {
        mknodat(CWD, path(name), kind, mode, device).unwrap();
    }
    let set = |name: &str, attribute: &str, value: &[u8]| {
        setxattr(path(name), attribute, value, XattrFlags::empty()).unwrap();
    };
    set("deep/file", "user.comment", b"short");
    set("deep/er", "user.long", &[9; 3000]);
    set("deep/er/large", "system.posix_acl_access", ACL);
    set("deep", "system.posix_acl_default", ACL);
    chown(path("deep/er/large"), Some(1234), Some(4321)).unwrap();
    let mode = |name: &str, mode| {
        fs::set_permissions(path(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("hole", 0o4711);
    mode("shared", 0o2775);
    let old = std::time::UNIX_EPOCH + std::time::Duration::new(1_000_000_000, 7);
    for name in ["deep/file", "deep/er", "deep/empty"] {
        File::open(path(name)).unwrap().set_modified(old).unwrap();
    }
}

/// A volume, and a tree beside it.
fn volume() -> Option<Sample> {
    kernel::available_or_report().then(|| {
        let sample = sample(&["--size", "96M"]);
        tree(Path::new(&sample.path("whole")));
        sample
    })
}

/// Compares a directory of a volume with one of this machine, by the kernel's eyes.
#[track_caller]
fn same(image: &str, path: &str, tree: &str) {
    succeeds(["check", image]);
    let mount = LoopMount::new(Path::new(image), Access::ReadOnly, &[]).unwrap();
    let there = mount.path().join(path);
    compare(Path::new(tree), &there, &Options::default()).unwrap().assert_same();
}

#[test]
fn put_keeps_all_that_a_directory_has() {
    let Some(sample) = volume() else { return };
    let whole = sample.path("whole");
    let said = succeeds(["put", "-r", &sample.image, &whole, "/etc"]);
    assert!(said.starts_with("/etc/whole: 16 entries, 2.9 MiB of data"), "{said}");
    // Under another name, and what is in it.
    succeeds(["put", "-r", &sample.image, &whole, "/new"]);
    succeeds(["mkdir", &sample.image, "/inside"]);
    let inside = format!("{whole}/.");
    let json = succeeds(["put", "-r", "--json", &sample.image, &inside, "/inside"]);
    assert_eq!(json, "{\"name\":\"/inside\",\"entries\":16,\"bytes\":3000004}\n");
    // Once more, over itself.
    succeeds(["put", "-r", "--force", &sample.image, &inside, "/inside"]);
    for path in ["etc/whole", "new", "inside"] {
        same(&sample.image, path, &whole);
    }
    succeeds(["put", "-r", "--owner", "7:8", &sample.image, &whole, "/owned"]);
    let found = succeeds(["find", &sample.image, "/owned", "!", "-user", "7"]);
    assert_eq!(found, "");
}

#[test]
fn put_finds_what_is_in_its_way_before_it_changes_anything() {
    let Some(sample) = volume() else { return };
    let (whole, image) = (sample.path("whole"), &sample.image);
    succeeds(["put", "-r", image, &whole, "/"]);
    let before = succeeds(["ls", "-lR", image]);
    let message = fails(1, ["put", "-r", image, &whole, "/"]);
    assert!(message.contains("exists; nothing was changed; use --force"), "{message}");
    let file = format!("{whole}/deep/er");
    fs::remove_dir_all(&file).unwrap();
    fs::write(&file, "no directory").unwrap();
    let message = fails(1, ["put", "-rf", image, &whole, "/"]);
    assert!(message.contains("deep/er is a directory in the volume"), "{message}");
    fs::remove_file(&file).unwrap();
    fs::write(&file, vec![1; 100 << 20]).unwrap();
    let message = fails(1, ["put", "-r", image, &whole, "/other"]);
    assert!(message.contains("bytes free; nothing was changed"), "{message}");
    assert_eq!(succeeds(["ls", "-lR", image]), before);
    let message = fails(1, ["put", image, &whole, "/"]);
    assert!(message.contains("is a directory; use -r"), "{message}");
    fails(1, ["put", "-r", image, &whole, "/nowhere/below"]);
    fails(2, ["put", "-r", "--preserve", image, &whole, "/"]);
}

#[test]
fn copy_takes_a_directory_of_another_volume() {
    let Some(sample) = volume() else { return };
    let (whole, other) = (sample.path("whole"), sample.path("other.img"));
    succeeds(["put", "-r", &sample.image, &whole, "/etc"]);
    succeeds(["mkfs", "--size", "64M", &other]);
    let at = |image: &str, path: &str| format!("{image}:{path}");
    succeeds(["copy", &at(&sample.image, "/etc/whole"), &at(&other, "/")]);
    succeeds(["copy", &at(&sample.image, "/etc/whole/."), &at(&other, "/new")]);
    for path in ["whole", "new"] {
        same(&other, path, &whole);
    }
    let message = fails(1, ["copy", &at(&sample.image, "/etc/whole"), &at(&other, "/")]);
    assert!(message.contains("nothing was changed"), "{message}");
    succeeds(["copy", "--force", &at(&sample.image, "/etc/whole"), &at(&other, "/")]);
    let message = fails(2, ["copy", &at(&sample.image, "/etc"), &at(&sample.image, "/")]);
    assert!(message.contains("both paths are on one volume"), "{message}");
    let message = fails(1, ["copy", &at(&sample.image, "/etc/hosts"), &at(&other, "/")]);
    assert!(message.contains("not a directory"), "{message}");
    let message = fails(2, ["copy", &sample.image, &other]);
    assert!(message.contains("write IMAGE:/PATH"), "{message}");
    assert_eq!(says(["check", &other]), "");
}

#[test]
fn an_image_does_not_go_into_itself() {
    let sample = sample(&["--size", "64M"]);
    let directory = Path::new(&sample.image).parent().unwrap();
    fs::write(directory.join("beside"), "text").unwrap();
    let name = Path::new(&sample.image).file_name().unwrap().to_str().unwrap().to_owned();
    let inside = |path: &str| format!("{path}/.");
    succeeds(["put", "-r", &sample.image, &inside(directory.to_str().unwrap()), "/copied"]);
    let list = succeeds(["ls", &sample.image, "/copied"]);
    assert!(list.contains("beside") && !list.lines().any(|line| line == name), "{list}");
    // By another path, too.
    fs::create_dir(directory.join("linked")).unwrap();
    let here = format!("{}/linked/../{name}", directory.display());
    succeeds(["put", "-r", &here, &inside(directory.to_str().unwrap()), "/again"]);
    let list = succeeds(["ls", &sample.image, "/again"]);
    assert!(list.contains("beside") && !list.lines().any(|line| line == name), "{list}");
}
