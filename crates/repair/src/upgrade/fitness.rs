//! What a volume has to be before its features change.

use std::collections::BTreeMap;

use undercroft_xfs::check::{CheckOptions, Severity, check};
use undercroft_xfs::format::{InodeFlags2, Superblock, bytes};

use crate::chunks::Chunks;
use crate::error::RepairError;
use crate::pass;
use crate::scratch::Scratch;
use crate::subject::Subject;

/// Where an inode has its second flags.
const FLAGS2: usize = 120;

/// Refuses volumes of other kinds.
pub(super) fn kind(superblock: &Superblock) -> Result<(), RepairError> {
    let features = &superblock.features;
    let what = if !features.crc {
        "the volume is of version 4, which is not converted: make a new one, and put the files on it with \
         `undercroft copy`"
    } else if features.metadir() || superblock.rt_blocks > 0 {
        "the volume has a realtime device or a metadata directory"
    } else if superblock.log_start.is_null() || superblock.log_blocks == 0 {
        "the journal is on another device"
    } else if superblock.needs_repair() {
        "the volume was left to xfs_repair by another tool"
    } else if features.unknown_ro_compat != 0 {
        "the volume has features that are not known"
    } else {
        return Ok(());
    };
    Err(RepairError::Refused(vec![what.into()]))
}

/// What a check finds: how many faults, and the first.
pub(super) fn faults(scratch: &Scratch) -> Result<Option<(u64, String)>, RepairError> {
    let mut first = None;
    let report = check(scratch.device(), &CheckOptions::default(), &mut |finding| {
        if finding.severity == Severity::Error && first.is_none() {
            first = Some(finding.to_string());
        }
    })?;
    if report.is_clean() {
        return Ok(None);
    }
    Ok(Some((report.errors, first.unwrap_or_else(|| "not everything can be read".into()))))
}

/// Refuses what inodes are not fit for.
pub(super) fn inodes(
    subject: &Subject,
    chunks: &Chunks,
    target: &Superblock,
) -> Result<(), RepairError> {
    let (old, new) = (&subject.geometry.features, &target.features);
    if old.reflink() && !new.reflink() {
        let wrong = pass::over(
            subject,
            chunks,
            || 0_u64,
            |count, found| {
                let flags = InodeFlags2::from_bits_retain(bytes::be64(found.bytes, FLAGS2));
                let wrong = InodeFlags2::REFLINK | InodeFlags2::COWEXTSIZE;
                *count += u64::from(found.in_use && flags.intersects(wrong));
                Ok(())
            },
        )?;
        let wrong: u64 = wrong.into_iter().sum();
        if wrong > 0 {
            let what = format!("reflink cannot be turned off: {wrong} files share blocks, or did");
            return Err(RepairError::Refused(vec![what]));
        }
    }
    let records = || chunks.groups.iter().flat_map(BTreeMap::values);
    if new.sparse_inodes() && !old.sparse_inodes() {
        let unit = target.inode_alignment.max(1) << subject.geometry.inodes_per_block_log();
        let wrong = records().filter(|record| !record.start.0.is_multiple_of(unit)).count();
        if wrong > 0 {
            return Err(RepairError::Refused(vec![format!(
                "sparse: {wrong} chunks of inodes do not begin where they have to, and are not moved"
            )]));
        }
    }
    if old.sparse_inodes() && !new.sparse_inodes() {
        let wrong = records().filter(|record| record.holemask != 0).count();
        if wrong > 0 {
            let what = format!("sparse cannot be turned off: {wrong} chunks of inodes are sparse");
            return Err(RepairError::Refused(vec![what]));
        }
    }
    Ok(())
}
