//! Verbs by path.

use crate::volumes::{close_and_check, fresh, memory, open, same};
use std::path::Path;
use undercroft_fs::{
    Change, Error, ErrorKind, FileSystem, FileType, InodeFlags, InodeNumber, NewFile, PathError,
    RenameFlags, SetMode,
};

fn not_found<T: std::fmt::Debug>(result: Result<T, PathError>) {
    let error = result.unwrap_err();
    assert!(matches!(error.error(), Error::NotFound(_)), "{error:?}");
}

fn wrong_kind<T: std::fmt::Debug>(result: Result<T, PathError>) {
    let error = result.unwrap_err();
    assert!(matches!(error.error(), Error::WrongKind { .. }), "{error:?}");
}

#[test]
fn files_are_read_and_written_whole() {
    let fs = fresh();
    fs.write("/file", "first").unwrap();
    fs.write("file", b"2nd").unwrap();
    assert_eq!(fs.read(Path::new("/file")).unwrap(), b"2nd");
    assert_eq!(fs.read("///./file").unwrap(), b"2nd");
    let big = vec![3; 9 << 20];
    fs.write("/big", &big).unwrap();
    same(&fs.read("/big").unwrap(), &big);
    assert!(fs.exists("/big").unwrap());
    assert!(!fs.exists("/none").unwrap());
    not_found(fs.read("/none"));
    not_found(fs.read(""));
    not_found(fs.write("/none/file", ""));
    wrong_kind(fs.read("/"));
    wrong_kind(fs.write("/", ""));
    wrong_kind(fs.read("/file/x"));
    wrong_kind(fs.read("/file/"));
    wrong_kind(fs.read("/file/.."));
    wrong_kind(fs.exists("/file/x"));
}

#[test]
fn errors_bear_the_path() {
    let fs = fresh();
    let error = fs.read("/such\nfile").unwrap_err();
    assert_eq!(error.path(), Path::new("/such\nfile"));
    assert_eq!(error.to_string(), "/such\\nfile: no such file or directory");
    // The part that is missing.
    let error = fs.read("no/../such/file").unwrap_err();
    assert_eq!(error.path(), Path::new("no/../such/file"));
    assert_eq!(error.to_string(), "/no: no such file or directory");
    fs.create_dir("/full").unwrap();
    fs.write("/full/file", "").unwrap();
    let error = fs.remove_dir("/full").unwrap_err();
    assert_eq!(error.to_string(), "/full: the directory is not empty");
    assert!(matches!(Error::from(error), Error::NotEmpty(_)));
}

#[test]
fn symbolic_links_stay_inside_the_volume() {
    let fs = fresh();
    fs.create_dir_all("/a/b/c").unwrap();
    fs.write("/a/file", "here").unwrap();
    fs.symlink("/a", "/absolute").unwrap();
    fs.symlink("../../file", "/a/b/c/up").unwrap();
    fs.symlink("../../../../../../a/file", "/a/b/above").unwrap();
    fs.symlink("absolute/b", "/chain").unwrap();
    fs.symlink("none", "/dangling").unwrap();
    for path in ["/absolute/file", "/a/b/c/up", "/a/b/above", "/chain/../file", "/../../a/file"] {
        assert_eq!(fs.read(path).unwrap(), b"here", "{path}");
        assert_eq!(fs.canonicalize(path).unwrap(), Path::new("/a/file"), "{path}");
    }
    assert_eq!(fs.canonicalize("/chain/c/..").unwrap(), Path::new("/a/b"));
    assert_eq!(fs.canonicalize("/..").unwrap(), Path::new("/"));
    assert!(fs.symlink_metadata("/chain").unwrap().is_symlink());
    assert!(fs.symlink_metadata("/chain/").unwrap().is_dir());
    assert!(fs.metadata("/chain").unwrap().is_dir());
    assert_eq!(fs.read_link("/chain").unwrap(), Path::new("absolute/b"));
    wrong_kind(fs.read_link("/a"));
    not_found(fs.metadata("/dangling"));
    assert!(!fs.exists("/dangling").unwrap());
    not_found(fs.canonicalize("/dangling"));
    // A write through a link makes the file it leads to.
    fs.write("/dangling", "made").unwrap();
    assert_eq!(fs.read("/none").unwrap(), b"made");
    fs.remove_file("/chain").unwrap();
    assert!(fs.exists("/a/b").unwrap());
}

