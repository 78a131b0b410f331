//! Archives of all formats and compressions, from files and pipes.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, mknodat, utimensat};
use undercroft_judges::kernel;

use crate::build::odd::odd_tree;
use undercroft_testkit::image::judged::{assert_built, options};

/// What keeps everything that an archive can keep.
const WHOLE: &[&str] = &["--format=pax", "--acls", "--xattrs", "--xattrs-include=*", "--sparse"];

/// GNU tar at work on an archive of a tree.
fn tar(tree: &Path, to: &Path, arguments: &[&str]) -> Child {
    // Opening a pipe waits for its reader, which the shell may do as well as this thread.
    let mut command = Command::new("sh");
    command.args(["-c", "to=$1; shift; exec tar --create \"$@\" > \"$to\"", "sh"]).arg(to);
    command.args(["--numeric-owner", "--file=-"]).args(arguments);
    command.arg("--directory").arg(tree).arg(".").spawn().unwrap()
}

#[test]
fn everything() {
    if !kernel::available_or_report() {
        return;
    }
    let tree = odd_tree();
    // GNU tar leaves sockets out, and forgets that a pipe has two names.
    fs::remove_file(tree.path().join("special/socket")).unwrap();
    fs::remove_file(tree.path().join("hardlinks/elsewhere/fifo")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    for further in [
        &[][..],
        &["--gzip"],
        &["--zstd"],
        &["--xz"],
        &["--sparse-version=0.0"],
        &["--sparse-version=0.1"],
    ] {
        println!("tar {further:?}");
        let from = directory.path().join("archive");
        assert!(tar(tree.path(), &from, &[WHOLE, further].concat()).wait().unwrap().success());
        let mut options = options(&from, &directory.path().join("image"));
        options.force = true;
        assert_built(&options, tree.path());
    }
}

/// Appends to an archive, as an archive is made by adding changed files.
fn append(tree: &Path, archive: &Path, members: &[&str]) {
    let mut command = Command::new("tar");
    command.args(["--append", "--format=pax", "--sparse", "--file"]).arg(archive);
    let status = command.arg("--directory").arg(tree).args(members).status().unwrap();
    assert!(status.success());
}

#[test]
fn members_that_come_again_count_as_when_the_archive_is_unpacked() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let [tree, unpacked, archive] =
        ["tree", "unpacked", "archive.tar"].map(|name| home.path().join(name));
    fs::create_dir_all(tree.join("inner")).unwrap();
    fs::create_dir(&unpacked).unwrap();
    fs::write(tree.join("file"), vec![1; 3_000_000]).unwrap();
    fs::hard_link(tree.join("file"), tree.join("inner/link")).unwrap();
    fs::write(tree.join("inner/other"), vec![2; 700_000]).unwrap();
    symlink("somewhere", tree.join("inner/symlink")).unwrap();
    let sparse = File::create(tree.join("sparse")).unwrap();
    (0..100).for_each(|at| sparse.write_all_at(&[3; 4096], at << 20).unwrap());
    append(&tree, &archive, &["."]);
    // Two linked names become two files; a link, a symbolic link and a file change places.
    fs::remove_file(tree.join("file")).unwrap();
    fs::write(tree.join("file"), vec![4; 1_000_000]).unwrap();
    append(&tree, &archive, &["./file"]);
    fs::remove_file(tree.join("inner/symlink")).unwrap();
    fs::hard_link(tree.join("file"), tree.join("inner/symlink")).unwrap();
    fs::remove_file(tree.join("inner/other")).unwrap();
    symlink("elsewhere", tree.join("inner/other")).unwrap();
    fs::write(tree.join("sparse"), "no longer").unwrap();
    append(&tree, &archive, &["./file", "./inner/symlink", "./inner/other", "./sparse"]);
    // Data that follows a freed file goes to the same places.
    for number in 0..50_u8 {
        fs::write(tree.join(format!("inner/later-{number}")), vec![number; 100_000]).unwrap();
    }
    append(&tree, &archive, &["./inner"]);
    let mut tar = Command::new("tar");
    tar.arg("-xpf").arg(&archive).arg("--directory").arg(&unpacked);
    assert!(tar.status().unwrap().success());
    assert_eq!(fs::read(unpacked.join("inner/link")).unwrap(), vec![1; 3_000_000]);

    let summary = assert_built(&options(&archive, &home.path().join("image")), &unpacked);
    let found = (summary.files, summary.symlinks, summary.hard_links);
    // "inner" was appended without "file", so its link came again as a file.
    assert_eq!(found, (54, 1, 0));
    assert_eq!(summary.bytes, 3_000_000 + 2 * 1_000_000 + 9 + 50 * 100_000);
}

