//! Names made, moved and taken away, by number.

use crate::volumes::{NOW, close_and_check, contents, create, fresh, memory, open};
use undercroft_fs::{
    DeviceNumber, Error, Existing, FileSystem, FileType, NewFile, OpenOptions, Owner, RenameFlags,
};

#[test]
fn creating_refuses_or_opens_existing_files() {
    let fs = fresh();
    let new = NewFile::new(0o640).owned_by(7, 8);
    let (made, file) = fs.nodes().create(fs.root(), b"file", &new, Existing::Refuse).unwrap();
    assert_eq!((made.mode, made.uid, made.gid, made.nlink), (0o640, 7, 8, 1));
    assert_eq!((made.kind, made.size, made.created), (FileType::Regular, 0, NOW));
    file.write_at(0, b"kept").unwrap();
    let again = fs.nodes().create(fs.root(), b"file", &new, Existing::Refuse);
    assert!(matches!(again, Err(Error::Exists(_))));
    let (found, same) = fs.nodes().create(fs.root(), b"file", &new, Existing::Open).unwrap();
    assert_eq!((found.number, found.size), (made.number, 4));
    assert_eq!(contents(&same), b"kept");
    let (other, _) = fs.nodes().create(fs.root(), b"other", &new, Existing::Open).unwrap();
    assert_ne!(other.number, made.number);
}

#[test]
fn names_that_cannot_be_are_refused() {
    let fs = fresh();
    let new = NewFile::new(0o600);
    for name in [&b""[..], b".", b"..", b"a/b", b"a\0b", &[b'x'; 256]] {
        assert!(fs.nodes().create(fs.root(), name, &new, Existing::Open).is_err(), "{name:?}");
        assert!(fs.nodes().mkdir(fs.root(), name, &new).is_err(), "{name:?}");
        assert!(fs.nodes().unlink(fs.root(), name).is_err(), "{name:?}");
    }
    let file = create(&fs, fs.root(), "file");
    let inside = fs.nodes().create(file.number(), b"x", &new, Existing::Refuse);
    assert!(matches!(inside, Err(Error::WrongKind { .. })), "{inside:?}");
    assert!(matches!(fs.nodes().lookup(file.number(), b"x"), Err(Error::WrongKind { .. })));
    assert!(matches!(fs.nodes().lookup(fs.root(), b"x"), Err(Error::NotFound(_))));
}

#[test]
fn all_kinds_are_made_and_seen() {
    let device = memory();
    let fs = open(&device);
    let root = fs.root();
    let directory = fs.nodes().mkdir(root, b"directory", &NewFile::new(0o1777)).unwrap();
    assert_eq!((directory.kind, directory.nlink, directory.mode), (FileType::Directory, 2, 0o1777));
    assert_eq!(fs.nodes().stat(root).unwrap().nlink, 3);
    let link = fs.nodes().symlink(root, b"link", b"no/where", Owner { uid: 1, gid: 2 }).unwrap();
    assert_eq!((link.kind, link.size, link.uid), (FileType::Symlink, 8, 1));
    assert_eq!(fs.nodes().read_link(link.number).unwrap(), b"no/where");
    assert!(matches!(fs.nodes().read_link(root), Err(Error::WrongKind { .. })));
    let number = DeviceNumber { major: 8, minor: 17 };
    let new = NewFile::new(0o660);
    let disk = fs.nodes().mknod(root, b"disk", FileType::Block, number, &new).unwrap();
    assert_eq!((disk.kind, disk.device), (FileType::Block, number));
    let none = DeviceNumber { major: 0, minor: 0 };
    for (name, kind) in [(&b"pipe"[..], FileType::Fifo), (b"socket", FileType::Socket)] {
        assert_eq!(fs.nodes().mknod(root, name, kind, none, &new).unwrap().kind, kind);
    }
    let far = DeviceNumber { major: 1 << 14, minor: 0 };
    assert!(fs.nodes().mknod(root, b"far", FileType::Character, far, &new).is_err());
    assert!(fs.nodes().mknod(root, b"far", FileType::Directory, none, &new).is_err());
    close_and_check(fs, &device);
}

