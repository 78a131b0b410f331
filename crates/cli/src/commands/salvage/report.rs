//! What was found, for people and as JSON.

use crate::image::salvaged;
use crate::text;
use anyhow::Result;
use serde::Serialize;
use std::io::Write;
use undercroft_image::LateLosses;
use undercroft_recover::{SalvageReport, Traces};

/// A volume of which there are traces.
#[derive(Serialize)]
pub(super) struct Volume {
    uuid: String,
    files: u64,
    directories: u64,
    blocks: u64,
    #[serde(skip)]
    line: String,
}

impl Volume {
    pub(super) fn new(traces: &Traces) -> Self {
        Self {
            uuid: traces.uuid.to_string(),
            files: traces.files,
            directories: traces.directories,
            blocks: traces.block_count(),
            line: salvaged::line(traces),
        }
    }
}

/// Bytes of a file, by its path below the destination.
#[derive(Serialize)]
struct Late {
    path: text::Name,
    start: u64,
    end: u64,
}

/// The report.
#[derive(Serialize)]
pub(super) struct Report {
    uuid: String,
    start: u64,
    has_superblock: bool,
    /// Nothing is known to be missing.
    pub(super) whole_volume: bool,
    whole: u64,
    partial: u64,
    #[serde(rename = "unsized")]
    unsized_files: u64,
    lost: u64,
    directories: u64,
    nameless: u64,
    lost_headers: u64,
    lost_inodes: u64,
    removed: u64,
    unlinked: u64,
    contradictions: u64,
    values_left_out: u64,
    unreadable_sectors: u64,
    /// What could be read in the scan, and not when it was copied.
    lost_while_copied: Vec<Late>,
    other_volumes: Vec<Volume>,
}

impl Report {
    pub(super) fn new(report: &SalvageReport, volumes: &[Traces]) -> Self {
        let others = volumes.iter().filter(|traces| traces.uuid != report.uuid);
        Self {
            uuid: report.uuid.to_string(),
            start: report.start,
            has_superblock: report.has_superblock,
            whole_volume: report.is_whole(),
            whole: report.whole,
            partial: report.partial,
            unsized_files: report.unsized_files,
            lost: report.lost,
            directories: report.directories,
            nameless: report.nameless,
            lost_headers: report.lost_headers,
            lost_inodes: report.lost_inodes,
            removed: report.stale,
            unlinked: report.unlinked,
            contradictions: report.contradictions,
            values_left_out: report.values_left_out,
            unreadable_sectors: report.unreadable,
            lost_while_copied: Vec::new(),
            other_volumes: others.map(Volume::new).collect(),
        }
    }

    /// Adds what could not be read while it was copied.
    pub(super) fn add_late(&mut self, losses: &LateLosses) {
        self.whole_volume &= losses.bytes == 0;
        let late = losses.first.iter().map(|loss| {
            let (path, range) = (text::Name::new(&loss.path), &loss.range);
            Late { path, start: range.start, end: range.end }
        });
        self.lost_while_copied.extend(late);
    }

    pub(super) fn print(&self, out: &mut dyn Write) -> Result<()> {
        write!(out, "volume {} at byte {}", self.uuid, self.start)?;
        let sizes = if self.has_superblock {
            "its sizes by a copy of its superblock"
        } else {
            "its sizes by the numbers in its metadata"
        };
        writeln!(out, ", {sizes}")?;
        writeln!(out, "{} whole files, {} directories", self.whole, self.directories)?;
        for (count, what) in [
            (self.partial, "files have lost parts, which are holes (.partial)"),
            (self.unsized_files, "files are as long as their blocks: the inode is lost (.unsized)"),
            (self.lost, "files have lost all content, and are not copied"),
            (self.nameless, "files and directories have no way up to the root (lost+found)"),
            (self.lost_headers, "headers of groups are damaged: data near them may be as well"),
            (self.lost_inodes, "inodes are lost, of which others still speak"),
            (self.removed, "inodes were removed before (`undercroft deleted` is for them)"),
            (self.unlinked, "files without a name were open"),
            (self.contradictions, "statements contradict others, and were not believed"),
            (self.values_left_out, "values of attributes were left out: they are too much"),
            (self.unreadable_sectors, "sectors could not be read"),
        ] {
            if count > 0 {
                writeln!(out, "{count} {what}")?;
            }
        }
        for volume in &self.other_volumes {
            writeln!(out, "also there: {}", volume.line)?;
        }
        Ok(())
    }
}
