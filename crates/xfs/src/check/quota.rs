//! Quota files: an array of records, one per user, group or project (docs/format/quota.md#files).

use super::checker::Checker;
use super::forks::Fork;
use super::subject::Subject;
use crate::bytes::{array, be16, be32};
use crate::format::{InodeFlags2, checksum};
use crate::units::{FileBlock, FsBlock};

const RECORD: usize = 136;
const MAGIC: u16 = 0x4451;
const CRC_OFFSET: usize = 108;
const UUID_OFFSET: usize = 120;
/// Types of metadata files that hold quota.
const METADATA_TYPES: std::ops::RangeInclusive<u16> = 2..=4;

/// Damaged blocks after which the rest of one file is left out.
const DEFECTS_MAX: u32 = 64;

/// Whether a regular file holds quota records.
pub(super) fn is_quota(checker: &Checker, subject: &Subject<'_>) -> bool {
    let superblock = checker.volume.superblock();
    let rooted =
        [superblock.user_quota_inode, superblock.group_quota_inode, superblock.project_quota_inode];
    let metadata = subject.core.flags2.contains(InodeFlags2::METADATA);
    if superblock.features.metadir() {
        metadata && METADATA_TYPES.contains(&subject.core.metatype)
    } else {
        rooted.contains(&subject.number)
    }
}

/// Checks all records of a quota file.
pub(super) fn check(checker: &Checker, subject: &Subject<'_>, fork: &Fork) {
    let geometry = checker.geometry();
    let mut defects = 0;
    for extent in fork.extents.iter().filter(|extent| !extent.unwritten) {
        for index in 0..u64::from(extent.len) {
            let sector = geometry.sector(FsBlock(extent.start.0 + index));
            let at = FileBlock(extent.offset.0 + index);
            let what = if checker.first_visit(sector) {
                checker
                    .read_bytes(&[(sector, geometry.sectors_per_block())])
                    .and_then(|bytes| records(checker, at, &bytes))
            } else {
                Err("is used twice".to_owned())
            };
            if let Err(what) = what {
                checker.error("quota file", fork.location(at), what);
                defects += 1;
                if defects == DEFECTS_MAX {
                    let what = "too many damaged blocks; the rest was not looked at";
                    return checker.error("quota file", subject.location(), what);
                }
            }
        }
    }
}

/// Checks the records of one block.
fn records(checker: &Checker, at: FileBlock, bytes: &[u8]) -> Result<(), String> {
    let geometry = checker.geometry();
    let per_block = bytes.len() / RECORD;
    for (slot, record) in bytes.chunks_exact(RECORD).enumerate() {
        if be16(record, 0) != MAGIC {
            return Err(format!("record {slot}: magic is {:#06x}", be16(record, 0)));
        }
        if geometry.features.crc {
            checksum::verify(record, CRC_OFFSET)
                .map_err(|error| format!("record {slot}: {error}"))?;
            if array::<16>(record, UUID_OFFSET) != *geometry.meta_uuid.as_bytes() {
                return Err(format!("record {slot} belongs to another volume"));
            }
        }
        let (id, expected) = (be32(record, 4), at.0 * per_block as u64 + slot as u64);
        if u64::from(id) != expected {
            return Err(format!("record {slot}: id is {id}, expected {expected}"));
        }
    }
    Ok(())
}