#[test]
fn pipes() {
    if !kernel::available_or_report() {
        return;
    }
    let tree = small_tree();
    for compression in ["--no-auto-compress", "--gzip", "--zstd", "--xz"] {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        let mut writer = tar(tree.path(), &pipe, &["--format=pax", "--sparse", compression]);
        assert_built(&options(&pipe, &directory.path().join("image")), tree.path());
        assert!(writer.wait().unwrap().success());
    }
}

#[test]
fn older_formats() {
    if !kernel::available_or_report() {
        return;
    }
    for arguments in [&["--format=ustar"][..], &["--format=gnu", "--sparse"], &["--format=oldgnu"]]
    {
        let (tree, directory) = (small_tree(), tempfile::tempdir().unwrap());
        let from = directory.path().join("archive");
        if arguments.len() == 1 {
            // Without --sparse a hole becomes zeros.
            let path = tree.path().join("inner/sparse");
            fs::write(&path, fs::read(&path).unwrap()).unwrap();
            set_times(tree.path());
        }
        assert!(tar(tree.path(), &from, arguments).wait().unwrap().success());
        assert_built(&options(&from, &directory.path().join("image")), tree.path());
    }
}

/// A tree that the oldest format can hold: no attributes, no large numbers, whole seconds.
fn small_tree() -> tempfile::TempDir {
    let tree = tempfile::tempdir().unwrap();
    let root = tree.path();
    fs::create_dir_all(root.join("inner/deeper")).unwrap();
    fs::create_dir_all(root.join("inner").join("d".repeat(90))).unwrap();
    fs::write(root.join("inner").join("d".repeat(90)).join("f".repeat(99)), "long names").unwrap();
    fs::write(root.join("inner/file"), vec![3; 100_000]).unwrap();
    fs::hard_link(root.join("inner/file"), root.join("inner/deeper/name")).unwrap();
    fs::set_permissions(root.join("inner/file"), fs::Permissions::from_mode(0o4711)).unwrap();
    symlink("../file", root.join("inner/deeper/link")).unwrap();
    let fifo = root.join("inner/fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let sparse = File::create(root.join("inner/sparse")).unwrap();
    sparse.set_len(1 << 20).unwrap();
    sparse.write_all_at(&[7; 65_536], 1 << 19).unwrap();
    set_times(root);
    tree
}

/// One time for all of a tree.
fn set_times(path: &Path) {
    if path.is_dir() && !path.is_symlink() {
        for entry in fs::read_dir(path).unwrap() {
            set_times(&entry.unwrap().path());
        }
    }
    let time = Timespec { tv_sec: 1_000_000_000, tv_nsec: 0 };
    let times = Timestamps { last_access: time, last_modification: time };
    utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

/// An archive of a volume holds access control lists in all forms that programs read: whatever options for
/// them a program is given, it makes the lists of the tree.
#[test]
fn access_lists_of_a_volume_are_read_by_all_programs() {
    let run = |program: &str, arguments: &[&str], at: &Path| {
        let output = Command::new(program).args(arguments).current_dir(at).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {arguments:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    };
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let tree = home.path().join("tree");
    fs::create_dir_all(tree.join("d")).unwrap();
    fs::write(tree.join("f"), b"f").unwrap();
    run("setfacl", &["-m", "u:1234:rwx,g:77:r-x", "f"], &tree);
    run("setfacl", &["-m", "u:1234:rwx,d:u:99:rw-,d:g:77:r-x", "d"], &tree);
    let lists = |at: &Path| run("getfacl", &["-Rcn", "."], at);
    let image = home.path().join("image");
    undercroft_testkit::image::judged::build(&options(&tree, &image)).unwrap();
    let device = undercroft_block::FileDevice::open(&image, true).unwrap();
    let volume = Arc::new(undercroft_xfs::Volume::open(Arc::new(device)).unwrap());
    let mut archive = File::create(home.path().join("archive")).unwrap();
    undercroft_image::unpack::to_tar(&volume, &mut archive, &mut |_| {}).unwrap();
    for (number, (program, how)) in [
        ("tar", &["--acls"][..]),
        ("tar", &["--xattrs", "--xattrs-include=*"]),
        ("tar", &["--acls", "--xattrs", "--xattrs-include=*"]),
        ("bsdtar", &[]),
        ("bsdtar", &["--acls"]),
        ("bsdtar", &["--acls", "--xattrs"]),
    ]
    .into_iter()
    .enumerate()
    {
        let out = home.path().join(number.to_string());
        fs::create_dir(&out).unwrap();
        run(program, &[how, &["--numeric-owner", "-xpf", "../archive"]].concat(), &out);
        assert_eq!(lists(&out), lists(&tree), "{program} {how:?}");
    }
}
