//! The comparison sees every field: two equal trees are the same, and each single change is
//! reported with its path and field.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, Timespec, Timestamps, Uid, XattrFlags, makedev, mknodat,
    setxattr, utimensat,
};
use tempfile::TempDir;
use undercroft_judges::kernel;
use undercroft_judges::tree::{Comparison, Field, Holes, Options, compare};

/// A small tree with one entry of each kind, made the same way every time.
fn tree() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    fs::create_dir(root.join("directory")).unwrap();
    fs::write(root.join("directory/file"), vec![7; 600_000]).unwrap();
    fs::hard_link(root.join("directory/file"), root.join("name")).unwrap();
    fs::write(root.join("twin"), "alike").unwrap();
    fs::hard_link(root.join("twin"), root.join("twin2")).unwrap();
    symlink("directory/file", root.join("link")).unwrap();
    mknodat(CWD, root.join("fifo"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let sparse = File::create(root.join("sparse")).unwrap();
    sparse.set_len(1 << 30).unwrap();
    sparse.write_all_at(&[1; 4096], 1 << 20).unwrap();
    sparse.write_all_at(&[2; 4096], 1 << 29).unwrap();
    for name in ["directory/file", "twin", "link", "fifo", "sparse", "directory", ""] {
        touch(&root.join(name), 1_000_000_000, 123_456_789);
    }
    directory
}

fn touch(path: &Path, seconds: i64, nanoseconds: i64) {
    let time = Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let times = Timestamps { last_access: time, last_modification: time };
    utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

/// The outcome for a fresh tree and one that `change` was applied to.
fn after(change: impl FnOnce(&Path)) -> Comparison {
    let (left, right) = (tree(), tree());
    change(right.path());
    compare(left.path(), right.path(), &Options::default()).unwrap()
}

/// Asserts that `change` is seen as exactly one difference.
fn one(path: &str, field: &Field, change: impl FnOnce(&Path)) {
    let found = after(|root| {
        change(root);
        // Undo what the change did to the times of the directories it worked in.
        for name in ["directory", ""] {
            touch(&root.join(name), 1_000_000_000, 123_456_789);
        }
    });
    let seen: Vec<_> =
        found.differences.iter().map(|found| (found.path.as_path(), &found.field)).collect();
    assert_eq!(seen, [(Path::new(path), field)], "{found}");
}

#[test]
fn equal_trees_are_the_same() {
    let found = after(|_| ());
    found.assert_same();
    assert_eq!(found.entries, 9);
    // A file with two names is read once, and a hole not at all.
    assert_eq!(found.bytes, 600_000 + 5 + 2 * 4096);
}

#[test]
fn presence_and_kind() {
    one("fifo", &Field::Kind, |root| {
        fs::remove_file(root.join("fifo")).unwrap();
        fs::create_dir(root.join("fifo")).unwrap();
    });
    one("extra", &Field::Presence, |root| fs::write(root.join("extra"), "").unwrap());
    one("fifo", &Field::Presence, |root| fs::remove_file(root.join("fifo")).unwrap());
}

#[test]
fn mode_times_and_target() {
    one("fifo", &Field::Mode, |root| {
        fs::set_permissions(root.join("fifo"), fs::Permissions::from_mode(0o4600)).unwrap();
    });
    one("link", &Field::Mtime, |root| touch(&root.join("link"), 1_000_000_000, 123_456_788));
    one("sparse", &Field::Mtime, |root| touch(&root.join("sparse"), -1, 123_456_789));
    one("link", &Field::Target, |root| {
        fs::remove_file(root.join("link")).unwrap();
        symlink("directory/fil", root.join("link")).unwrap();
        touch(&root.join("link"), 1_000_000_000, 123_456_789);
    });
}

#[test]
fn times_on_request() {
    let (left, right) = (tree(), tree());
    let time = Timespec { tv_sec: 5, tv_nsec: 0 };
    let kept = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
    let times = Timestamps { last_access: time, last_modification: kept };
    utimensat(CWD, right.path().join("twin"), &times, AtFlags::empty()).unwrap();
    let options = Options { atime: true, ..Options::default() };
    let found = compare(left.path(), right.path(), &options).unwrap();
    assert!(found.differences.iter().any(|found| found.field == Field::Atime), "{found}");
    // Change times have the grain of the kernel's clock: wait for its next tick.
    let ctime = |root: &TempDir| {
        let metadata = fs::metadata(root.path().join("twin")).unwrap();
        (metadata.ctime(), metadata.ctime_nsec())
    };
    while ctime(&left) == ctime(&right) {
        let mode = fs::Permissions::from_mode(0o644);
        fs::set_permissions(right.path().join("twin"), mode).unwrap();
    }
    let options = Options { ctime: true, ..Options::default() };
    let found = compare(left.path(), right.path(), &options).unwrap();
    assert!(found.differences.iter().any(|found| found.field == Field::Ctime), "{found}");
}

#[test]
fn sizes_contents_and_holes() {
    let keep = |path: &Path| touch(path, 1_000_000_000, 123_456_789);
    one("directory/file", &Field::Contents, |root| {
        let path = root.join("directory/file");
        File::options().write(true).open(&path).unwrap().write_all_at(&[8], 599_999).unwrap();
        keep(&path);
    });
    one("twin", &Field::Size, |root| {
        File::options().write(true).open(root.join("twin")).unwrap().set_len(6).unwrap();
        keep(&root.join("twin"));
    });
    one("sparse", &Field::Holes, |root| {
        let path = root.join("sparse");
        let file = File::options().write(true).open(&path).unwrap();
        file.write_all_at(&[0; 4096], 1 << 21).unwrap();
        keep(&path);
    });
    one("sparse", &Field::Contents, |root| {
        let path = root.join("sparse");
        let file = File::options().write(true).open(&path).unwrap();
        file.write_all_at(&[3], (1 << 29) + 17).unwrap();
        keep(&path);
    });
}

#[test]
fn blocks_instead_of_maps() {
    let (left, right) = (tree(), tree());
    let file = File::options().write(true).open(right.path().join("sparse")).unwrap();
    file.write_all_at(&[0; 4096], 1 << 21).unwrap();
    touch(&right.path().join("sparse"), 1_000_000_000, 123_456_789);
    let found = |holes| {
        let options = Options { holes, ..Options::default() };
        compare(left.path(), right.path(), &options).unwrap()
    };
    assert_eq!(found(Holes::Blocks).differences[0].field, Field::Holes);
    found(Holes::Ignore).assert_same();
}

#[test]
fn hard_links() {
    // Both pairs keep their two names, contents and times; only the pairing of the names changes.
    let found = after(|root| {
        fs::remove_file(root.join("twin2")).unwrap();
        fs::hard_link(root.join("name"), root.join("twin2")).unwrap();
    });
    assert!(found.differences.iter().any(|found| found.field == Field::LinkGroup), "{found}");
    assert!(found.differences.iter().any(|found| found.field == Field::Links), "{found}");
}

#[test]
fn attributes() {
    let name = "user.note";
    one("sparse", &Field::Attribute(name.into()), |root| {
        setxattr(root.join("sparse"), name, b"", XattrFlags::empty()).unwrap();
    });
    let (left, right) = (tree(), tree());
    setxattr(left.path().join("twin"), name, b"one", XattrFlags::empty()).unwrap();
    setxattr(right.path().join("twin"), name, b"two", XattrFlags::empty()).unwrap();
    let found = compare(left.path(), right.path(), &Options::default()).unwrap();
    assert_eq!(found.differences[0].field, Field::Attribute(name.into()));
    assert_eq!(found.differences[0].left, "3 bytes \"one\"");
}

#[test]
fn what_only_root_can_make() {
    if !kernel::available_or_report() {
        return;
    }
    let owner = |uid, gid| {
        move |root: &Path| {
            let (uid, gid): (Option<Uid>, Option<Gid>) = (uid, gid);
            rustix::fs::chownat(CWD, root.join("link"), uid, gid, AtFlags::SYMLINK_NOFOLLOW)
                .unwrap();
        }
    };
    one("link", &Field::Uid, owner(Some(Uid::from_raw(4_000_000_000)), None));
    one("link", &Field::Gid, owner(None, Some(Gid::from_raw(7))));
    let device = |root: &Path, minor| {
        let path = root.join("device");
        let mode = Mode::from_raw_mode(0o600);
        mknodat(CWD, &path, FileType::CharacterDevice, mode, makedev(5, minor)).unwrap();
        touch(&path, 1, 1);
        touch(root, 1, 1);
    };
    let (left, right) = (tree(), tree());
    device(left.path(), 1);
    device(right.path(), 70_000);
    let found = compare(left.path(), right.path(), &Options::default()).unwrap();
    assert_eq!(found.differences[0].field, Field::Device, "{found}");
    one("link", &Field::Attribute("trusted.t".into()), |root| {
        rustix::fs::lsetxattr(root.join("link"), "trusted.t", b"x", XattrFlags::empty()).unwrap();
    });
}

#[test]
fn differences_beyond_the_limit_are_counted() {
    let (left, right) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for number in 0..30 {
        fs::write(left.path().join(number.to_string()), "").unwrap();
    }
    let options = Options { limit: 3, root: false, ..Options::default() };
    let found = compare(left.path(), right.path(), &options).unwrap();
    assert_eq!((found.count, found.differences.len()), (30, 3));
}

#[test]
fn a_missing_tree_is_an_error() {
    let left = tempfile::tempdir().unwrap();
    let missing = left.path().join("nothing");
    let error = compare(left.path(), &missing, &Options::default()).unwrap_err().to_string();
    assert!(error.contains("nothing"), "{error}");
}
