//! What kind of error each refusal is: what Linux answers to the same request.

use std::io;
use std::sync::Arc;
use undercroft_block::testing::{Fault, FaultyDevice};
use undercroft_block::{BlockDevice, MemoryDevice, Operation};
use undercroft_xfs::format::{FileType, InodeFlags, Timestamp};
use undercroft_xfs::mkfs::{self, Feature, MkfsOptions};
use undercroft_xfs::ops::Position;
use undercroft_xfs::ops::SetMode;
use undercroft_xfs::ops::{self, CloneRange, MetadataChange, Name, NewInode, RenameMode, Size};
use undercroft_xfs::units::{AgNumber, InodeNumber};
use undercroft_xfs::volume::LiveOptions;
use undercroft_xfs::{Error, ErrorKind, OpenFile, Volume};
use uuid::Uuid;

const NOW: Timestamp = Timestamp { seconds: 9, nanoseconds: 0 };
const REPLACE: RenameMode = RenameMode::Replace;

fn device(features: &[(Feature, bool)]) -> Arc<dyn BlockDevice> {
    let size = 64 << 20;
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(size));
    let options =
        MkfsOptions { features: features.to_vec(), ..MkfsOptions::new(size, Uuid::from_u128(6)) };
    let root = NewInode::new(FileType::Directory, 0o755);
    let volume = mkfs::begin(&device, mkfs::plan(&options).unwrap(), &root).unwrap();
    mkfs::finish(&volume, false).unwrap();
    device
}

fn open(device: &Arc<dyn BlockDevice>) -> Arc<Volume> {
    Arc::new(Volume::open_live(Arc::clone(device), &LiveOptions::default()).unwrap())
}

/// A volume with a file, a directory with a name in it, an empty one, and a symbolic link.
struct Sample {
    volume: Arc<Volume>,
    root: InodeNumber,
    file: InodeNumber,
    full: InodeNumber,
    empty: InodeNumber,
    link: InodeNumber,
}

impl Sample {
    fn new() -> Self {
        let volume = open(&device(&[]));
        let root = volume.geometry().root_inode;
        let make = |parent, name: &str, kind| {
            let new = NewInode { target: b"file", ..NewInode::new(kind, 0o755) };
            ops::make(&volume, parent, name.as_bytes(), &new).unwrap()
        };
        let (file, full) =
            (make(root, "file", FileType::Regular), make(root, "full", FileType::Directory));
        let (empty, link) =
            (make(root, "empty", FileType::Directory), make(root, "link", FileType::Symlink));
        make(full, "inside", FileType::Directory);
        Self { volume, root, file, full, empty, link }
    }

    fn make(&self, parent: InodeNumber, name: &str, kind: FileType) -> Result<(), Error> {
        let new = NewInode { target: b"file", ..NewInode::new(kind, 0o755) };
        ops::make(&self.volume, parent, name.as_bytes(), &new).map(drop)
    }

    fn link(&self, number: InodeNumber, parent: InodeNumber) -> Result<(), Error> {
        ops::link(&self.volume, number, parent, b"other", NOW)
    }

    fn unlink(&self, name: &str) -> Result<(), Error> {
        ops::unlink(&self.volume, self.root, name.as_bytes(), NOW).map(drop)
    }

    fn rmdir(&self, name: &str) -> Result<(), Error> {
        ops::rmdir(&self.volume, self.root, name.as_bytes(), NOW).map(drop)
    }

    fn rename(&self, from: &str, parent: InodeNumber, to: &str) -> Result<(), Error> {
        let from = Name { parent: self.root, name: from.as_bytes() };
        let to = Name { parent, name: to.as_bytes() };
        ops::rename(&self.volume, from, to, REPLACE, NOW)
    }

    fn xattr(&self, number: InodeNumber, name: &str, len: usize) -> Result<(), Error> {
        let value = vec![7; len];
        ops::set_xattr(&self.volume, number, (name.as_bytes(), &value), SetMode::Either, NOW)
    }

