//! The copies of the superblock: the primary beyond what opening a volume demands, and every
//! secondary against it (docs/format/superblock.md#copies).

use super::checker::Checker;
use super::{Finding, Location};
use crate::bytes::be32;
use crate::format::{Incompat, Superblock, VersionBits};
use crate::geometry::Geometry;
use crate::units::{AgNumber, InodeNumber};

/// State of a quota of groups or projects, whichever it was.
const OLD_QUOTA: u16 = 0x30;
/// State of a quota of groups, and of projects.
const NEW_QUOTA: u16 = 0x780;

/// Bits that kernels set in the primary alone, when the volume is used so for the first time.
const GAINED: VersionBits = VersionBits::ATTR
    .union(VersionBits::NLINK)
    .union(VersionBits::QUOTA)
    .union(VersionBits::MOREBITS);

/// Checks the copy of group `ag`; 0 is the primary.
pub(super) fn check(checker: &Checker, ag: AgNumber) {
    let location = Location::Group(ag);
    let sector = checker.geometry().header_sector(ag, 0);
    let bytes = match checker.read_bytes(&[(sector, checker.sectors())]) {
        Ok(bytes) => bytes,
        Err(what) => return checker.error("superblock", location, what),
    };
    let superblock = match Superblock::decode(&bytes) {
        Ok(superblock) => superblock,
        Err(error) => return checker.error("superblock", location, error.to_string()),
    };
    checker.note_lsn(superblock.lsn);
    tail(checker, location, &superblock, &bytes);
    if be32(&bytes, 200) != be32(&bytes, 204) {
        checker.expect(
            "superblock",
            location,
            "bad_features2",
            be32(&bytes, 204),
            be32(&bytes, 200),
        );
    }
    if ag.0 == 0 {
        primary(checker, &superblock);
    } else {
        secondary(checker, location, &superblock);
    }
}

/// Bytes behind the last field that the features define are zero.
fn tail(checker: &Checker, location: Location, superblock: &Superblock, bytes: &[u8]) {
    let end = superblock.fields_end();
    if let Some(at) = bytes[end..].iter().position(|byte| *byte != 0) {
        let what = format!("byte {} behind the last field is not zero", end + at);
        checker.error("superblock", location, what);
    }
}

fn primary(checker: &Checker, superblock: &Superblock) {
    let (geometry, location) = (checker.geometry(), Location::Volume);
    if checker.volume.is_finished_in_memory() {
        let what = "a shrink was cut, and no kernel mounts the volume until it is opened for changes: \
                    this is the volume with that finished in memory";
        checker.error("superblock", location, what);
    }
    if superblock.needs_repair() {
        checker.error("superblock", location, "an offline tool left the volume to `xfs_repair`");
    }
    if superblock.flags != 0 {
        checker.expect("superblock", location, "flags", superblock.flags, 0);
    }
    if superblock.features.unknown_ro_compat != 0 {
        let unknown = superblock.features.unknown_ro_compat;
        checker.error("superblock", location, format!("unknown read-only features {unknown:#x}"));
    }
    let unknown = superblock.features.unknown_log_incompat();
    if unknown != 0 {
        // Kernels mount the volume, and shut it down when they write the superblock.
        let what = format!("unknown features of the journal {unknown:#x}");
        checker.error("superblock", location, what);
    }
    let (foreign, version) = if superblock.features.crc { (OLD_QUOTA, 4) } else { (NEW_QUOTA, 5) };
    let foreign = superblock.quota_flags & foreign;
    if foreign != 0 {
        let what = format!("bits {foreign:#x} of qflags are for version {version}");
        checker.error("superblock", location, what);
    }
    if superblock.compat != 0 {
        let unknown = superblock.compat;
        checker.error("superblock", location, format!("unknown features {unknown:#x}"));
    }
    let root = superblock.root_inode;
    if !geometry.valid_inode(root) {
        checker.error("superblock", location, format!("root inode {root} cannot exist"));
        return;
    }
    let follows = |number: u64| InodeNumber(root.0.saturating_add(number));
    let expect = |field, found: InodeNumber, expected| {
        checker.expect("superblock", location, field, found, expected);
    };
    if superblock.features.metadir() {
        expect("metadirino", superblock.metadata_root, follows(1));
    } else {
        expect("rbmino", superblock.rt_bitmap_inode, follows(1));
        expect("rsumino", superblock.rt_summary_inode, follows(2));
    }
    if superblock.stripe_unit != 0 && !geometry.ag_blocks.is_multiple_of(superblock.stripe_unit) {
        let unit = superblock.stripe_unit;
        let what =
            format!("{} blocks are not a multiple of the stripe unit {unit}", geometry.ag_blocks);
        checker.add(Finding::warning("superblock", location, what));
    }
}

