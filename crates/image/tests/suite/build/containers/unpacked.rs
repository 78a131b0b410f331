//! The kernel's own view of layers: each is unpacked by itself, and overlayfs is mounted over them.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, Timespec, Timestamps, Uid, XattrFlags, chownat, lgetxattr,
    llistxattr, lsetxattr, makedev, mknodat, utimensat,
};

pub(crate) fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
}

/// An overlay, unmounted when dropped.
struct Overlay(PathBuf);

impl Overlay {
    /// `layers` from the top down.
    fn mount(layers: &[PathBuf], at: &Path) -> Self {
        let lower: Vec<_> = layers.iter().map(|layer| layer.display().to_string()).collect();
        let options = format!("lowerdir={}", lower.join(":"));
        let mut mount = Command::new("mount");
        run(mount.args(["-t", "overlay", "overlay", "-o", &options]).arg(at));
        Self(at.to_owned())
    }
}

impl Drop for Overlay {
    fn drop(&mut self) {
        run(Command::new("umount").arg(&self.0));
    }
}

/// Unpacks layers into directories in `home`, and copies what overlayfs shows over them to
/// `home/merged`: a copy has link counts of the names that are seen.
pub(crate) fn merged(home: &Path, layers: &[Vec<u8>]) -> PathBuf {
    let mount = home.join("mount");
    let bottom = home.join("bottom");
    for directory in [&mount, &bottom] {
        fs::create_dir(directory).unwrap();
    }
    // An overlay without an upper directory takes two lower ones.
    let mut directories = vec![bottom, home.join("empty")];
    fs::create_dir(&directories[1]).unwrap();
    for (number, tar) in layers.iter().enumerate() {
        let directory = home.join(format!("layer-{number}"));
        fs::create_dir(&directory).unwrap();
        let overlay = Overlay::mount(&directories, &mount);
        unpack(tar, &directory, &mount);
        drop(overlay);
        directories.insert(0, directory);
    }
    let merged = home.join("merged");
    let _overlay = Overlay::mount(&directories, &mount);
    run(Command::new("cp").arg("-a").arg(&mount).arg(&merged));
    merged
}

/// A member of an archive.
struct Member {
    path: String,
    header: tar::Header,
    target: String,
    data: Vec<u8>,
    mtime: Timespec,
    xattrs: BTreeMap<String, Vec<u8>>,
}

fn members(tar: &[u8]) -> Vec<Member> {
    let mut archive = tar::Archive::new(tar);
    let mut members = Vec::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let mut xattrs = BTreeMap::new();
        let mut mtime = Timespec { tv_sec: 0, tv_nsec: 0 };
        for record in entry.pax_extensions().unwrap().unwrap() {
            let record = record.unwrap();
            let (key, value) = (record.key().unwrap(), record.value_bytes());
            if let Some(name) = key.strip_prefix("SCHILY.xattr.") {
                xattrs.insert(name.to_owned(), value.to_vec());
            } else if key == "mtime" {
                let seconds = std::str::from_utf8(value).unwrap().trim_end_matches(".5");
                mtime = Timespec { tv_sec: seconds.parse().unwrap(), tv_nsec: 500_000_000 };
            }
        }
        let path = String::from_utf8(entry.path_bytes().into_owned()).unwrap();
        // In a layer the root is that of the image.
        let path = path.trim_start_matches("./").trim_matches('/').to_owned();
        let target = entry.link_name_bytes().map(std::borrow::Cow::into_owned).unwrap_or_default();
        let mut target = String::from_utf8(target).unwrap();
        let header = entry.header().clone();
        if header.entry_type() == tar::EntryType::Link {
            target = target.trim_start_matches('/').to_owned();
        }
        let mut data = Vec::new();
        entry.read_to_end(&mut data).unwrap();
        members.push(Member { path, header, target, data, mtime, xattrs });
    }
    members
}

/// Unpacks a layer into `directory`. `below` shows the layers below it: parents without an entry have
/// their attributes from there, and files that links name are copied up.
fn unpack(tar: &[u8], directory: &Path, below: &Path) {
    let members = members(tar);
    let root = copy_attributes(below, directory);
    let mut times = BTreeMap::from([(directory.to_owned(), root)]);
    for member in &members {
        let path = directory.join(&member.path);
        let parent = Path::new(&member.path).parent().unwrap_or(Path::new(""));
        make_parents(parent, directory, below, member.mtime, &mut times);
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.starts_with(".wh.") {
            continue;
        }
        make(member, &path, (directory, below), &mut times);
        if member.header.entry_type() == tar::EntryType::Directory {
            times.insert(path, member.mtime);
        }
    }
    for member in &members {
        let path = directory.join(&member.path);
        let (parent, name) = (path.parent().unwrap(), path.file_name().unwrap().to_str().unwrap());
        let Some(hidden) = name.strip_prefix(".wh.") else { continue };
        let hidden_path = parent.join(hidden);
        let opaque = |path: &Path| {
            lsetxattr(path, "trusted.overlay.opaque", b"y", XattrFlags::empty()).unwrap();
        };
        if name == ".wh..wh..opq" {
            opaque(parent);
        } else if hidden_path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
            opaque(&hidden_path);
        } else if hidden_path.symlink_metadata().is_err() {
            mknodat(CWD, &hidden_path, FileType::CharacterDevice, Mode::empty(), 0).unwrap();
        }
    }
    for (path, mtime) in times.iter().rev() {
        set_mtime(path, *mtime);
    }
}

