//! Volumes whose counts and trees of inodes were damaged with `xfs_db`, which repairs checksums: files
//! are made and removed until the damage is met. It is named, and nothing overflows.

use std::path::Path;
use std::sync::Arc;
use undercroft_block::{BlockDevice, FileDevice};
use undercroft_judges::Xfsprogs;
use undercroft_judges::damage::Damage;
use undercroft_xfs::format::{FileType, Timestamp};
use undercroft_xfs::ops::{self, NewInode};
use undercroft_xfs::volume::LiveOptions;
use undercroft_xfs::{Error, Volume};

const NOW: Timestamp = Timestamp { seconds: 1_700_000_000, nanoseconds: 0 };
/// Files for which the first chunk has room, beside the root directory and two files of the volume.
const FIRST_CHUNK: u32 = 61;

/// A volume in one of its first states, and the directory that it is in.
fn empty() -> (tempfile::TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    Xfsprogs::newest().unwrap().mkfs(&image, 64 << 20, &["-d", "agcount=2"]).unwrap();
    (directory, image)
}

fn open(image: &Path) -> Arc<Volume> {
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(image, false).unwrap());
    Arc::new(Volume::open_live(device, &LiveOptions::default()).unwrap())
}

fn create(volume: &Volume, number: u32) -> Result<(), Error> {
    let new = NewInode::new(FileType::Regular, 0o644);
    let root = volume.geometry().root_inode;
    ops::make(volume, root, format!("file-{number}").as_bytes(), &new).map(drop)
}

#[test]
fn a_chunk_without_a_free_inode_in_the_tree_of_free_ones_is_named() {
    let (_directory, image) = empty();
    let script =
        &["agi 0", "addr free_root", "write -d recs[1].free 0", "write -d recs[1].freecount 0"];
    Damage { name: "finobt", script }.apply(&image).unwrap();
    let error = create(&open(&image), 0).unwrap_err().to_string();
    assert!(error.contains("free inodes are counted, but none is found"), "{error}");
}

/// The last inode of a chunk goes, and the chunk with it, although the group counts fewer.
#[test]
fn counts_of_a_group_do_not_go_below_zero() {
    let counts: [&[&str]; 2] = [
        &["agi 0", "write -d freecount 5"],
        &["agi 0", "write -d count 63", "write -d freecount 63"],
    ];
    for script in counts {
        let (_directory, image) = empty();
        let volume = open(&image);
        for number in 0..=FIRST_CHUNK {
            create(&volume, number).unwrap();
        }
        volume.close().unwrap();
        Damage { name: "counts", script }.apply(&image).unwrap();
        drop(volume);
        let volume = open(&image);
        let root = volume.geometry().root_inode;
        let last = format!("file-{FIRST_CHUNK}");
        let error = ops::unlink(&volume, root, last.as_bytes(), NOW).unwrap_err().to_string();
        assert!(error.contains("has more inodes than the group"), "{script:?}: {error}");
    }
}
