//! Extraction by an ordinary user: contents are right, and files and attributes that the system
//! does not allow are counted and reported.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt, chown, lchown, symlink};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, XattrFlags, makedev, mknodat, setxattr};
use serde_json::Value;
use undercroft_judges::tree::{Difference, Field, Options, compare};
use undercroft_judges::{Scratch, kernel};

use crate::run::{as_nobody, succeeds};

const NOBODY: u32 = 65_534;

/// A tree of root's, in which `mine` belongs to the extracting user.
fn tree(root: &Path) {
    fs::create_dir_all(root.join("closed/deeper")).unwrap();
    fs::write(root.join("closed/deeper/file"), vec![1; 100_000]).unwrap();
    fs::set_permissions(root.join("closed"), fs::Permissions::from_mode(0o500)).unwrap();
    fs::write(root.join("secret"), "secret").unwrap();
    fs::set_permissions(root.join("secret"), fs::Permissions::from_mode(0o000)).unwrap();
    fs::write(root.join("setuid"), "program").unwrap();
    fs::set_permissions(root.join("setuid"), fs::Permissions::from_mode(0o4755)).unwrap();
    let sparse = File::create(root.join("sparse")).unwrap();
    sparse.set_len(10 << 20).unwrap();
    sparse.write_all_at(&[7; 65_536], 1 << 20).unwrap();
    fs::hard_link(root.join("secret"), root.join("closed/name")).unwrap();
    symlink("secret", root.join("symlink")).unwrap();
    let mode = Mode::from_raw_mode(0o640);
    mknodat(CWD, root.join("fifo"), FileType::Fifo, mode, 0).unwrap();
    mknodat(CWD, root.join("null"), FileType::CharacterDevice, mode, makedev(1, 3)).unwrap();
    fs::hard_link(root.join("null"), root.join("null-too")).unwrap();
    fs::write(root.join("mine"), "mine").unwrap();
    chown(root.join("mine"), Some(NOBODY), Some(NOBODY)).unwrap();
    fs::set_permissions(root.join("mine"), fs::Permissions::from_mode(0o6755)).unwrap();
    symlink("mine", root.join("link-of-mine")).unwrap();
    lchown(root.join("link-of-mine"), Some(NOBODY), Some(NOBODY)).unwrap();
    let none = XattrFlags::empty();
    setxattr(root.join("mine"), "user.kept", b"kept", none).unwrap();
    setxattr(root.join("mine"), "trusted.root", b"root's", none).unwrap();
    setxattr(root.join("setuid"), "trusted.root", b"root's", none).unwrap();
}

#[test]
fn extraction_without_root() {
    if !kernel::available_or_report() {
        return;
    }
    let source = Scratch::new(64 << 20).unwrap();
    let original = source.path().join("tree");
    tree(&original);
    let home = tempfile::tempdir().unwrap();
    let image = home.path().join("image").display().to_string();
    succeeds(["build", &original.display().to_string(), &image]);
    fs::set_permissions(&image, fs::Permissions::from_mode(0o644)).unwrap();
    // A volume of its own, so that no limit of another file system counts.
    let place = Scratch::new(64 << 20).unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let destination = place.path().join("extracted");
    fs::create_dir(&destination).unwrap();
    chown(&destination, Some(NOBODY), Some(NOBODY)).unwrap();

    let mut command = as_nobody(home.path());
    let answer = command.args(["extract", "--json", &image]).arg(&destination).output().unwrap();
    let notes = String::from_utf8(answer.stderr).unwrap();
    assert!(answer.status.success(), "{notes}");
    let summary: Value = serde_json::from_slice(&answer.stdout).unwrap();
    // Everything but `mine`, its link, and the device, which is not there to have an owner.
    for (key, count) in [
        ("files", 5),
        ("directories", 3),
        ("symlinks", 2),
        ("hard_links", 2),
        ("owners_not_set", 9),
        ("attributes_not_set", 2),
        ("specials_not_made", 1),
    ] {
        assert_eq!(summary[key], count, "{key} in {summary}");
    }
    assert_eq!(
        notes,
        "note: 9 owners could not be set (root may)\n\
         note: 2 extended attributes could not be set\n\
         note: 1 special files could not be made\n"
    );
    let options = Options { limit: 1000, ..Options::default() };
    let found = compare(&original, &destination, &options).unwrap();
    let unexpected: Vec<_> =
        found.differences.iter().filter(|difference| !may_differ(difference)).collect();
    assert!(unexpected.is_empty(), "{unexpected:#?}");
    let mode = |name| fs::metadata(destination.join(name)).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode("setuid"), mode("mine")), (0o755, 0o6755));
    assert!(!destination.join("null").exists() && !destination.join("null-too").exists());
}

/// What a user without rights cannot have as it was.
fn may_differ(difference: &Difference) -> bool {
    let path = difference.path.as_path();
    match &difference.field {
        Field::Uid | Field::Gid => !path.ends_with("mine") && !path.ends_with("link-of-mine"),
        // Another owner's program does not run with the rights of the extracting user.
        Field::Mode => path == Path::new("setuid"),
        Field::Presence => path == Path::new("null") || path == Path::new("null-too"),
        Field::Attribute(name) => name == "trusted.root",
        _ => false,
    }
}