fn make_parents(
    parent: &Path,
    directory: &Path,
    below: &Path,
    mtime: Timespec,
    times: &mut BTreeMap<PathBuf, Timespec>,
) {
    let mut so_far = PathBuf::new();
    for part in parent.components() {
        so_far.push(part);
        let path = directory.join(&so_far);
        if path.symlink_metadata().is_ok() {
            continue;
        }
        fs::create_dir(&path).unwrap();
        let lower = below.join(&so_far);
        if lower.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
            let time = copy_attributes(&lower, &path);
            times.insert(path, time);
        } else {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            times.insert(path, mtime);
        }
    }
}

/// Owner, mode and attributes of a directory; its time.
fn copy_attributes(from: &Path, to: &Path) -> Timespec {
    let metadata = from.metadata().unwrap();
    let owner = (Some(Uid::from_raw(metadata.uid())), Some(Gid::from_raw(metadata.gid())));
    chownat(CWD, to, owner.0, owner.1, AtFlags::empty()).unwrap();
    fs::set_permissions(to, metadata.permissions()).unwrap();
    let mut names = vec![0; 65536];
    let length = llistxattr(from, &mut names[..]).unwrap();
    for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let name = CString::new(name).unwrap();
        let mut value = vec![0; 65536];
        let length = lgetxattr(from, &name, &mut value[..]).unwrap();
        lsetxattr(to, &name, &value[..length], XattrFlags::empty()).unwrap();
    }
    Timespec { tv_sec: metadata.mtime(), tv_nsec: metadata.mtime_nsec() }
}

fn make(
    member: &Member,
    path: &Path,
    (directory, below): (&Path, &Path),
    times: &mut BTreeMap<PathBuf, Timespec>,
) {
    let header = &member.header;
    let kind = header.entry_type();
    let is_there = path.symlink_metadata().is_ok_and(|metadata| !metadata.is_dir());
    if is_there {
        fs::remove_file(path).unwrap();
    }
    let node = |kind: FileType| {
        let number = (header.device_major().unwrap(), header.device_minor().unwrap());
        let device = makedev(number.0.unwrap_or(0), number.1.unwrap_or(0));
        mknodat(CWD, path, kind, Mode::from_raw_mode(0o600), device).unwrap();
    };
    match kind {
        tar::EntryType::Regular => fs::write(path, &member.data).unwrap(),
        tar::EntryType::Directory if path.is_dir() => {}
        tar::EntryType::Directory => fs::create_dir(path).unwrap(),
        tar::EntryType::Symlink => symlink(&member.target, path).unwrap(),
        tar::EntryType::Char => node(FileType::CharacterDevice),
        tar::EntryType::Block => node(FileType::BlockDevice),
        tar::EntryType::Fifo => node(FileType::Fifo),
        tar::EntryType::Link => {
            let target = directory.join(&member.target);
            if target.symlink_metadata().is_err() {
                let parent = Path::new(&member.target).parent().unwrap();
                make_parents(parent, directory, below, member.mtime, times);
                run(Command::new("cp").arg("-a").arg(below.join(&member.target)).arg(&target));
            }
            fs::hard_link(target, path).unwrap();
            return;
        }
        other => panic!("{other:?}"),
    }
    let owner = (header.uid().unwrap() as u32, header.gid().unwrap() as u32);
    let owner = (Some(Uid::from_raw(owner.0)), Some(Gid::from_raw(owner.1)));
    chownat(CWD, path, owner.0, owner.1, AtFlags::SYMLINK_NOFOLLOW).unwrap();
    if kind != tar::EntryType::Symlink {
        let mode = fs::Permissions::from_mode(header.mode().unwrap());
        fs::set_permissions(path, mode).unwrap();
    }
    for (name, value) in &member.xattrs {
        let name = CString::new(name.as_str()).unwrap();
        lsetxattr(path, &name, value, XattrFlags::empty()).unwrap();
    }
    set_mtime(path, member.mtime);
}

fn set_mtime(path: &Path, mtime: Timespec) {
    let times = Timestamps { last_access: mtime, last_modification: mtime };
    utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}