/// A field by its name in docs/format/superblock.md, as a number.
type Field = (&'static str, fn(&Superblock) -> u64);

/// The fields that are equal in all copies.
const COMMON: [Field; 28] = [
    ("versionnum", |s| (s.features.version - GAINED).bits().into()),
    ("blocklog", |s| s.block_log.into()),
    ("sectlog", |s| s.sector_log.into()),
    ("inodelog", |s| s.inode_log.into()),
    ("dirblklog", |s| s.dir_block_log.into()),
    ("logsectlog", |s| s.log_sector_log.into()),
    ("dblocks", |s| s.blocks),
    ("rblocks", |s| s.rt_blocks),
    ("rextents", |s| s.rt_extents),
    ("logstart", |s| s.log_start.0),
    ("logblocks", |s| s.log_blocks.into()),
    ("logsunit", |s| s.log_stripe_unit.into()),
    ("rextsize", |s| s.rt_extent_blocks.into()),
    ("rbmblocks", |s| s.rt_bitmap_blocks.into()),
    ("agblocks", |s| s.ag_blocks.into()),
    ("agcount", |s| s.ag_count.into()),
    ("inoalignmt", |s| s.inode_alignment.into()),
    ("spino_align", |s| s.sparse_alignment.into()),
    ("uuid", |s| s.uuid.as_u64_pair().0 ^ s.uuid.as_u64_pair().1.rotate_left(1)),
    ("meta_uuid", |s| {
        let (high, low) = s.separate_meta_uuid.as_u64_pair();
        high ^ low.rotate_left(1)
    }),
    ("flags", |s| s.flags.into()),
    ("features_compat", |s| s.compat.into()),
    ("features_ro_compat", |s| (s.features.ro_compat.bits() | s.features.unknown_ro_compat).into()),
    ("features_incompat", |s| (s.features.incompat - Incompat::NEEDSREPAIR).bits().into()),
    ("rgcount", |s| s.rt_group_count.into()),
    ("rgextents", |s| s.rt_group_extents.into()),
    ("rtstart", |s| s.rt_start),
    ("rtreserved", |s| s.rt_reserved),
];

fn secondary(checker: &Checker, location: Location, copy: &Superblock) {
    let primary = checker.volume.superblock();
    for (field, value) in COMMON {
        checker.expect("secondary superblock", location, field, value(copy), value(primary));
    }
    if copy.label != primary.label {
        let what = "is another one than the primary's";
        let finding = Finding::error("secondary superblock", location, what);
        checker.add(Finding { field: "fname", ..finding });
    }
    let roots = [copy.root_inode, copy.rt_bitmap_inode, copy.rt_summary_inode];
    let expected = [primary.root_inode, primary.rt_bitmap_inode, primary.rt_summary_inode];
    for (field, (found, expected)) in
        ["rootino", "rbmino", "rsumino"].into_iter().zip(roots.into_iter().zip(expected))
    {
        // Fresh copies do not know the inodes.
        if !found.is_null() && found.0 != 0 {
            checker.expect("secondary superblock", location, field, found, expected);
        }
    }
    quota(checker, location, copy);
}

/// A copy that was never rewritten knows no quota files.
fn quota(checker: &Checker, location: Location, copy: &Superblock) {
    let files = [copy.user_quota_inode, copy.group_quota_inode, copy.project_quota_inode];
    let known = files.iter().any(|file| !file.is_null() && file.0 != 0);
    if copy.in_progress && (known || copy.quota_flags != 0) {
        checker.error("secondary superblock", location, "names quota files in a copy made by mkfs");
    }
}

/// Inodes that the superblock leads to, besides the root directories.
pub(super) fn rooted_inodes(superblock: &Superblock, geometry: &Geometry) -> Vec<InodeNumber> {
    if superblock.features.metadir() {
        return Vec::new();
    }
    let mut inodes = vec![superblock.rt_bitmap_inode, superblock.rt_summary_inode];
    let quota =
        [superblock.user_quota_inode, superblock.group_quota_inode, superblock.project_quota_inode];
    for file in quota {
        // Version 4 can keep groups and projects in one file.
        if file.0 != 0 && geometry.valid_inode(file) && !inodes.contains(&file) {
            inodes.push(file);
        }
    }
    inodes
}