#[test]
fn errors_name_the_link_that_leads_to_what_failed() {
    let fs = fresh();
    fs.symlink("usr/bin", "/bin").unwrap();
    let message = |path: &str| fs.read(path).unwrap_err().to_string();
    let there = "no such file or directory; the link /bin leads there";
    assert_eq!(message("/bin/sh"), format!("/bin/sh: /usr: {there}"));
    fs.create_dir("/usr").unwrap();
    assert_eq!(message("bin/sh"), format!("bin/sh: /usr/bin: {there}"));
    assert_eq!(message("/bin"), format!("/bin: /usr/bin: {there}"));
    fs.create_dir("/usr/bin").unwrap();
    assert_eq!(message("/bin/sh"), format!("/bin/sh: /usr/bin/sh: {there}"));
    let error = fs.place("/bin/sub/sh").unwrap_err();
    assert_eq!(error.link(), Some(Path::new("/bin")));
    assert_eq!(error.to_string(), format!("/bin/sub/sh: /usr/bin/sub: {there}"));
    fs.write("/usr/bin/dash", "").unwrap();
    fs.symlink("/bin/dash", "/usr/bin/sh").unwrap();
    assert_eq!(
        message("/bin/sh/x"),
        "/bin/sh/x: /usr/bin/dash: not a directory; the link /bin leads there"
    );
    fs.symlink("around", "/around").unwrap();
    assert_eq!(message("/around/x"), "/around: too many levels of symbolic links");
    // What has no link on its way is named alone.
    assert_eq!(message("/usr/bin/dash/x"), "/usr/bin/dash: not a directory");
}

#[test]
fn places_are_names_in_directories() {
    let fs = fresh();
    fs.create_dir("/dir").unwrap();
    fs.symlink("dir/new", "/link").unwrap();
    let place = fs.place("/link").unwrap();
    assert_eq!((place.directory().number(), place.name()), (fs.root(), &b"link"[..]));
    assert!(place.metadata().unwrap().is_symlink());
    let place = fs.place_followed("/link").unwrap();
    let directory = fs.metadata("/dir").unwrap().number;
    assert_eq!((place.directory().number(), place.name()), (directory, &b"new"[..]));
    assert_eq!(place.metadata(), None);
    let file = fs.nodes().tmpfile(directory, &NewFile::new(0o600)).unwrap();
    file.write_at(0, b"whole").unwrap();
    fs.nodes().link_file(&file, directory, place.name()).unwrap();
    assert_eq!(fs.read("/link").unwrap(), b"whole");
    let error =
        place.failed(fs.nodes().mkdir(directory, b"new", &NewFile::new(0o755)).unwrap_err());
    assert_eq!(error.to_string(), "/link: exists already");
    assert!(fs.open_no_follow("/link").unwrap().metadata().is_symlink());
    let slashes = fs.place("/dir//").unwrap();
    assert!(slashes.expect_kind(FileType::Directory).is_ok());
    assert_eq!(slashes.expect_kind(FileType::Fifo).unwrap_err().kind(), ErrorKind::NotDirectory);
    assert_eq!(fs.place("/dir/..").unwrap_err().kind(), ErrorKind::InUse);
    fs.create_dir_all_as("/a/b", &NewFile::new(0o700).owned_by(5, 6)).unwrap();
    let modes = ["/a", "/a/b"].map(|path| {
        let found = fs.metadata(path).unwrap();
        (found.mode, found.uid, found.gid)
    });
    assert_eq!(modes, [(0o755, 5, 6), (0o700, 5, 6)]);
}

#[test]
fn circles_of_links_and_too_many_end() {
    let fs = fresh();
    fs.symlink("two", "/one").unwrap();
    fs.symlink("one", "/two").unwrap();
    fs.symlink("self/x", "/self").unwrap();
    for path in ["/one", "/two/x", "/self"] {
        let error = fs.read(path).unwrap_err();
        assert!(matches!(error.error(), Error::Loop(_)), "{error:?}");
    }
    fs.write("/0", "end").unwrap();
    for number in 1..=41 {
        fs.symlink(format!("{}", number - 1), format!("/{number}")).unwrap();
    }
    assert_eq!(fs.read("/40").unwrap(), b"end");
    assert!(matches!(fs.read("/41").unwrap_err().error(), Error::Loop(_)));
}

