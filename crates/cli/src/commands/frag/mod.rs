//! `undercroft frag`.

#[cfg(feature = "lab")]
mod pictures;

use crate::image::ImageArgs;
use crate::report::{self, Outcome};
use anyhow::Result;
use serde::Serialize;
use std::ffi::OsString;
use std::io::{self, Write};
use std::sync::Arc;
use undercroft_fs::FileSystem;
use undercroft_xfs::frag::{self, Bucket, Layout, Selection};

/// Show how files and free space are laid out.
///
/// Shows the extents of files, how many fewer there could be, the distance of each from its ideal
/// place (behind the extent before it, the first one at the inode), and free space by length.
/// Distances and lengths are in blocks. The last line of the distances is the size of an allocation
/// group: extents in another group.
///
/// For example: undercroft frag root.img
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) image: ImageArgs,

    /// Count directories and symbolic links, too, not only regular files.
    #[arg(long)]
    all: bool,

    /// Count only the files below this directory of the volume.
    #[arg(long, value_name = "PATH")]
    below: Option<OsString>,

    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,

    #[cfg(feature = "lab")]
    #[command(flatten)]
    pictures: pictures::PictureArgs,
}

/// Extents whose length or distance is between two numbers of blocks.
#[derive(PartialEq, Serialize)]
struct Line {
    from: u64,
    to: u64,
    count: u64,
    blocks: u64,
}

/// The buckets that are not empty.
fn lines(buckets: impl IntoIterator<Item = Bucket>) -> Vec<Line> {
    let line = |Bucket { from, to, count, sum }| Line { from, to, count, blocks: sum };
    buckets.into_iter().filter(|bucket| bucket.count > 0).map(line).collect()
}

/// The layout as JSON.
#[derive(Serialize)]
struct Json {
    selection: &'static str,
    inodes: u64,
    inodes_with_extents: u64,
    extents: u64,
    extents_stored: u64,
    extents_ideal: u64,
    factor_percent: f64,
    group_blocks: u32,
    extents_per_inode: Vec<Line>,
    distances: Vec<Line>,
    distances_normalised: Vec<u64>,
    median_distance: Option<u32>,
    mean_distance: Option<f64>,
    first_extents_in_other_group: u64,
    later_extents_in_other_group: u64,
    within_8_mib: u64,
    within_hundredth_of_group: u64,
    free_by_block: Vec<Line>,
    free_by_size: Vec<Line>,
    free_longest: u32,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    #[cfg(feature = "lab")]
    args.pictures.check()?;
    let volume = args.image.open()?;
    let selection = if args.all { Selection::Everything } else { Selection::Files };
    let top = match &args.below {
        Some(path) => Some(FileSystem::from_volume(Arc::clone(&volume)).metadata(path)?.number),
        None => None,
    };
    let layout = top
        .map(|top| frag::below(&volume, top))
        .transpose()
        .and_then(|below| {
            frag::measure(&volume, |inode| {
                let inside = below.as_ref().is_none_or(|below| below.contains(&inode.number));
                inside && selection.contains(inode)
            })
        })
        .map_err(|error| args.image.explain(error.into()))?;
    #[cfg(feature = "lab")]
    args.pictures.write(&args.image.name(), words(selection), &layout)?;
    let report = json(&layout, selection, volume.geometry().ag_blocks, volume.geometry().block_log);
    if args.json {
        report::json_line(out, &report)?;
    } else {
        print(&report, out)?;
    }
    Ok(Outcome::Done)
}

fn words(selection: Selection) -> &'static str {
    match selection {
        Selection::Files => "regular files",
        Selection::Everything => "regular files, directories and symbolic links",
    }
}

fn json(layout: &Layout, selection: Selection, group_blocks: u32, block_log: u8) -> Json {
    let (locality, free) = (&layout.locality, &layout.free);
    Json {
        selection: words(selection),
        inodes: layout.inodes,
        inodes_with_extents: layout.mapped_inodes,
        extents: layout.actual,
        extents_stored: layout.stored,
        extents_ideal: layout.ideal,
        factor_percent: layout.factor(),
        group_blocks,
        extents_per_inode: lines(layout.extents_per_inode.buckets(u64::MAX)),
        distances: lines(locality.buckets()),
        distances_normalised: locality.normalised(),
        median_distance: locality.median(),
        mean_distance: locality.mean(),
        first_extents_in_other_group: locality.first_switches,
        later_extents_in_other_group: locality.later_switches,
        within_8_mib: locality.within((8 << 20) >> block_log),
        within_hundredth_of_group: locality.within(group_blocks / 100),
        free_by_block: lines(free.by_block.buckets(u64::MAX)),
        free_by_size: lines(free.by_size.buckets(u64::MAX)),
        free_longest: free.longest,
    }
}

fn print(report: &Json, out: &mut dyn Write) -> io::Result<()> {
    let Json { selection, inodes, inodes_with_extents, extents, extents_ideal, .. } = report;
    writeln!(out, "{inodes} {selection}, {inodes_with_extents} with extents")?;
    writeln!(
        out,
        "actual {extents}, ideal {extents_ideal}, fragmentation factor {:.2}%",
        report.factor_percent
    )?;
    let average = *extents as f64 / (*inodes_with_extents).max(1) as f64;
    writeln!(out, "{average:.2} extents per file on average")?;
    table(out, "\nfiles by extents", "files", "extents", &report.extents_per_inode)?;
    table(out, "\nextents by distance", "extents", "blocks", &report.distances)?;
    let median = report.median_distance.map_or("none".into(), |median| median.to_string());
    let mean = report.mean_distance.map_or("none".into(), |mean| format!("{mean:.0}"));
    writeln!(
        out,
        "in the group of their hint: median {median}, mean {mean}; in another: {} first extents, \
         {} later ones",
        report.first_extents_in_other_group, report.later_extents_in_other_group
    )?;
    let percent = |count: u64| count as f64 * 100.0 / (*extents).max(1) as f64;
    writeln!(
        out,
        "within 8 MiB {:.2}%, within a hundredth of a group {:.2}%",
        percent(report.within_8_mib),
        percent(report.within_hundredth_of_group)
    )?;
    table(out, "\nfree extents by length", "extents", "blocks", &report.free_by_block)?;
    writeln!(out, "longest {}", report.free_longest)?;
    let same = |(left, right): (&Line, &Line)| {
        (left.from, left.count, left.blocks) == (right.from, right.count, right.blocks)
    };
    let (by_block, by_size) = (&report.free_by_block, &report.free_by_size);
    if by_block.len() != by_size.len() || !by_block.iter().zip(by_size).all(same) {
        table(out, "\nfree extents by length, in the other tree", "extents", "blocks", by_size)?;
        writeln!(out, "the trees of free space disagree: run `undercroft check`")?;
    }
    Ok(())
}

/// A histogram in the columns that `xfs_db` uses.
fn table(
    out: &mut dyn Write,
    title: &str,
    count: &str,
    sum: &str,
    lines: &[Line],
) -> io::Result<()> {
    writeln!(out, "{title}")?;
    writeln!(out, "{:>10} {:>10} {count:>9} {sum:>14} {:>6}", "from", "to", "pct")?;
    let total: u64 = lines.iter().map(|line| line.count).sum();
    for Line { from, to, count, blocks } in lines {
        let percent = *count as f64 * 100.0 / total.max(1) as f64;
        writeln!(out, "{from:>10} {to:>10} {count:>9} {blocks:>14} {percent:>6.2}")?;
    }
    Ok(())
}