#[test]
fn links_count_and_directories_have_none() {
    let fs = fresh();
    let root = fs.root();
    let file = create(&fs, root, "file");
    assert_eq!(fs.nodes().link(file.number(), root, b"second").unwrap().nlink, 2);
    assert!(matches!(fs.nodes().link(file.number(), root, b"second"), Err(Error::Exists(_))));
    let directory = fs.nodes().mkdir(root, b"directory", &NewFile::new(0o755)).unwrap();
    let link = fs.nodes().link(directory.number, root, b"third");
    assert!(matches!(link, Err(Error::WrongKind { .. })), "{link:?}");
    assert_eq!(fs.nodes().unlink(root, b"file").unwrap(), file.number());
    assert_eq!(file.metadata().nlink, 1);
    assert!(matches!(fs.nodes().unlink(root, b"file"), Err(Error::NotFound(_))));
    assert!(matches!(fs.nodes().unlink(root, b"directory"), Err(Error::WrongKind { .. })));
    assert!(matches!(fs.nodes().rmdir(root, b"second"), Err(Error::WrongKind { .. })));
    create(&fs, directory.number, "inside");
    assert!(matches!(fs.nodes().rmdir(root, b"directory"), Err(Error::NotEmpty(_))));
    fs.nodes().unlink(directory.number, b"inside").unwrap();
    assert_eq!(fs.nodes().rmdir(root, b"directory").unwrap(), directory.number);
    assert!(matches!(fs.nodes().stat(directory.number), Err(Error::Stale { .. })));
    assert!(matches!(
        fs.nodes().mkdir(directory.number, b"x", &NewFile::new(0)),
        Err(Error::Stale { .. })
    ));
}

fn tree() -> FileSystem {
    let fs = fresh();
    fs.create_dir_all("/a/deep").unwrap();
    fs.create_dir("/b").unwrap();
    fs.write("/a/one", "1").unwrap();
    fs.write("/b/two", "2").unwrap();
    fs
}

#[test]
fn renames_replace_refuse_and_exchange() {
    let fs = tree();
    let [a, b] = ["/a", "/b"].map(|path| fs.metadata(path).unwrap().number);
    let refused = fs.nodes().rename((a, b"one"), (b, b"two"), RenameFlags::NO_REPLACE);
    assert!(matches!(refused, Err(Error::Exists(_))), "{refused:?}");
    fs.nodes().rename((a, b"one"), (b, b"two"), RenameFlags::EXCHANGE).unwrap();
    assert_eq!(
        (fs.read("/a/one").unwrap(), fs.read("/b/two").unwrap()),
        (b"2".into(), b"1".into())
    );
    let missing = fs.nodes().rename((a, b"one"), (b, b"none"), RenameFlags::EXCHANGE);
    assert!(matches!(missing, Err(Error::NotFound(_))), "{missing:?}");
    fs.nodes().rename((a, b"one"), (b, b"new"), RenameFlags::NO_REPLACE).unwrap();
    fs.nodes().rename((b, b"new"), (b, b"two"), RenameFlags::REPLACE).unwrap();
    assert_eq!(fs.read("/b/two").unwrap(), b"2");
    assert!(matches!(fs.nodes().lookup(b, b"new"), Err(Error::NotFound(_))));
    assert!(matches!(
        fs.nodes().rename((a, b"one"), (b, b"two"), RenameFlags::REPLACE),
        Err(Error::NotFound(_))
    ));
    let deep = fs.nodes().lookup(a, b"deep").unwrap().number;
    let below = fs.nodes().rename((fs.root(), b"a"), (deep, b"a"), RenameFlags::REPLACE);
    assert!(below.is_err(), "a directory below itself");
    let both = RenameFlags { no_replace: true, ..RenameFlags::EXCHANGE };
    assert!(fs.nodes().rename((a, b"deep"), (b, b"x"), both).is_err());
    fs.nodes().rename((a, b"deep"), (b, b"moved"), RenameFlags::REPLACE).unwrap();
    assert_eq!(fs.nodes().parent(deep).unwrap().number, b);
    assert_eq!([a, b].map(|number| fs.nodes().stat(number).unwrap().nlink), [2, 3]);
}

