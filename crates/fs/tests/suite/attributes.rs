//! The metadata of files.

use crate::volumes::{NOW, create, fresh};
use undercroft_fs::{
    Change, Error, FileType, InodeFlags, NewFile, SetMode, SetTime, Timestamp, Writer,
};

const THEN: Timestamp = Timestamp { seconds: 1_000_000_000, nanoseconds: 7 };

#[test]
fn a_change_changes_what_it_names() {
    let fs = fresh();
    let file = create(&fs, fs.root(), "file");
    let before = file.metadata();
    let change = Change {
        mode: Some(0o4711),
        uid: Some(11),
        gid: Some(12),
        size: Some(10_000),
        accessed: Some(SetTime::To(THEN)),
        modified: Some(SetTime::Now),
        changed: None,
        created: Some(SetTime::To(THEN)),
        project: Some(5),
        flags: Some(InodeFlags::NODUMP),
        direct_access: Some(true),
        extent_size: Some(65_536),
        copy_extent_size: Some(131_072),
    };
    let after = fs.nodes().set_attributes(file.number(), &change).unwrap();
    assert_eq!((after.mode, after.uid, after.gid, after.size), (0o4711, 11, 12, 10_000));
    assert_eq!((after.accessed, after.modified, after.created), (THEN, NOW, THEN));
    assert_eq!((after.project, after.extent_size, after.copy_extent_size), (5, 65_536, 131_072));
    assert!(after.flags.contains(InodeFlags::NODUMP | InodeFlags::EXTSIZE) && after.direct_access);
    assert_eq!(after, file.metadata());
    assert_eq!((after.number, after.generation), (before.number, before.generation));
    // Another owner takes setuid away.
    let after = file.set_attributes(&Change { uid: Some(1), ..Change::default() }).unwrap();
    assert_eq!(after.mode, 0o711);
    let none = fs.nodes().set_attributes(file.number(), &Change::default()).unwrap();
    assert_eq!(none, after);
}

#[test]
fn values_that_a_file_cannot_have_are_refused() {
    let fs = fresh();
    let file = create(&fs, fs.root(), "file");
    let refused = [
        Change { mode: Some(0o100_644), ..Change::default() },
        Change { flags: Some(InodeFlags::REALTIME), ..Change::default() },
        Change { flags: Some(InodeFlags::PROJINHERIT), ..Change::default() },
        Change { extent_size: Some(1000), ..Change::default() },
        Change { size: Some(u64::MAX), ..Change::default() },
    ];
    let before = file.metadata();
    for change in refused {
        assert!(fs.nodes().set_attributes(file.number(), &change).is_err(), "{change:?}");
    }
    assert_eq!(file.metadata(), before);
    // Data that is in memory alone will have space of another size.
    let hint = Change { extent_size: Some(65_536), ..Change::default() };
    file.write_at(0, b"x").unwrap();
    assert!(matches!(file.set_attributes(&hint), Err(Error::Invalid(_))));
    file.set_attributes(&Change { size: Some(0), ..Change::default() }).unwrap();
    file.set_attributes(&hint).unwrap();
    let size = Change { size: Some(0), ..Change::default() };
    assert!(matches!(fs.nodes().set_attributes(fs.root(), &size), Err(Error::WrongKind { .. })));
    assert!(fs.nodes().stat(fs.root()).unwrap().size > 0);
}

#[test]
fn attributes_are_new_or_there_as_asked() {
    let fs = fresh();
    let number = create(&fs, fs.root(), "file").number();
    let set = |value: &[u8], mode| fs.nodes().set_xattr(number, b"user.colour", value, mode);
    assert!(set(b"red", SetMode::Replace).is_err());
    set(b"red", SetMode::Create).unwrap();
    assert!(matches!(set(b"blue", SetMode::Create), Err(Error::Exists(_))));
    set(b"blue", SetMode::Replace).unwrap();
    assert_eq!(fs.nodes().get_xattr(number, b"user.colour").unwrap().unwrap(), b"blue");
    set(&[1; 60_000], SetMode::Either).unwrap();
    fs.nodes().set_xattr(number, b"trusted.x", b"", SetMode::Either).unwrap();
    let mut names = fs.nodes().list_xattrs(number).unwrap();
    names.sort();
    assert_eq!(names, [&b"trusted.x"[..], b"user.colour"]);
    assert!(fs.nodes().remove_xattr(number, b"user.colour").unwrap());
    assert!(!fs.nodes().remove_xattr(number, b"user.colour").unwrap());
    assert_eq!(fs.nodes().get_xattr(number, b"user.colour").unwrap(), None);
    assert!(fs.nodes().get_xattr(number, b"other.x").is_err());
    assert!(set(&[1; 70_000], SetMode::Either).is_err());
    let none = undercroft_fs::DeviceNumber { major: 0, minor: 0 };
    let pipe =
        fs.nodes().mknod(fs.root(), b"pipe", FileType::Fifo, none, &NewFile::new(0o600)).unwrap();
    assert!(fs.nodes().set_xattr(pipe.number, b"user.x", b"", SetMode::Either).is_err());
}

