//! What `undercroft shrink` did, or would do.

use crate::text;
use anyhow::Result;
use serde::Serialize;
use std::fmt;
use std::io::Write;
use undercroft_xfs::frag::{self, Selection};
use undercroft_xfs::maintain::Shrinkage;
use undercroft_xfs::{Error, Volume};

/// Bytes that a device is taken to read or write in a second.
const BYTES_PER_SECOND: f64 = 200e6;

/// Inodes that get new numbers in a second; docs/measurements.md has 39,275 in 1.42 s, contents included.
const INODES_PER_SECOND: f64 = 20e3;

/// Sizes before and after, and what moved or is in the way.
#[derive(Serialize)]
pub(in crate::commands) struct Report {
    block_size: u64,
    blocks_before: u64,
    blocks: u64,
    groups_before: u32,
    groups: u32,
    moved_extents: u64,
    moved_blocks: u64,
    moved_inodes: u64,
    journal_blocks: u64,
    smallest_blocks: u64,
    obstacles: Vec<String>,
    /// Of one that is not done, about.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds_at_200_mb_per_second: Option<f64>,
    #[serde(flatten)]
    spreads: Option<Spreads>,
    done: bool,
}

impl Report {
    pub(super) fn new(change: &Shrinkage, block_size: u64, done: bool) -> Self {
        let Shrinkage { data, metadata, .. } = change;
        Self {
            block_size,
            blocks_before: change.blocks_before,
            blocks: change.blocks,
            groups_before: change.groups_before,
            groups: change.groups,
            moved_extents: data.extents + metadata.extents,
            moved_blocks: data.blocks + metadata.blocks,
            moved_inodes: change.inodes,
            journal_blocks: change.journal,
            smallest_blocks: change.smallest,
            obstacles: change.obstacles.iter().map(ToString::to_string).collect(),
            seconds_at_200_mb_per_second: (!done).then(|| seconds(change, block_size)),
            spreads: None,
            done,
        }
    }

    /// With how spread the files were, and are.
    pub(super) fn with_spread(self, before: Spread, after: Spread) -> Self {
        Self { spreads: Some(Spreads { spread_before: before, spread: after }), ..self }
    }

    /// Whether it was not done, and cannot be.
    pub(super) fn is_refused(&self) -> bool {
        !self.done && !self.obstacles.is_empty()
    }

    fn bytes(&self, blocks: u64) -> String {
        text::bytes(blocks.saturating_mul(self.block_size))
    }

    pub(super) fn print(&self, out: &mut dyn Write) -> Result<()> {
        let (from, to) = (self.bytes(self.blocks_before), self.bytes(self.blocks));
        let verb = if self.done { "shrunk" } else { "would shrink" };
        let (before, groups) = (self.groups_before, self.groups);
        writeln!(out, "{verb} from {from} in {before} groups to {to} in {groups} groups")?;
        let (extents, blocks) = (self.moved_extents, self.bytes(self.moved_blocks));
        let verb = if self.done { "moved" } else { "would move" };
        let journal = if self.journal_blocks > 0 { ", and the journal" } else { "" };
        writeln!(out, "{verb} {extents} extents, {blocks}{journal}")?;
        if self.moved_inodes > 0 {
            let verb = if self.done { "gave" } else { "would give" };
            writeln!(out, "{verb} {} inodes new numbers", self.moved_inodes)?;
        }
        if let Some(Spreads { spread_before, spread }) = &self.spreads {
            writeln!(out, "regular files before: {spread_before}")?;
            writeln!(out, "regular files now:    {spread}")?;
        }
        if let Some(seconds) = self.seconds_at_200_mb_per_second {
            let seconds = if seconds < 1.0 { "a second".into() } else { format!("{seconds:.0} s") };
            writeln!(out, "would take about {seconds} on a device of 200 MB a second")?;
        }
        for obstacle in &self.obstacles {
            writeln!(out, "in the way: {}", text::visible(obstacle))?;
        }
        if !self.done {
            let bytes = self.smallest_blocks.saturating_mul(self.block_size);
            writeln!(out, "smallest size: {bytes} bytes ({})", text::bytes(bytes))?;
        }
        Ok(())
    }
}

/// About how long it takes: what moves is read and written, and inodes need the processor.
fn seconds(change: &Shrinkage, block_size: u64) -> f64 {
    let blocks = change.data.blocks + change.metadata.blocks + change.journal;
    let bytes = blocks.saturating_mul(block_size) as f64;
    2.0 * bytes / BYTES_PER_SECOND + change.inodes as f64 / INODES_PER_SECOND
}

/// How spread files were, and are.
#[derive(Serialize)]
struct Spreads {
    spread_before: Spread,
    spread: Spread,
}

/// How spread the data of regular files is.
#[derive(Serialize)]
pub(super) struct Spread {
    extents: u64,
    factor_percent: f64,
    extents_within_8_mib: u64,
    median_distance_blocks: Option<u32>,
}

impl Spread {
    /// Looks at all files of a volume.
    ///
    /// # Errors
    /// It is damaged; its device failed.
    pub(super) fn of(volume: &Volume) -> Result<Self, Error> {
        let layout = frag::measure(volume, |inode| Selection::Files.contains(inode))?;
        Ok(Self {
            extents: layout.actual,
            factor_percent: layout.factor(),
            extents_within_8_mib: layout.locality.within((8 << 20) >> volume.geometry().block_log),
            median_distance_blocks: layout.locality.median(),
        })
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { extents, factor_percent, extents_within_8_mib: near, .. } = self;
        write!(f, "{extents} extents, fragmentation factor {factor_percent:.2}%, ")?;
        write!(f, "{near} of them within 8 MiB of their ideal place")
    }
}
