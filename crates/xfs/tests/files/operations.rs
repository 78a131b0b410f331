//! Operations on names and inodes: random streams of them against a model and against the kernel,
//! on volumes of all formats.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use undercroft_block::{BlockDevice, FileDevice};
use undercroft_judges::Xfsprogs;
use undercroft_judges::kernel::available_or_report;
use undercroft_testkit::xfs::operations;
use undercroft_xfs::check::{CheckOptions, check};
use undercroft_xfs::format::FileType;
use undercroft_xfs::format::Timestamp;
use undercroft_xfs::inode::ForkContent;
use undercroft_xfs::mkfs::{self, MkfsOptions};
use undercroft_xfs::ops::SetMode;
use undercroft_xfs::ops::{self, NewInode};
use undercroft_xfs::volume::LiveOptions;
use undercroft_xfs::{OpenFile, Volume};
use uuid::Uuid;

/// An empty volume of ours.
fn empty(directory: &Path, options: &MkfsOptions) -> PathBuf {
    let image = directory.join("volume.img");
    let file = std::fs::File::create(&image).unwrap();
    file.set_len(options.size).unwrap();
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(&image, false).unwrap());
    let root = NewInode::new(FileType::Directory, 0o755);
    let volume = mkfs::begin(&device, mkfs::plan(options).unwrap(), &root).unwrap();
    mkfs::finish(&volume, false).unwrap();
    image
}

fn options(block_size: u32) -> MkfsOptions {
    MkfsOptions { block_size, ..MkfsOptions::new(1 << 30, Uuid::from_u128(0x09e5)) }
}

#[test]
fn operations_do_what_the_model_does() {
    for (seed, block_size) in [(1, 4096), (2, 1024), (3, 4096), (4, 16384), (5, 1024)] {
        let directory = tempfile::tempdir().unwrap();
        let image = empty(directory.path(), &options(block_size));
        operations::against_model(&image, seed, 3, 2500);
    }
}

#[test]
fn operations_do_what_the_kernel_does() {
    if !available_or_report() {
        return;
    }
    for (seed, format) in (100..).zip(operations::formats()) {
        let directory = tempfile::tempdir().unwrap();
        let image = directory.path().join("volume.img");
        format.make(&image, &[]).unwrap();
        println!("{}", format.name);
        operations::against_kernel(&image, seed, 1, 400);
    }
}

/// Links, directories and files whose data fills the inode to some extent, and how their data is
/// stored afterwards when an attribute takes room from it.
#[test]
fn data_makes_way_for_attributes() {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("volume.img");
    let format = ["-b", "size=1024", "-n", "size=4096", "-n", "parent=0"];
    Xfsprogs::newest().unwrap().mkfs(&image, 320 << 20, &format).unwrap();
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(&image, false).unwrap());
    let volume = Volume::open_live(Arc::clone(&device), &LiveOptions::default());
    let volume = Arc::new(volume.unwrap());
    let root = volume.geometry().root_inode;
    let now = Timestamp { seconds: 5, nanoseconds: 0 };
    let make = |name: &str, kind: FileType, target: &[u8]| {
        let new = NewInode { target, ..NewInode::new(kind, 0o755) };
        ops::make(&volume, root, name.as_bytes(), &new).unwrap()
    };
    let file = make("file", FileType::Regular, &[]);
    let mut inodes = Vec::new();
    for size in [10_usize, 100, 1000, 100_000] {
        // In the inode, in a leaf, in blocks of its own.
        for len in [100, 190, 250, 300, 320, 336] {
            let link = make(&format!("l{size}-{len}"), FileType::Symlink, &vec![b't'; len]);
            let inside = make(&format!("d{size}-{len}"), FileType::Directory, &[]);
            let count = len / 40;
            for number in 0..count {
                let name = format!("{number:029}");
                ops::link(&volume, file, inside, name.as_bytes(), now).unwrap();
            }
            inodes.push((link, size, Some(len)));
            inodes.push((inside, size, None));
        }
        // Mapped by trees whose roots have 1 to 20 entries.
        for extents in [30_u64, 500, 800, 1180] {
            let file = make(&format!("f{size}-{extents}"), FileType::Regular, &[]);
            let open = OpenFile::open(&volume, file).unwrap();
            let memory = Arc::new(vec![7; 1024]);
            for extent in 0..extents {
                open.write_direct(extent * 2048, &memory, 0..1024, now).unwrap();
            }
            open.close().unwrap();
            let inode = volume.inode(file).unwrap();
            assert!(matches!(inode.read().data.content, ForkContent::Btree(..)), "{extents}");
            inodes.push((file, size, None));
        }
    }
    for (inode, size, _) in &inodes {
        let value = vec![1; (*size).min(65536)];
        ops::set_xattr(&volume, *inode, (b"trusted.x", &value), SetMode::Create, now).unwrap();
    }
    volume.close().unwrap();
    let volume = Volume::open(Arc::clone(&device)).unwrap();
    for (number, size, target) in inodes {
        let inode = volume.inode(number).unwrap();
        let value = ops::get_xattr(&volume, &inode.read(), b"trusted.x").unwrap();
        assert_eq!(value.map(|value| value.len()), Some(size.min(65536)));
        if let Some(len) = target {
            assert_eq!(ops::read_link(&volume, &inode.read()).unwrap(), vec![b't'; len]);
        }
    }
    Xfsprogs::newest().unwrap().repair_check(&image).unwrap();
    let report = check(device, &CheckOptions::default(), &mut |finding| panic!("{finding}"));
    assert!(report.unwrap().is_clean());
}
