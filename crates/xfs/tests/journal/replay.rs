//! What the kernel makes of a volume that we changed.

use std::path::Path;
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Xfsprogs, kernel};
use undercroft_testkit::xfs::journal::work::{create, create_sized, link, make, open};
use undercroft_xfs::Volume;
use undercroft_xfs::format::FileType;
use undercroft_xfs::mkfs::MkfsOptions;
use uuid::Uuid;

fn fill(volume: &Volume) {
    let root = volume.geometry().root_inode;
    let directory = create(volume, root, "directory", FileType::Directory).unwrap();
    for number in 0..3000 {
        let name = format!("{}-{number}", "file".repeat(number % 20 + 1));
        let kind = match number % 50 {
            0 => FileType::Directory,
            1 => FileType::Symlink,
            2 => FileType::Fifo,
            _ => FileType::Regular,
        };
        let size = if kind == FileType::Regular { number as u64 % 7 * 3000 } else { 0 };
        let large = vec![b'v'; number % 6000];
        let attributes = [(&b"user.large"[..], &large[..]), (b"trusted.small", b"x")];
        let attributes = if number % 20 == 0 { &attributes[..] } else { &[] };
        create_sized(volume, directory, &name, kind, attributes, size).unwrap();
    }
    let file = create(volume, root, "linked", FileType::Regular).unwrap();
    for number in 0..100 {
        link(volume, directory, &format!("link-{number}"), file);
    }
}

/// A new volume in `image`, open and [filled](fill).
fn filled(image: &Path) -> Volume {
    make(image, &MkfsOptions::new(512 << 20, Uuid::from_u128(7)));
    let volume = open(image);
    fill(&volume);
    volume
}

/// Entries of a directory, each of which can be looked at.
fn names(directory: &Path) -> usize {
    let entries = std::fs::read_dir(directory).unwrap();
    let found: Vec<_> = entries.map(|entry| entry.unwrap().metadata().unwrap()).collect();
    found.len()
}

#[test]
fn a_kernel_replays_what_a_dropped_volume_left() {
    if !kernel::available_or_report() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    let volume = filled(&image);
    volume.sync().unwrap();
    drop(volume);
    let mount = LoopMount::new(&image, Access::ReadWrite, &[]).unwrap();
    assert_eq!(names(&mount.join("directory")), 3100);
    mount.unmount().unwrap();
    Xfsprogs::newest().unwrap().repair_check(&image).unwrap();
}

#[test]
fn a_closed_volume_is_clean() {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    let volume = filled(&image);
    volume.close().unwrap();
    drop(volume);
    Xfsprogs::newest().unwrap().repair_check(&image).unwrap();
}

/// `xfs_logprint` reads a journal of ours to its end.
#[test]
fn logprint_reads_the_journal() {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    let volume = filled(&image);
    volume.sync().unwrap();
    drop(volume);
    for arguments in [&["-t"][..], &["-t", "-i"], &["-t", "-b"], &["-d"], &[]] {
        let newest = Xfsprogs::newest().unwrap();
        let mut command = std::process::Command::new(newest.tool("xfs_logprint").unwrap());
        let output = command.args(arguments).arg(&image).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).to_lowercase()
            + &String::from_utf8_lossy(&output.stderr).to_lowercase();
        assert!(output.status.success(), "{arguments:?}: {text}");
        for word in
            ["error", "bad magic", "bad log", "illegal", "unknown", "unrecognised", "corrupt"]
        {
            let line = text.lines().find(|line| line.contains(word));
            assert!(line.is_none(), "{arguments:?}: {line:?}");
        }
    }
}
