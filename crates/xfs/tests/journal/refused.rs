//! What may not be changed, or not in this way.

use std::sync::Arc;
use undercroft_block::{BlockDevice, Sector, read_exact_at, write_all_at};
use undercroft_testkit::xfs::journal::crash::make;
use undercroft_testkit::xfs::journal::work::{create, new};
use undercroft_xfs::format::{Extent, FileType, checksum, superblock};
use undercroft_xfs::inode::ForkKind;
use undercroft_xfs::internals::bmap;
use undercroft_xfs::mkfs::{MkfsOptions, Preset};
use undercroft_xfs::ops::{self, DataPlacement};
use undercroft_xfs::units::{FileBlock, InodeNumber};
use undercroft_xfs::volume::LiveOptions;
use undercroft_xfs::{Error, Volume};
use uuid::Uuid;

fn options() -> MkfsOptions {
    MkfsOptions::new(64 << 20, Uuid::from_u128(1))
}

fn live(device: &Arc<dyn BlockDevice>) -> Result<Volume, Error> {
    Volume::open_live(Arc::clone(device), &LiveOptions::default())
}

/// C20: what this version does not maintain, or does not know, is refused by its name, and nothing
/// is written.
#[test]
fn c20_features_not_maintained_are_refused() {
    let cases: [(usize, &[u8], &str); 4] = [
        (212, &[0, 0, 1, 13], "features 0x100"),
        (220, &[0, 0, 0, 6], "its journal has features 0x6"),
        (48, &[0; 8], "another device"),
        (216, &[0, 0, 0, 0x1b], "xfs_repair"),
    ];
    for (offset, bytes, expected) in cases {
        let device = make(&options());
        let mut sector = [0; 512];
        read_exact_at(device.as_ref(), Sector(0), &mut sector).unwrap();
        sector[offset..offset + bytes.len()].copy_from_slice(bytes);
        checksum::stamp(&mut sector, superblock::CRC_OFFSET);
        write_all_at(device.as_ref(), Sector(0), &sector).unwrap();
        let before = device.statistics();
        let error = live(&device).unwrap_err();
        assert!(error.to_string().contains(expected), "{expected}: {error}");
        assert_eq!(device.statistics().bytes_written, before.bytes_written);
    }
}

/// Opening and closing without a change leaves no trace.
#[test]
fn nothing_changed_is_nothing_written() {
    let device = make(&options());
    let before = device.statistics();
    live(&device).unwrap().close().unwrap();
    assert_eq!(device.statistics().bytes_written, before.bytes_written);
}

/// An operation that could never fit the journal is refused before it starts.
#[test]
fn too_much_for_the_journal_is_refused() {
    let device = make(&options());
    let volume = live(&device).unwrap();
    let limit = volume.log_limit();
    assert!(volume.begin_sized(limit).is_ok());
    let error = volume.begin_sized(limit + 1).unwrap_err();
    assert!(matches!(error, Error::Invalid(_)), "{error}");
    // The volume is as good as before.
    create(&volume, volume.geometry().root_inode, "file", FileType::Regular).unwrap();
    volume.close().unwrap();
}

fn extents(volume: &Volume, file: InodeNumber) -> Vec<Extent> {
    let inode = volume.inode(file).unwrap();
    let inode = inode.read();
    bmap::extents(volume, &inode, ForkKind::Data).unwrap().as_slice().to_vec()
}

fn file(volume: &Volume, name: &str, size: u64) -> InodeNumber {
    let mut trans = volume.begin().unwrap();
    let mut parent = volume.lock_inode(volume.geometry().root_inode).unwrap();
    let new = new(FileType::Regular);
    let mut inode = ops::create(&mut trans, &mut parent, name.as_bytes(), &new).unwrap();
    let mut placement = DataPlacement::new(volume.geometry());
    let data = std::iter::once(0..size);
    ops::allocate_file(&mut trans, &mut inode, size, data, &mut placement).unwrap();
    let number = inode.number;
    trans.commit(&mut [&mut parent, &mut inode]).unwrap();
    number
}

/// C15: blocks that were freed hold no new data before the freeing is durable: a crash would bring
/// the old owner back.
#[test]
fn c15_freed_blocks_wait_for_the_journal() {
    let device = make(&MkfsOptions::new(256 << 20, Uuid::from_u128(1)));
    let volume = live(&device).unwrap();
    let old = file(&volume, "old", 8 << 20);
    volume.sync().unwrap();
    let freed = extents(&volume, old);
    {
        let mut trans = volume.begin().unwrap();
        let mut inode = volume.lock_inode(old).unwrap();
        let (from, to) = (FileBlock(0), FileBlock(1 << 20));
        while bmap::remove(&mut trans, &mut inode, ForkKind::Data, from, to).unwrap() {}
        trans.commit(&mut [&mut inode]).unwrap();
    }
    let overlaps = |file: InodeNumber| {
        extents(&volume, file).iter().any(|new| {
            freed.iter().any(|old| {
                new.start.0 < old.start.0 + u64::from(old.len)
                    && old.start.0 < new.start.0 + u64::from(new.len)
            })
        })
    };
    let early: Vec<_> =
        (0..20).map(|number| file(&volume, &format!("early-{number}"), 1 << 20)).collect();
    assert!(!early.into_iter().any(overlaps));
    volume.sync().unwrap();
    let late: Vec<_> =
        (0..10).map(|number| file(&volume, &format!("late-{number}"), 1 << 20)).collect();
    assert!(late.into_iter().any(overlaps));
}

/// C18: blocks of directories that are longer than blocks of the volume lie in one piece.
#[test]
fn c18_directory_blocks_lie_in_one_piece() {
    let options = MkfsOptions { dir_block_size: Some(16 << 10), ..options() };
    let device = make(&options);
    let volume = live(&device).unwrap();
    let root = volume.geometry().root_inode;
    // Single free blocks everywhere.
    let files: Vec<_> =
        (0..300).map(|number| file(&volume, &format!("file-{number}"), 4096)).collect();
    for file in files.iter().step_by(2) {
        let mut trans = volume.begin().unwrap();
        let mut inode = volume.lock_inode(*file).unwrap();
        bmap::remove(&mut trans, &mut inode, ForkKind::Data, FileBlock(0), FileBlock(1)).unwrap();
        trans.commit(&mut [&mut inode]).unwrap();
    }
    volume.sync().unwrap();
    for number in 0..2000 {
        create(&volume, root, &format!("{}-{number}", "n".repeat(80)), FileType::Fifo).unwrap();
    }
    let extents = extents(&volume, root);
    assert!(extents.iter().map(|extent| extent.len).sum::<u32>() >= 40);
    for extent in &extents {
        assert!(extent.offset.0.is_multiple_of(4) && extent.len.is_multiple_of(4), "{extent:?}");
    }
    volume.close().unwrap();
}

/// A volume of an old kernel's format is changed as well.
#[test]
fn older_formats_are_changed_too() {
    for preset in [Preset::Linux4_19, Preset::Linux5_10] {
        let device = make(&MkfsOptions { preset, ..options() });
        let volume = live(&device).unwrap();
        create(&volume, volume.geometry().root_inode, "file", FileType::Regular).unwrap();
        volume.close().unwrap();
    }
}