#[test]
fn directories_come_and_go() {
    let device = memory();
    let fs = open(&device);
    fs.create_dir("/one").unwrap();
    assert!(matches!(fs.create_dir("/one").unwrap_err().error(), Error::Exists(_)));
    assert!(matches!(fs.create_dir("/").unwrap_err().error(), Error::Exists(_)));
    not_found(fs.create_dir("/no/dir"));
    fs.create_dir_all("/one/two/three").unwrap();
    fs.create_dir_all("/one/two/three/").unwrap();
    fs.create_dir_all("/").unwrap();
    fs.write("/one/file", "").unwrap();
    wrong_kind(fs.create_dir_all("/one/file"));
    wrong_kind(fs.create_dir_all("/one/file/x"));
    fs.symlink("/one", "/link").unwrap();
    fs.create_dir_all("/link/four/five").unwrap();
    assert!(fs.exists("/one/four/five").unwrap());
    wrong_kind(fs.remove_file("/one"));
    wrong_kind(fs.remove_dir("/one/file"));
    wrong_kind(fs.remove_dir_all("/one/file"));
    not_found(fs.remove_dir_all("/none"));
    assert!(fs.remove_dir_all("/").is_err());
    assert!(fs.remove_dir("/one/..").is_err());
    fs.remove_dir_all("/link").unwrap();
    assert!(fs.exists("/one/four").unwrap(), "only the link went");
    fs.remove_dir_all("/one").unwrap();
    assert_eq!(fs.read_dir("/").unwrap().count(), 0);
    close_and_check(fs, &device);
}

#[test]
fn names_move_and_multiply() {
    let fs = fresh();
    fs.create_dir_all("/a/b").unwrap();
    fs.write("/a/file", "bytes").unwrap();
    fs.rename("/a/file", "/a/b/moved", RenameFlags::REPLACE).unwrap();
    assert_eq!(fs.read("/a/b/moved").unwrap(), b"bytes");
    fs.hard_link("/a/b/moved", "/second").unwrap();
    assert_eq!(fs.metadata("/second").unwrap().nlink, 2);
    wrong_kind(fs.hard_link("/a", "/directory"));
    let error = fs.rename("/second", "/a", RenameFlags::NO_REPLACE).unwrap_err();
    assert_eq!(error.to_string(), "/a: exists already");
    not_found(fs.rename("/none", "/x", RenameFlags::REPLACE));
    let error = fs.rename("/a", "/a/b/a", RenameFlags::REPLACE).unwrap_err();
    assert!(matches!(error.error(), Error::WrongKind { .. }), "{error:?}");
    assert!(fs.rename("/", "/x", RenameFlags::REPLACE).is_err());
}

#[test]
fn copies_take_permissions_and_are_independent() {
    let fs = fresh();
    let file = fs.create_file("/from", &NewFile::new(0o751)).unwrap();
    file.write_at(0, &[5; 10_000]).unwrap();
    assert_eq!(fs.copy("/from", "/to").unwrap(), 10_000);
    assert_eq!(fs.metadata("/to").unwrap().mode, 0o751);
    fs.open_file("/to").unwrap().write_at(0, b"other").unwrap();
    same(&fs.read("/from").unwrap(), &[5; 10_000]);
    fs.write("/long", vec![1; 50_000]).unwrap();
    fs.copy("/from", "/long").unwrap();
    same(&fs.read("/long").unwrap(), &[5; 10_000]);
    assert!(fs.copy("/from", "/from").is_err());
    same(&fs.read("/from").unwrap(), &[5; 10_000]);
    wrong_kind(fs.copy("/", "/x"));
    assert!(!fs.exists("/x").unwrap());
}

