//! Inodes: core, verification, forks inside the inode.

use crate::blocks::block;
use crate::input::Input;
use crate::names;
use std::hint::black_box;
use undercroft_xfs::format::{
    BmapRoot, BufferKind, Extent, ForkFormat, InodeCore, TimestampEncoding, inode_crc_matches,
    stamp_inode_crc,
};

pub(crate) fn run(input: &[u8]) {
    let mut fuzzed = block(BufferKind::InodeCluster, Input(input));
    stamp_inode_crc(&mut fuzzed.bytes);
    assert!(inode_crc_matches(&fuzzed.bytes), "a new checksum is wrong");
    let (bytes, geometry) = (&fuzzed.bytes[..], &fuzzed.geometry);
    let Ok(core) = InodeCore::decode(bytes, geometry) else { return };
    let number = core.number;
    if core.verify(number, geometry).is_err() {
        return;
    }
    black_box((core.file_type(), core.timestamp_encoding()));
    for time in [core.atime, core.mtime, core.ctime, core.crtime] {
        for encoding in [TimestampEncoding::Legacy, TimestampEncoding::Bigtime] {
            let clamped = time.clamped(encoding);
            assert!(clamped.encode(encoding).is_ok(), "a clamped time is out of range");
        }
    }
    let mut again = bytes.to_vec();
    // Nanoseconds can be read that cannot be written.
    if core.encode(&mut again, geometry).is_ok() {
        let decoded = InodeCore::decode(&again, geometry);
        assert_eq!(decoded.as_ref(), Ok(&core), "an inode changes when it is written and read");
    }

    let (data, attr) = (core.data_fork(geometry), core.attr_fork(geometry));
    assert!(data.end <= attr.start && attr.end <= bytes.len(), "the forks overlap");
    fork(core.data_format, core.size, &bytes[data], geometry);
    if core.forkoff > 0 {
        fork(core.attr_format, 0, &bytes[attr], geometry);
    }
}

/// Reads a fork as each of the forms that it may have by its format.
fn fork(format: ForkFormat, size: u64, bytes: &[u8], geometry: &undercroft_xfs::Geometry) {
    match format {
        ForkFormat::Local => {
            let len = usize::try_from(size).unwrap_or(usize::MAX).min(bytes.len());
            names::directory_shortform(&bytes[..len], geometry);
            names::attribute_shortform(bytes);
        }
        ForkFormat::Extents => bytes.chunks_exact(Extent::LEN).for_each(|record| {
            let extent = Extent::decode(record);
            drop(extent.validate().map_err(|defect| defect.to_string()));
        }),
        ForkFormat::Btree => drop(BmapRoot::decode(bytes).map_err(|defect| defect.to_string())),
        _ => {}
    }
}