/// An access list as Linux gives it to programs: version 2, then tag, permissions and id of each.
fn list(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(permissions.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

#[test]
fn access_lists_and_modes_follow_each_other() {
    const NOBODY: u32 = u32::MAX;
    let fs = fresh();
    let file = create(&fs, fs.root(), "file");
    let access = b"system.posix_acl_access";
    let full =
        list(&[(1, 6, NOBODY), (2, 4, 1000), (4, 4, NOBODY), (0x10, 6, NOBODY), (0x20, 0, NOBODY)]);
    fs.nodes().set_xattr(file.number(), access, &full, SetMode::Either).unwrap();
    assert_eq!(file.metadata().mode, 0o660);
    assert_eq!(fs.nodes().get_xattr(file.number(), access).unwrap().unwrap(), full);
    file.set_attributes(&Change { mode: Some(0o640), ..Change::default() }).unwrap();
    let masked = fs.nodes().get_xattr(file.number(), access).unwrap().unwrap();
    assert_eq!(masked[4 + 3 * 8 + 2], 4, "the mask follows the mode");
    // One that says no more than the mode is not stored.
    let minimal = list(&[(1, 7, NOBODY), (4, 5, NOBODY), (0x20, 5, NOBODY)]);
    fs.nodes().set_xattr(file.number(), access, &minimal, SetMode::Either).unwrap();
    assert_eq!(file.metadata().mode, 0o755);
    assert_eq!(fs.nodes().get_xattr(file.number(), access).unwrap(), None);
    let default = b"system.posix_acl_default";
    assert!(fs.nodes().set_xattr(file.number(), default, &full, SetMode::Either).is_err());
    let directory = fs.nodes().mkdir(fs.root(), b"directory", &NewFile::new(0o777)).unwrap();
    fs.nodes().set_xattr(directory.number, default, &full, SetMode::Either).unwrap();
    let inside = create(&fs, directory.number, "inside");
    assert!(fs.nodes().get_xattr(inside.number(), access).unwrap().is_some());
    assert!(
        fs.nodes().set_xattr(file.number(), access, b"\x02\0\0\0rubbish", SetMode::Either).is_err()
    );
}

#[test]
fn privileges_are_dropped() {
    let fs = fresh();
    let file = create(&fs, fs.root(), "file");
    file.set_attributes(&Change { mode: Some(0o6755), ..Change::default() }).unwrap();
    let capability = b"security.capability";
    fs.nodes().set_xattr(file.number(), capability, b"any", SetMode::Either).unwrap();
    let stranger = || Writer { keeps_set_id: false, is_in_group: false };
    let member = || Writer { is_in_group: true, ..stranger() };
    assert!(file.drop_privileges(|| Writer { keeps_set_id: true, ..stranger() }).unwrap());
    assert_eq!(file.metadata().mode, 0o6755);
    assert_eq!(fs.nodes().get_xattr(file.number(), capability).unwrap(), None);
    // A flag that forbids changes keeps nothing.
    let append = |flags| Change { flags: Some(flags), ..Change::default() };
    file.set_attributes(&append(InodeFlags::APPEND)).unwrap();
    assert!(file.drop_privileges(member).unwrap());
    assert_eq!(file.metadata().mode, 0o755);
    file.set_attributes(&append(InodeFlags::empty())).unwrap();
    // A setgid bit without the right to execute is something else.
    file.set_attributes(&Change { mode: Some(0o2644), ..Change::default() }).unwrap();
    let before = file.metadata();
    assert!(!file.drop_privileges(member).unwrap());
    assert_eq!(file.metadata(), before);
    assert!(file.drop_privileges(stranger).unwrap());
    assert_eq!(file.metadata().mode, 0o644);
    assert!(!file.drop_privileges(|| unreachable!("it has no such bits")).unwrap());
    fs.close().unwrap();
}