/// The ten lines of a program: both kinds of verbs under one `?`.
fn program(fs: &FileSystem) -> Result<usize, PathError> {
    fs.create_dir_all("/var/log")?;
    fs.write("/var/log/boot", "started\n")?;
    let number = fs.metadata("/var/log/boot")?.number;
    fs.nodes().set_xattr(number, b"user.by", b"program", SetMode::Create)?;
    let mut files = 0;
    for entry in fs.walk("/var")? {
        files += usize::from(entry?.metadata().is_file());
    }
    Ok(files)
}

#[test]
fn both_kinds_of_verbs_go_together() {
    let fs = fresh();
    assert_eq!(program(&fs).unwrap(), 1);
    let error = program(&fs).unwrap_err();
    assert!(matches!(error.into_error(), Error::Exists(_)));
}

#[test]
fn kinds_are_those_that_linux_has() {
    let fs = fresh();
    fs.create_dir_all("/dir/sub").unwrap();
    fs.write("/file", "").unwrap();
    fs.symlink("loop", "/loop").unwrap();
    let number = fs.metadata("/file").unwrap().number;
    let flags = Some(InodeFlags::IMMUTABLE);
    fs.write("/fixed", "").unwrap();
    let fixed = fs.open_file("/fixed").unwrap();
    fixed.set_attributes(&Change { flags, ..Change::default() }).unwrap();
    let rename = |from, to, flags| fs.rename(from, to, flags).unwrap_err().kind();
    let long = "x".repeat(256);
    let found = [
        (fs.read("/none").unwrap_err().kind(), ErrorKind::NotFound),
        (fs.read("/dir").unwrap_err().kind(), ErrorKind::IsDirectory),
        (fs.read("/file/x").unwrap_err().kind(), ErrorKind::NotDirectory),
        (fs.read("/loop").unwrap_err().kind(), ErrorKind::Loop),
        (fs.read(&long).unwrap_err().kind(), ErrorKind::NameTooLong),
        (fs.read_link("/file").unwrap_err().kind(), ErrorKind::Invalid),
        (fs.create_dir("/file").unwrap_err().kind(), ErrorKind::Exists),
        (fs.create_dir(&long).unwrap_err().kind(), ErrorKind::NameTooLong),
        (fs.create_dir_all("/file").unwrap_err().kind(), ErrorKind::NotDirectory),
        (fs.remove_dir("/dir").unwrap_err().kind(), ErrorKind::NotEmpty),
        (fs.remove_dir("/file").unwrap_err().kind(), ErrorKind::NotDirectory),
        (fs.remove_dir_all("/file").unwrap_err().kind(), ErrorKind::NotDirectory),
        (fs.remove_file("/dir").unwrap_err().kind(), ErrorKind::IsDirectory),
        (fs.remove_file("/fixed").unwrap_err().kind(), ErrorKind::NotPermitted),
        (fs.hard_link("/dir", "/x").unwrap_err().kind(), ErrorKind::NotPermitted),
        (rename("/file", "/dir", RenameFlags::REPLACE), ErrorKind::IsDirectory),
        (rename("/dir", "/file", RenameFlags::REPLACE), ErrorKind::NotDirectory),
        (rename("/dir", "/dir/sub/x", RenameFlags::REPLACE), ErrorKind::Invalid),
        (rename("/dir/sub", "/dir", RenameFlags::REPLACE), ErrorKind::NotEmpty),
        (rename("/file", "/fixed", RenameFlags::NO_REPLACE), ErrorKind::Exists),
        (fixed.write_at(0, b"x").unwrap_err().kind(), ErrorKind::NotPermitted),
        (fixed.set_len(1 << 63).unwrap_err().kind(), ErrorKind::NotPermitted),
        (
            fs.nodes().set_xattr(number, b"user.x", b"", SetMode::Replace).unwrap_err().kind(),
            ErrorKind::NoAttribute,
        ),
        (fs.nodes().stat(InodeNumber(number.0 + 40)).unwrap_err().kind(), ErrorKind::Stale),
    ];
    for (index, (found, expected)) in found.into_iter().enumerate() {
        assert_eq!(found, expected, "case {index}");
    }
    let system: std::io::Error = fs.read("/none").unwrap_err().into();
    assert_eq!(system.kind(), std::io::ErrorKind::NotFound);
}