#[test]
fn a_whiteout_is_left_where_a_name_was() {
    let device = memory();
    let fs = open(&device);
    fs.create_dir_all("/a/deep").unwrap();
    fs.create_dir("/b").unwrap();
    fs.write("/a/one", "1").unwrap();
    let [a, b] = ["/a", "/b"].map(|path| fs.metadata(path).unwrap().number);
    let leaving = RenameFlags { whiteout: Some(Owner { uid: 3, gid: 4 }), ..RenameFlags::REPLACE };
    fs.nodes().rename((a, b"one"), (b, b"one"), leaving).unwrap();
    assert_eq!(fs.read("/b/one").unwrap(), b"1");
    let whiteout = fs.nodes().lookup(a, b"one").unwrap();
    let none = DeviceNumber { major: 0, minor: 0 };
    assert_eq!((whiteout.kind, whiteout.device), (FileType::Character, none));
    assert_eq!((whiteout.mode, whiteout.uid, whiteout.gid, whiteout.nlink), (0, 3, 4, 1));
    // In the same directory, over another name, and of a directory.
    fs.nodes().rename((a, b"one"), (a, b"two"), leaving).unwrap();
    fs.nodes().rename((a, b"deep"), (b, b"deep"), leaving).unwrap();
    assert_eq!(fs.nodes().stat(a).unwrap().nlink, 2);
    assert_eq!(fs.nodes().lookup(a, b"deep").unwrap().kind, FileType::Character);
    let refused = RenameFlags { no_replace: true, ..leaving };
    assert!(matches!(fs.nodes().rename((a, b"one"), (a, b"two"), refused), Err(Error::Exists(_))));
    let exchanged = RenameFlags { exchange: true, ..leaving };
    assert!(fs.nodes().rename((a, b"one"), (a, b"two"), exchanged).is_err());
    // Two names of one file stay.
    fs.nodes().link(fs.nodes().lookup(b, b"one").unwrap().number, b, b"same").unwrap();
    fs.nodes().rename((b, b"one"), (b, b"same"), leaving).unwrap();
    assert_eq!(fs.nodes().lookup(b, b"one").unwrap().kind, FileType::Regular);
    for (from, to) in (0..200).map(|i| (format!("f{i}"), format!("g{i}"))) {
        create(&fs, a, &from);
        fs.nodes().rename((a, from.as_bytes()), (b, to.as_bytes()), leaving).unwrap();
    }
    close_and_check(fs, &device);
}

#[test]
fn a_read_only_file_system_changes_nothing() {
    let device = memory();
    let fs = open(&device);
    fs.write("/file", "bytes").unwrap();
    fs.close().unwrap();
    let fs = FileSystem::open(device, &OpenOptions::read_only()).unwrap();
    assert!(!fs.is_writable());
    assert_eq!(fs.read("/file").unwrap(), b"bytes");
    let new = NewFile::new(0o600);
    let made = fs.nodes().create(fs.root(), b"other", &new, Existing::Refuse);
    assert!(matches!(made, Err(Error::ReadOnly(_))), "{made:?}");
    assert!(matches!(fs.nodes().unlink(fs.root(), b"file"), Err(Error::ReadOnly(_))));
    let file = fs.open_file("/file").unwrap();
    assert!(matches!(file.write_at(0, b"x"), Err(Error::ReadOnly(_))));
    assert!(file.fsync().wait().is_err());
    fs.sync_and_wait().unwrap();
    fs.close().unwrap();
}