    fn edit<T>(
        &self,
        number: InodeNumber,
        edit: impl FnOnce(&OpenFile) -> Result<T, Error>,
    ) -> Result<(), Error> {
        edit(&OpenFile::open(&self.volume, number)?).map(drop)
    }

    fn change(&self, number: InodeNumber, change: MetadataChange) -> Result<(), Error> {
        ops::change_metadata(&self.volume, number, &change, NOW)
    }

    fn flag(&self, number: InodeNumber, flags: InodeFlags) {
        let change = MetadataChange { flags: Some(flags), ..MetadataChange::default() };
        self.change(number, change).unwrap();
    }
}

/// A request by its name, its answer, and what kind that should be.
type Case = (&'static str, Result<(), Error>, ErrorKind);

fn expect(cases: impl IntoIterator<Item = Case>) {
    for (request, answer, kind) in cases {
        let error = answer.expect_err(request);
        assert_eq!(error.kind(), kind, "{request}: {error}");
        assert_eq!(error.is_damage(), kind == ErrorKind::Damaged, "{request}: {error}");
        let message = error.to_string();
        assert_eq!(io::Error::from(error).to_string(), message, "{request}");
    }
}

#[test]
fn names() {
    use ErrorKind as Kind;
    use FileType::{Directory, Regular};
    let sample = Sample::new();
    let Sample { volume, root, file, full, empty, .. } = &sample;
    let (root, file, full, empty) = (*root, *file, *full, *empty);
    let long = "n".repeat(256);
    let into = Name { parent: root, name: b"link" };
    let from = Name { parent: root, name: b"file" };
    let no_replace = ops::rename(volume, from, into, RenameMode::NoReplace, NOW);
    expect([
        ("mkdir of what exists", sample.make(root, "file", Directory), Kind::Exists),
        ("mkdir in a file", sample.make(file, "new", Directory), Kind::NotDirectory),
        ("create with a long name", sample.make(root, &long, Regular), Kind::NameTooLong),
        ("create with a slash", sample.make(root, "a/b", Regular), Kind::Invalid),
        ("unlink of nothing", sample.unlink("no"), Kind::NotFound),
        ("unlink of a long name", sample.unlink(&long), Kind::NameTooLong),
        ("unlink of a directory", sample.unlink("empty"), Kind::IsDirectory),
        ("rmdir of a file", sample.rmdir("file"), Kind::NotDirectory),
        ("rmdir of a full one", sample.rmdir("full"), Kind::NotEmpty),
        ("link of a directory", sample.link(empty, root), Kind::NotPermitted),
        ("rename of nothing", sample.rename("no", root, "new"), Kind::NotFound),
        ("rename over nothing, kept", no_replace, Kind::Exists),
        ("rename below itself", sample.rename("full", full, "new"), Kind::Invalid),
        ("file over directory", sample.rename("file", root, "empty"), Kind::IsDirectory),
        ("directory over file", sample.rename("empty", root, "file"), Kind::NotDirectory),
        ("directory over a full one", sample.rename("empty", root, "full"), Kind::NotEmpty),
    ]);
}

#[test]
fn flags_and_counts() {
    use ErrorKind as Kind;
    let sample = Sample::new();
    let Sample { volume, root, file, full, empty, link } = &sample;
    let (root, file, full, empty, link) = (*root, *file, *full, *empty, *link);
    let project = MetadataChange { project: Some(4), ..MetadataChange::default() };
    sample.change(empty, project).unwrap();
    sample.flag(empty, InodeFlags::PROJINHERIT);
    expect([
        ("link into a project", sample.link(file, empty), Kind::CrossDevice),
        ("rename into a project", sample.rename("file", empty, "new"), Kind::CrossDevice),
    ]);
    sample.flag(full, InodeFlags::NOSYMLINKS);
    let symlink = sample.make(full, "new", FileType::Symlink);
    let mode = MetadataChange { mode: Some(0o600), ..MetadataChange::default() };
    let new = NewInode { target: &[b't'; 1024], ..NewInode::new(FileType::Symlink, 0o777) };
    let long = ops::make(volume, root, b"new", &new).map(drop);
    expect([
        ("symlink where none may be", symlink, Kind::NotPermitted),
        ("symlink with a long target", long, Kind::NameTooLong),
        ("chmod of a symlink", sample.change(link, mode), Kind::NotSupported),
    ]);
    sample.flag(file, InodeFlags::IMMUTABLE);
    expect([
        ("unlink of what is immutable", sample.unlink("file"), Kind::NotPermitted),
        ("chmod of what is immutable", sample.change(file, mode), Kind::NotPermitted),
        ("rename of what is immutable", sample.rename("file", root, "new"), Kind::NotPermitted),
    ]);
    volume.lock_inode(link).unwrap().core.nlink = u32::MAX - 1;
    expect([("link of what has too many", sample.link(link, root), Kind::TooManyLinks)]);
}

#[test]
fn attributes() {
    use ErrorKind as Kind;
    let sample = Sample::new();
    let Sample { volume, file, link, .. } = &sample;
    let (file, link) = (*file, *link);
    let set = |name: &[u8], mode| ops::set_xattr(volume, file, (name, b"x"), mode, NOW);
    sample.xattr(file, "user.there", 3).unwrap();
    let long = format!("user.{}", "n".repeat(256));
    // Version 2, the three entries that every list has.
    let mut list = vec![2, 0, 0, 0];
    for tag in [1_u8, 4, 32] {
        list.extend([tag, 0, 6, 0, 255, 255, 255, 255]);
    }
    let acl =
        |number, name: &[u8]| ops::set_xattr(volume, number, (name, &list), SetMode::Either, NOW);
    expect([
        ("XATTR_REPLACE", set(b"user.no", SetMode::Replace), Kind::NoAttribute),
        ("XATTR_CREATE", set(b"user.there", SetMode::Create), Kind::Exists),
        ("a long name", sample.xattr(file, &long, 1), Kind::AttributeNameTooLong),
        ("no name", sample.xattr(file, "user.", 1), Kind::Invalid),
        ("a long value", sample.xattr(file, "user.x", 65537), Kind::AttributeTooLarge),
        ("another namespace", sample.xattr(file, "comment", 1), Kind::NotSupported),
        ("of a user, on a link", sample.xattr(link, "user.x", 1), Kind::NotPermitted),
        ("no list", sample.xattr(file, "system.posix_acl_access", 5), Kind::Invalid),
        ("default list of a file", acl(file, b"system.posix_acl_default"), Kind::AccessDenied),
        ("list of a link", acl(link, b"system.posix_acl_access"), Kind::NotSupported),
    ]);
    let absent = ops::remove_xattr(volume, file, b"user.no", NOW);
    assert!(!absent.unwrap(), "what is absent is an answer, which callers make ENODATA of");
}

#[test]
fn contents() {
    use ErrorKind as Kind;
    let sample = Sample::new();
    let Sample { volume, file, empty, link, .. } = &sample;
    let (file, empty, link) = (*file, *empty, *link);
    let byte = Arc::new(vec![1]);
    let read = |number| OpenFile::open(volume, number)?.read(0, &mut [0; 8]).map(drop);
    let target = |number| ops::read_link(volume, &volume.inode(number)?.read()).map(drop);
    let names = |number| {
        ops::entries(volume, &volume.inode(number)?.read(), Position::START, |_| true).map(drop)
    };
    let end = i64::MAX as u64;
    let write = |at| sample.edit(file, |file| file.write_shared(at, &byte, 0..1, NOW));
    expect([
        (
            "truncate of a directory",
            sample.edit(empty, |file| file.truncate(0, NOW)),
            Kind::IsDirectory,
        ),
        ("write to a link", sample.edit(link, |file| file.truncate(0, NOW)), Kind::Invalid),
        ("read of a directory", read(empty), Kind::IsDirectory),
        ("readlink of a file", target(file), Kind::Invalid),
        ("readlink of a directory", target(empty), Kind::Invalid),
        ("readdir of a file", names(file), Kind::NotDirectory),
        ("write behind the last byte", write(end), Kind::TooLarge),
        ("write beyond all numbers", write(u64::MAX), Kind::TooLarge),
        (
            "truncate to too much",
            sample.edit(file, |file| file.truncate(1 << 63, NOW)),
            Kind::TooLarge,
        ),
        (
            "fallocate of nothing",
            sample.edit(file, |file| file.preallocate(5..5, Size::Grow, NOW)),
            Kind::Invalid,
        ),
        (
            "fallocate of more than there is",
            sample.edit(file, |file| file.preallocate(0..1 << 30, Size::Grow, NOW)),
            Kind::NoSpace,
        ),
        (
            "collapse to the end",
            sample.edit(file, |file| file.collapse(0..1 << 40, NOW)),
            Kind::Invalid,
        ),
    ]);
    let range = CloneRange { source: 0, target: 0, len: 4096 };
    let clone = |volume, from, to| {
        let source = OpenFile::open(volume, from)?;
        OpenFile::open(volume, to)?.clone_range(&source, &range, NOW)
    };
    let plain = open(&device(&[(Feature::Reflink, false)]));
    let new = NewInode::new(FileType::Regular, 0o644);
    let root = plain.geometry().root_inode;
    let [one, two] = [b"a", b"b"].map(|name| ops::make(&plain, root, name, &new).unwrap());
    let unshared = clone(&plain, one, two);
    expect([
        ("clone from behind the end", clone(volume, file, file), Kind::Invalid),
        ("clone to a directory", clone(volume, file, empty), Kind::IsDirectory),
        ("clone where nothing is shared", unshared, Kind::NotSupported),
    ]);
}

/// A file that is gone is gone, by its number and for its holders.
#[test]
fn removed_inodes_are_stale() {
    let sample = Sample::new();
    let Sample { volume, root, file, empty, link, .. } = &sample;
    let (root, file, empty, link) = (*root, *file, *empty, *link);
    let held = [file, empty, link].map(|number| volume.inode(number).unwrap());
    let opened = OpenFile::open(volume, file).unwrap();
    sample.unlink("file").unwrap();
    opened.truncate(8192, NOW).unwrap();
    opened.close().unwrap();
    sample.rmdir("empty").unwrap();
    sample.unlink("link").unwrap();
    let [was_file, was_empty, was_link] = &held;
    let lookup = ops::lookup(volume, &was_empty.read(), b"x").map(drop);
    let readlink = ops::read_link(volume, &was_link.read()).map(drop);
    let getxattr = ops::get_xattr(volume, &was_file.read(), b"user.x").map(drop);
    let answers = [
        ("its number", volume.inode(file).map(drop)),
        ("a number that none can have", volume.inode(InodeNumber(u64::MAX >> 1)).map(drop)),
        ("lookup", lookup),
        ("readlink", readlink),
        ("getxattr", getxattr),
        ("link", sample.link(file, root)),
        ("create", sample.make(empty, "new", FileType::Regular)),
        ("rename", sample.rename("full", empty, "new")),
        ("chmod", sample.change(file, MetadataChange::default())),
        ("setxattr", sample.xattr(file, "user.x", 1)),
        ("fallocate", sample.edit(file, |_| Ok(()))),
        ("open", OpenFile::open(volume, file).map(drop)),
    ];
    expect(answers.map(|(request, answer)| (request, answer, ErrorKind::Stale)));
    // A removed directory that is open is there, and takes no names.
    sample.make(root, "empty", FileType::Directory).unwrap();
    let root = volume.inode(root).unwrap();
    let number = ops::lookup(volume, &root.read(), b"empty").unwrap().unwrap();
    let _kept = OpenFile::open(volume, number).unwrap();
    sample.rmdir("empty").unwrap();
    let create = sample.make(number, "new", FileType::Regular);
    expect([("create where no path leads", create, ErrorKind::NotFound)]);
}

/// The number of a free inode is stale from a caller, and damage from a directory.
#[test]
fn an_entry_for_a_free_inode_is_damage() {
    let device = device(&[]);
    let volume = open(&device);
    let root = volume.geometry().root_inode;
    let new = NewInode::new(FileType::Directory, 0o755);
    let [free, _] = [b"free", b"used"].map(|name| ops::make(&volume, root, name, &new).unwrap());
    let trans = volume.begin().unwrap();
    let mut inode = volume.lock_inode(free).unwrap();
    (inode.core.mode, inode.core.nlink) = (0, 0);
    inode.touch();
    trans.commit(&mut [&mut inode]).unwrap();
    drop(inode);
    volume.close().unwrap();

    let volume = open(&device);
    let name = |name| Name { parent: root, name };
    let rename = |from, to, mode| ops::rename(&volume, name(from), name(to), mode, NOW);
    let directory = volume.inode(root).unwrap();
    let found = ops::lookup_in_use(&volume, &directory.read(), b"free").map(drop);
    assert_eq!(ops::lookup(&volume, &directory.read(), b"free").unwrap(), Some(free));
    let below = undercroft_xfs::frag::below(&volume, root).map(drop);
    let answers = [
        ("lookup", found),
        ("walk", below),
        ("rmdir", ops::rmdir(&volume, root, b"free", NOW).map(drop)),
        ("rename", rename(b"free", b"new", REPLACE)),
        ("rename over it", rename(b"used", b"free", REPLACE)),
        ("exchange", rename(b"used", b"free", RenameMode::Exchange)),
    ];
    expect(answers.map(|(request, answer)| (request, answer, ErrorKind::Damaged)));
    expect([("its number", volume.inode(free).map(drop), ErrorKind::Stale)]);
}

#[test]
fn volumes_and_devices() {
    use ErrorKind as Kind;
    let make = |volume: &Volume| {
        let new = NewInode::new(FileType::Regular, 0o644);
        ops::make(volume, volume.geometry().root_inode, b"new", &new).map(drop)
    };
    let read_only = Volume::open(device(&[])).unwrap();
    let blank: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(1 << 20));
    expect([
        ("create on a volume for reading", make(&read_only), Kind::ReadOnly),
        ("force of a volume for reading", read_only.force().map(drop), Kind::ReadOnly),
        ("no file system", Volume::open(blank).map(drop), Kind::Invalid),
    ]);
    for error in [io::ErrorKind::Other, io::ErrorKind::StorageFull] {
        let fault = Fault::new().on(Operation::Flush).from_nth(0).error(error);
        let faulty: Arc<dyn BlockDevice> = Arc::new(FaultyDevice::new(device(&[]), [fault]));
        let volume = open(&faulty);
        make(&volume).unwrap();
        expect([
            ("sync that fails", volume.sync(), Kind::Io),
            ("sync after that", volume.sync(), Kind::Io),
            ("create after that", make(&volume), Kind::Io),
            ("a ticket", volume.force().unwrap().wait(), Kind::Io),
        ]);
    }
}

#[test]
fn a_group_out_of_order_is_busy() {
    let volume = open(&device(&[]));
    let begin = || volume.begin_sized(1 << 16).unwrap();
    let (mut one, mut other) = (begin(), begin());
    one.in_group(AgNumber(0), |_, _| Ok(())).unwrap();
    other.in_group(AgNumber(1), |_, _| Ok(())).unwrap();
    let busy = other.in_group(AgNumber(0), |_, _| Ok(()));
    expect([("a group out of order", busy, ErrorKind::Busy)]);
}
