//! The whole-volume check: everything on a volume is read, and everything that is on it twice is
//! compared.
//!
//! [`check`] never changes the volume. Findings are data ([`Finding`]); the check goes on after
//! each and sees as much as it can. What could not be seen is not judged: conclusions from absence
//! (a lost block, a missing link) are drawn only while everything could be read. The work is bounded
//! by the metadata, whatever it says: no block is followed twice. What is checked:
//! docs/format/checks.md.
//!
//! Phases: superblocks and groups (headers, free list, trees); all inodes with their forks,
//! directories and attributes; then the comparisons: owners of blocks, reverse mappings, reference
//! counts, links, counters.

mod attributes;
mod block_owners;
mod checker;
mod claim_list;
mod counters;
mod directory;
mod directory_entries;
mod directory_index;
mod finding;
mod findings;
mod forks;
mod free_space;
mod group;
mod group_metadata;
mod hash_tree;
mod inode_table;
mod inode_trees;
mod inodes;
mod links;
mod listing;
mod log;
mod options;
mod quota;
mod report;
mod subject;
mod superblocks;
mod symlink;
mod threads;
mod tree;
mod visited;

pub use claim_list::{ClaimList, Iter as ClaimIter};
pub use finding::{Finding, Location, Severity};
pub use inode_table::link_sum;
pub use options::CheckOptions;
pub use report::Report;

use crate::error::Error;
use crate::log::{LogEnds, LogState};
use crate::units::AgNumber;
use crate::volume::Volume;
use checker::Checker;
use forks::Claims;
use group::Group;
use inode_table::InodeTable;
use std::sync::Arc;
use subject::Scan;
use undercroft_block::{BlockDevice, Sector, read_exact_at};

/// Groups whose headers are read ahead of all else.
const GROUPS_AHEAD: usize = 256;

/// Checks the file system that starts at sector 0 of `device`, and hands its defects to
/// `on_finding`, phase by phase.
///
/// ```no_run
/// use std::{path::Path, sync::Arc};
/// use undercroft_block::FileDevice;
/// use undercroft_xfs::check::{CheckOptions, check};
///
/// let device = Arc::new(FileDevice::open(Path::new("image"), true)?);
/// let report = check(device, &CheckOptions::default(), &mut |finding| println!("{finding}"))?;
/// println!("{}", if report.is_clean() { "clean" } else { "damaged" });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// There is no XFS superblock at all, or the device cannot be read. Everything else is a finding:
/// a damaged primary superblock ends the check early, with an incomplete report.
pub fn check(
    device: Arc<dyn BlockDevice>,
    options: &CheckOptions,
    on_finding: &mut dyn FnMut(Finding),
) -> Result<Report, Error> {
    let known = has_magic(device.as_ref())?;
    let (volume, unreplayable) = match open(device, options.replay) {
        Ok(opened) => opened,
        Err(Error::NotUsable(what)) if known => return Ok(unusable(what, on_finding)),
        Err(Error::Superblock(defect)) if known => {
            return Ok(unusable(defect.to_string(), on_finding));
        }
        Err(error) => return Err(error),
    };
    let end = match crate::log::ends(volume.cache().device(), volume.geometry()) {
        // It was met when the volume was opened.
        Err(Error::Journal { .. }) => LogEnds { state: LogState::Dirty, ..LogEnds::default() },
        end => end?,
    };
    let replayed = volume.is_replayed_in_memory();
    let state = if replayed { LogState::Dirty } else { end.state };
    let checker = Checker::new(volume, end.state, options);
    if let Some(what) = unreplayable {
        checker.error("log", Location::Volume, what);
    }
    log::check(&checker, &end);
    let mut report = Report { log: state, ..Report::default() };
    let groups = check_groups(&checker);
    checker.findings.deliver(on_finding);
    let table = InodeTable::new(&groups, checker.geometry().features.parent_pointers());
    let claims = check_inodes(&checker, &table);
    checker.findings.deliver(on_finding);
    check_space(&checker, &table, &groups, &claims);
    links::check(&checker, &table, &mut report);
    counters::check(&checker, &groups);
    log::check_positions(&checker, &end);
    checker.findings.deliver(on_finding);
    (report.errors, report.warnings) = checker.findings.counts();
    report.complete = checker.is_complete();
    report.bytes = checker.bytes_read();
    Ok(report)
}

/// The report of a volume that cannot be opened: its superblock is all there is to say.
fn unusable(what: String, on_finding: &mut dyn FnMut(Finding)) -> Report {
    on_finding(Finding::error("superblock", Location::Volume, what));
    Report { errors: 1, ..Report::default() }
}

/// The volume, with its journal replayed in memory if that is wanted and can be done; else as it is
/// on the disk, and why.
fn open(device: Arc<dyn BlockDevice>, replay: bool) -> Result<(Volume, Option<String>), Error> {
    let mut why = None;
    if replay {
        match Volume::open(Arc::clone(&device)) {
            Err(error @ Error::Journal { .. }) => why = Some(error.to_string()),
            opened => return Ok((opened?, None)),
        }
    }
    Ok((Volume::open_unreplayed(device)?, why))
}

/// Whether the device starts like an XFS file system.
fn has_magic(device: &dyn BlockDevice) -> Result<bool, Error> {
    let mut bytes = [0; 512];
    read_exact_at(device, Sector(0), &mut bytes)?;
    Ok(bytes.starts_with(b"XFSB"))
}

fn check_groups(checker: &Checker) -> Vec<Group> {
    let count = checker.geometry().ag_count as usize;
    let headers = |ag| (0..4).map(move |index| checker.header_address(ag, index));
    let groups = (0..checker.geometry().ag_count).map(AgNumber);
    checker.read_ahead(groups.take(GROUPS_AHEAD).flat_map(headers));
    let states = threads::for_each(checker.readers(), count, Vec::new, |done, index| {
        let ag = AgNumber(index as u32);
        superblocks::check(checker, ag);
        done.push((index, group_metadata::check(checker, ag)));
    });
    let mut groups: Vec<_> = states.into_iter().flatten().collect();
    groups.sort_unstable_by_key(|(index, _)| *index);
    groups.into_iter().map(|(_, group)| group).collect()
}

/// Checks all inodes; returns the claims on blocks that each thread found.
fn check_inodes(checker: &Checker, table: &InodeTable) -> Vec<Claims> {
    let scan = Scan { checker, table };
    let groups = checker.geometry().ag_count;
    threads::for_each(
        checker.readers(),
        table.chunks.len(),
        || Claims::new(groups),
        |claims, index| inodes::check_chunk(&scan, claims, index),
    )
}

fn check_space(checker: &Checker, table: &InodeTable, groups: &[Group], claims: &[Claims]) {
    threads::for_each(
        checker.threads,
        groups.len(),
        || (),
        |(), index| {
            let files: Vec<_> = claims.iter().map(|claims| &claims.0[index]).collect();
            block_owners::check(checker, table, AgNumber(index as u32), &groups[index], &files);
        },
    );
}
