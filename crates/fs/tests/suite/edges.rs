//! What is refused, judged by the file system of the host: the same operation there, and its errno.

use crate::volumes::{fresh, memory};
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use undercroft_block::{BlockDevice, MemoryDevice};
use undercroft_fs::{
    AccessTimes, Change, Clock, Error, ErrorKind, Existing, FileSystem, FileType, NewFile,
    OpenOptions, PathError, RenameFlags, Timestamp,
};
use undercroft_xfs::mkfs::{self, MkfsOptions};
use undercroft_xfs::ops::NewInode;
use uuid::Uuid;

/// An operation that takes one path or two.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Write(&'static str),
    CreateDir(&'static str),
    Symlink(&'static str),
    Link(&'static str, &'static str),
    Rename(&'static str, &'static str),
    RemoveFile(&'static str),
    RemoveDir(&'static str),
    Canonicalize(&'static str),
    ReadLink(&'static str),
}

use Operation::{
    Canonicalize, CreateDir, Link, ReadLink, RemoveDir, RemoveFile, Rename, Symlink, Write,
};

impl Operation {
    /// Does it to paths below `root`. A slash at the end stays, as it would not in a joined path.
    fn on_host(self, root: &str) -> Result<(), i32> {
        let at = |path: &str| format!("{root}/{path}");
        let done: io::Result<()> = match self {
            Write(path) => fs::write(at(path), "new"),
            CreateDir(path) => fs::create_dir(at(path)),
            Symlink(path) => symlink("target", at(path)),
            Link(from, to) => fs::hard_link(at(from), at(to)),
            Rename(from, to) => fs::rename(at(from), at(to)),
            RemoveFile(path) => fs::remove_file(at(path)),
            RemoveDir(path) => fs::remove_dir(at(path)),
            Canonicalize(path) => fs::canonicalize(at(path)).map(drop),
            ReadLink(path) => fs::read_link(at(path)).map(drop),
        };
        done.map_err(|error| error.raw_os_error().unwrap())
    }

    fn here(self, fs: &FileSystem, root: &str) -> Result<(), i32> {
        let at = |path: &str| format!("{root}/{path}");
        let done: Result<(), PathError> = match self {
            Write(path) => fs.write(at(path), "new"),
            CreateDir(path) => fs.create_dir(at(path)),
            Symlink(path) => fs.symlink("target", at(path)),
            Link(from, to) => fs.hard_link(at(from), at(to)),
            Rename(from, to) => fs.rename(at(from), at(to), RenameFlags::REPLACE),
            RemoveFile(path) => fs.remove_file(at(path)),
            RemoveDir(path) => fs.remove_dir(at(path)),
            Canonicalize(path) => fs.canonicalize(at(path)).map(drop),
            ReadLink(path) => fs.read_link(at(path)).map(drop),
        };
        done.map_err(|error| error.kind().errno())
    }
}

/// What a path may end in, and what may be there.
const PATHS: [&str; 15] = [
    "new/",
    "file/",
    "dir/",
    "to-dir/",
    "to-file/",
    "dangling/",
    "to-new",
    "dangling",
    "dir/.",
    "new/.",
    "file/x",
    "new/x",
    "new//",
    "dir/../new/",
    ".",
];

const LINKS: [(&str, &str); 4] =
    [("to-dir", "dir"), ("to-file", "file"), ("to-new", "new/"), ("dangling", "nothing")];

fn operations() -> Vec<Operation> {
    let mut all = Vec::new();
    for path in PATHS {
        all.extend([Write(path), CreateDir(path), Symlink(path), RemoveFile(path)]);
        all.extend([RemoveDir(path), Canonicalize(path), ReadLink(path), Link(path, "fresh")]);
        for other in ["file", "dir", "to-dir", "dangling", "nothing"] {
            all.extend([Rename(other, path), Rename(path, other), Link(other, path)]);
        }
    }
    all
}

#[test]
fn paths_that_end_in_slashes_and_dots_fail_as_in_linux() {
    let home = tempfile::tempdir().unwrap();
    let ours = fresh();
    let mut wrong = Vec::new();
    for (number, operation) in operations().into_iter().enumerate() {
        let (root, here) = (home.path().join(number.to_string()), number.to_string());
        fs::create_dir_all(root.join("dir")).unwrap();
        fs::write(root.join("file"), "old").unwrap();
        ours.create_dir_all(format!("{here}/dir")).unwrap();
        ours.write(format!("{here}/file"), "old").unwrap();
        for (link, target) in LINKS {
            symlink(target, root.join(link)).unwrap();
            ours.symlink(target, format!("{here}/{link}")).unwrap();
        }
        let (ours, host) =
            (operation.here(&ours, &here), operation.on_host(root.to_str().unwrap()));
        if ours != host {
            wrong.push(format!("{operation:?}: {ours:?}, in Linux {host:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn only_a_file_that_was_made_without_a_name_gets_its_first() {
    let fs = fresh();
    let (root, new) = (fs.root(), NewFile::new(0o600));
    let unnamed = fs.nodes().tmpfile(root, &new).unwrap();
    let (_, gone) = fs.nodes().create(root, b"gone", &new, Existing::Refuse).unwrap();
    fs.nodes().unlink(root, b"gone").unwrap();
    assert_eq!(fs.nodes().link_file(&gone, root, b"back").unwrap_err().kind(), ErrorKind::NotFound);
    fs.nodes().link_file(&unnamed, root, b"first").unwrap();
    fs.nodes().unlink(root, b"first").unwrap();
    assert_eq!(
        fs.nodes().link_file(&unnamed, root, b"again").unwrap_err().kind(),
        ErrorKind::NotFound
    );
}

#[test]
fn a_read_that_must_be_whole_ends_with_the_file() {
    let fs = fresh();
    fs.write("/file", "seven b").unwrap();
    let error = fs.open_file("/file").unwrap().read_exact_at(4, &mut [0; 4]).unwrap_err();
    assert!(matches!(error, Error::EndOfFile(_)), "{error}");
    assert_eq!(io::Error::from(error).kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn memory_that_is_shared_is_there() {
    let fs = fresh();
    let file = fs.create_file("/file", &NewFile::new(0o600)).unwrap();
    let memory = Arc::new(vec![7; 100]);
    for range in [0..101, 101..101, 200..300] {
        let error = file.write_shared(0, &memory, range).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
    file.write_shared(0, &memory, 50..100).unwrap();
    assert_eq!(file.size(), 50);
}

/// Times that the volume cannot hold are what it stores at once, in every way that they get there.
#[test]
fn a_clock_out_of_range_shows_what_is_stored() {
    let far = [i64::MIN, -1 << 40, 1 << 40, i64::MAX];
    for seconds in far {
        let device = memory();
        let clock = Clock::Fixed(Timestamp { seconds, nanoseconds: 7 });
        let options =
            OpenOptions::writable().with_clock(clock).with_access_times(AccessTimes::Always);
        let fs = FileSystem::open(Arc::clone(&device), &options).unwrap();
        fs.write("/written", "bytes").unwrap();
        fs.create_file("/appended", &NewFile::new(0o600)).unwrap().append(b"bytes").unwrap();
        fs.create_file("/read", &NewFile::new(0o600)).unwrap();
        fs.read("/read").unwrap();
        let moved = fs.open_file("/appended").unwrap();
        fs.rename("/appended", "/moved", RenameFlags::REPLACE).unwrap();
        let change = Change { mode: Some(0o640), ..Change::default() };
        moved.set_attributes(&change).unwrap();
        drop(moved);
        let all = ["/", "/written", "/moved", "/read"];
        let seen = |fs: &FileSystem| all.map(|path| fs.metadata(path).unwrap());
        let before = seen(&fs);
        fs.close().unwrap();
        drop(fs);
        let fs = FileSystem::open(Arc::clone(&device), &OpenOptions::read_only()).unwrap();
        assert_eq!(seen(&fs), before, "{seconds}");
    }
}

#[test]
fn the_root_of_a_volume_is_a_directory() {
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(64 << 20));
    let plan = mkfs::plan(&MkfsOptions::new(64 << 20, Uuid::from_u128(3))).unwrap();
    for kind in [FileType::Regular, FileType::Symlink] {
        let error = mkfs::begin(&device, plan.clone(), &NewInode::new(kind, 0o755)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
}
