//! The header of a qcow2 image, as far as it decides whether and how it is opened.
//!
//! Fields and limits: docs/interop/qcow2 in QEMU's documentation.

use crate::field::{be32, be64};
use crate::obstacle::{Obstacle, damaged, not_supported};
use imago::FormatAccess;
use imago::file::File as Storage;

/// The disk in an image, with all files that its bytes come from.
pub(crate) type Image = FormatAccess<Storage>;

/// Bytes that are looked at.
pub(crate) const LENGTH: usize = 104;

/// Clusters have from 512 bytes to 2 MiB.
const CLUSTER_BITS: std::ops::RangeInclusive<u32> = 9..=21;
/// Longest first table of clusters, as QEMU takes it: 32 MiB of entries.
const MAX_L1_ENTRIES: u32 = (32 << 20) / 8;
/// Longest table of reference counts: 8 MiB.
const MAX_REFCOUNT_TABLE: u64 = 8 << 20;

const DIRTY: u64 = 1;
const CORRUPT: u64 = 1 << 1;
const EXTERNAL_DATA: u64 = 1 << 2;
const COMPRESSION_TYPE: u64 = 1 << 3;
const EXTENDED_L2: u64 = 1 << 4;

/// Whether a file begins as a qcow2 image.
pub(crate) fn is_qcow2(start: &[u8]) -> bool {
    start.starts_with(b"QFI\xfb")
}

/// Whether it has the changes to another one.
pub(crate) fn has_backing(header: &[u8]) -> bool {
    be64(header, 8) != 0
}

/// Whether an image of version 3 was not closed.
pub(crate) fn is_dirty(header: &[u8]) -> bool {
    header.len() >= LENGTH && be32(header, 4) == 3 && be64(header, 72) & DIRTY != 0
}

/// Looks at the fields of an image of `file_bytes` bytes, of which `bytes` are the first. Absurd sizes
/// are refused here, before memory is taken for them.
pub(crate) fn check(bytes: &[u8], file_bytes: u64, writable: bool) -> Result<(), Obstacle> {
    let Some(fixed) = bytes.get(..72) else {
        return damaged(format!("the file has {} bytes, fewer than a header", bytes.len()));
    };
    let (version, cluster_bits) = (be32(fixed, 4), be32(fixed, 20));
    if !(2..=3).contains(&version) {
        return not_supported("a version other than 2 and 3");
    }
    if !CLUSTER_BITS.contains(&cluster_bits) {
        return damaged(format!("clusters of 2^{cluster_bits} bytes"));
    }
    if be32(fixed, 32) != 0 {
        return not_supported("encryption");
    }
    let (size, l1_entries) = (be64(fixed, 24), be32(fixed, 36));
    if size > i64::MAX as u64 {
        return damaged(format!("a disk of {size} bytes"));
    }
    // Each entry of the first table stands for a cluster of entries of eight bytes.
    let needed = size.div_ceil(1 << (2 * cluster_bits - 3));
    if l1_entries > MAX_L1_ENTRIES || u64::from(l1_entries) < needed {
        return damaged(format!("a table of {l1_entries} entries for a disk of {size} bytes"));
    }
    let refcount_table = u64::from(be32(fixed, 56)) << cluster_bits;
    if refcount_table > MAX_REFCOUNT_TABLE {
        return damaged(format!("a table of reference counts of {refcount_table} bytes"));
    }
    for (what, at, length) in [
        ("the first table of clusters", be64(fixed, 40), u64::from(l1_entries) * 8),
        ("the table of reference counts", be64(fixed, 48), refcount_table),
    ] {
        if at.checked_add(length).is_none_or(|end| end > file_bytes) {
            return damaged(format!("{what} ends behind the file; is it cut?"));
        }
    }
    features(bytes, version, writable)
}

/// The features that an image of version 3 says it has.
fn features(bytes: &[u8], version: u32, writable: bool) -> Result<(), Obstacle> {
    if version == 2 {
        return Ok(());
    }
    let Some(bytes) = bytes.get(..LENGTH) else {
        return damaged("a header that is cut");
    };
    let features = be64(bytes, 72);
    let has = |feature| features & feature != 0;
    if has(EXTERNAL_DATA) {
        return not_supported("its data in another file");
    }
    if has(COMPRESSION_TYPE) {
        return not_supported("clusters compressed with zstd");
    }
    if has(EXTENDED_L2) {
        return not_supported("subclusters");
    }
    if features & !(DIRTY | CORRUPT) != 0 {
        return not_supported("features of a newer QEMU");
    }
    if has(CORRUPT) {
        let what = "QEMU has marked it as corrupt; `qemu-img check -r all` repairs it";
        return damaged(what);
    }
    if has(DIRTY) && writable {
        let what = "it was not closed, and its reference counts are old; `qemu-img check -r all` renews them";
        return damaged(what);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header of version 3 of a disk of 1 GiB, and some fields else.
    fn header(fields: &[(usize, u64, usize)]) -> Vec<u8> {
        let mut bytes = vec![0; LENGTH];
        bytes[..4].copy_from_slice(b"QFI\xfb");
        let usual = [
            (4, 3, 4),
            (20, 16, 4),
            (24, 1 << 30, 8),
            (36, 2, 4),
            (40, 3 << 16, 8),
            (48, 1 << 16, 8),
        ];
        let more = [(56, 1, 4), (96, 4, 4), (100, 104, 4)];
        for (at, value, length) in usual.iter().chain(&more).chain(fields) {
            bytes[*at..at + length].copy_from_slice(&value.to_be_bytes()[8 - length..]);
        }
        bytes
    }

    #[test]
    fn absurd_fields_are_named() {
        let is_right = |fields: &[_], writable| check(&header(fields), 1 << 20, writable);
        assert!(is_right(&[], true).is_ok());
        assert!(is_right(&[(72, DIRTY, 8)], false).is_ok());
        for (field, word) in [
            ((4, 9, 4), "version"),
            ((20, 40, 4), "2^40"),
            ((20, 8, 4), "2^8"),
            ((24, u64::MAX, 8), "disk of"),
            ((24, 1 << 60, 8), "2 entries"),
            ((32, 1, 4), "encryption"),
            ((36, u64::from(u32::MAX), 4), "entries"),
            ((40, u64::MAX, 8), "behind the file"),
            ((48, 1 << 20, 8), "reference counts ends behind"),
            ((56, u64::from(u32::MAX), 4), "reference counts of"),
            ((72, DIRTY, 8), "not closed"),
            ((72, CORRUPT, 8), "corrupt"),
            ((72, EXTERNAL_DATA, 8), "another file"),
            ((72, COMPRESSION_TYPE, 8), "zstd"),
            ((72, EXTENDED_L2, 8), "subclusters"),
            ((72, 1 << 40, 8), "newer"),
        ] {
            let obstacle = is_right(&[field], true).unwrap_err();
            assert!(format!("{obstacle:?}").contains(word), "{obstacle:?} for {word}");
        }
        assert!(check(&header(&[])[..80], 1 << 20, true).is_err());
        assert!(check(b"QFI\xfb", 4, true).is_err());
    }
}
