//! Names: made, moved, taken away.

use crate::mounted::{Volume, fails};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::process::Command;

#[test]
fn files_are_created_and_read_back() {
    let volume = Volume::new();
    let mounted = volume.mount(&[]);
    fs::create_dir_all(mounted.path("a/b/c")).unwrap();
    fs::write(mounted.path("a/b/c/file"), "content").unwrap();
    symlink("b/c/file", mounted.path("a/link")).unwrap();
    let odd = OsStr::from_bytes(b"a/\xff\xfe odd\n");
    fs::write(mounted.path(odd), "odd").unwrap();
    assert_eq!(fs::read_to_string(mounted.path("a/link")).unwrap(), "content");
    mounted.unmount();

    let mounted = volume.mount(&[]);
    assert_eq!(fs::read_to_string(mounted.path("a/link")).unwrap(), "content");
    assert_eq!(fs::read_to_string(mounted.path(odd)).unwrap(), "odd");
    assert_eq!(fs::metadata(mounted.path("a")).unwrap().nlink(), 3);
    mounted.unmount();
}

#[test]
fn renames_follow_their_flags() {
    let volume = Volume::new();
    let mounted = volume.mount(&[]);
    let path = |name: &str| mounted.path(name);
    let rename = |from: &str, to: &str, flags| renameat_with(CWD, path(from), CWD, path(to), flags);
    fs::write(path("a"), "A").unwrap();
    fs::write(path("b"), "B").unwrap();
    assert_eq!(rename("a", "b", RenameFlags::NOREPLACE), Err(Errno::EXIST));
    rename("a", "b", RenameFlags::EXCHANGE).unwrap();
    assert_eq!(fs::read_to_string(path("a")).unwrap(), "B");
    rename("a", "c", RenameFlags::WHITEOUT).unwrap();
    let whiteout = fs::metadata(path("a")).unwrap();
    assert!(whiteout.file_type().is_char_device() && whiteout.rdev() == 0);
    rename("c", "b", RenameFlags::empty()).unwrap();
    assert_eq!(fs::read_to_string(path("b")).unwrap(), "B");
    assert!(!path("c").exists());

    fs::create_dir(path("d")).unwrap();
    fs::write(path("d/file"), "").unwrap();
    assert_eq!(rename("d", "d/below", RenameFlags::empty()), Err(Errno::INVAL));
    fs::create_dir(path("e")).unwrap();
    assert_eq!(rename("e", "d", RenameFlags::empty()), Err(Errno::NOTEMPTY));
    rename("d", "e", RenameFlags::empty()).unwrap();
    assert!(path("e/file").exists());
    mounted.unmount();
}

/// A file without a name lives as long as it is open, also when its name is taken by another, and its
/// number is no other's.
#[test]
fn files_without_a_name_live_while_they_are_open() {
    let volume = Volume::new();
    let mounted = volume.mount(&[]);
    let path = |name: &str| mounted.path(name);
    let open =
        || File::options().read(true).write(true).create_new(true).open(path("file")).unwrap();
    let mut files: Vec<File> = Vec::new();
    for text in ["first", "second", "third"] {
        let mut file = open();
        file.write_all(text.as_bytes()).unwrap();
        fs::remove_file(path("file")).unwrap();
        files.push(file);
    }
    fs::write(path("other"), "other").unwrap();
    let mut replaced = open();
    replaced.write_all(b"replaced").unwrap();
    fs::rename(path("other"), path("file")).unwrap();
    files.push(replaced);

    let mut numbers: Vec<u64> = files.iter().map(|file| file.metadata().unwrap().ino()).collect();
    numbers.push(fs::metadata(path("file")).unwrap().ino());
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 5);
    for (file, text) in files.iter_mut().zip(["first", "second", "third", "replaced"]) {
        file.sync_all().unwrap();
        let mut read = String::new();
        file.seek(SeekFrom::Start(0)).unwrap();
        file.read_to_string(&mut read).unwrap();
        assert_eq!(read, text);
        assert_eq!(file.metadata().unwrap().nlink(), 0);
    }
    drop(files);
    assert_eq!(fs::read_to_string(path("file")).unwrap(), "other");
    mounted.unmount();
}

#[test]
fn links_and_special_files_are_what_they_are() {
    let volume = Volume::new();
    let mounted = volume.mount(&[]);
    fs::write(mounted.path("file"), "x").unwrap();
    fs::hard_link(mounted.path("file"), mounted.path("link")).unwrap();
    let [file, link] = ["file", "link"].map(|name| fs::metadata(mounted.path(name)).unwrap());
    assert_eq!((file.ino(), file.nlink()), (link.ino(), 2));
    mounted.run("mkfifo", &[], "fifo");
    assert!(fs::metadata(mounted.path("fifo")).unwrap().file_type().is_fifo());
    for (name, kind, major, minor) in [("null", "c", "1", "3"), ("big", "b", "4095", "262143")] {
        let path = mounted.path(name);
        let made = Command::new("mknod").arg(&path).args([kind, major, minor]).status().unwrap();
        assert!(made.success());
        let device = fs::metadata(&path).unwrap().rdev();
        let numbers = (rustix::fs::major(device), rustix::fs::minor(device));
        assert_eq!(numbers, (major.parse().unwrap(), minor.parse().unwrap()));
    }
    let socket = std::os::unix::net::UnixListener::bind(mounted.path("socket"));
    // Its path may be too long for a socket.
    if socket.is_ok() {
        assert!(fs::metadata(mounted.path("socket")).unwrap().file_type().is_socket());
    }
    drop(socket);
    // Not as a device, unless asked for.
    assert!(fs::read(mounted.path("null")).is_err());
    mounted.unmount();
    let mounted = volume.mount(&["-o", "dev"]);
    assert_eq!(fs::read(mounted.path("null")).unwrap(), b"");
    mounted.unmount();
}

#[test]
fn overlays_take_it_as_their_upper_layer() {
    let volume = Volume::new();
    let mounted = volume.mount(&[]);
    let lower = volume.beside("lower");
    let merged = volume.beside("merged");
    for path in [&lower, &merged, &mounted.path("upper"), &mounted.path("work")] {
        fs::create_dir(path).unwrap();
    }
    fs::write(lower.join("gone"), "").unwrap();
    fs::write(lower.join("changed"), "old").unwrap();
    fs::create_dir(lower.join("directory")).unwrap();
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        lower.display(),
        mounted.path("upper").display(),
        mounted.path("work").display()
    );
    let mount = ["-t", "overlay", "overlay", "-o", &options];
    assert!(Command::new("mount").args(mount).arg(&merged).status().unwrap().success());
    let work = || -> std::io::Result<()> {
        fs::remove_file(merged.join("gone"))?;
        fs::write(merged.join("changed"), "new")?;
        fs::rename(merged.join("changed"), merged.join("moved"))?;
        fs::remove_dir(merged.join("directory"))?;
        fs::create_dir(merged.join("directory"))
    };
    let done = work();
    assert!(Command::new("umount").arg(&merged).status().unwrap().success());
    done.unwrap();
    let whiteout = fs::metadata(mounted.path("upper/gone")).unwrap();
    assert!(whiteout.file_type().is_char_device() && whiteout.rdev() == 0);
    assert_eq!(fs::read_to_string(mounted.path("upper/moved")).unwrap(), "new");
    mounted.run("getfattr", &["-n", "trusted.overlay.opaque"], "upper/directory");
    fails(1, Command::new("getfattr").args(["-n", "trusted.none"]).arg(mounted.path("upper")));
    mounted.unmount();
}
