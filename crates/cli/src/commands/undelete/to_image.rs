//! Removed files on a new volume.

use super::Args;
use crate::progress::Progress;
use crate::report::{self, Outcome};
use crate::text;
use anyhow::Result;
use serde::Serialize;
use std::io::Write;
use undercroft_block::stack::Description;
use undercroft_image::FoundSource;
use undercroft_image::pack::{self, PackOptions};
use undercroft_source::{Opened, SourceSpec};

/// The summary as JSON.
#[derive(Serialize)]
struct Report {
    files: u64,
    directories: u64,
    symlinks: u64,
    specials: u64,
    hard_links: u64,
    bytes: u64,
    image_bytes: u64,
}

/// Makes a volume of a source.
pub(super) fn run(
    args: &Args,
    image: &Description,
    source: FoundSource,
    out: &mut dyn Write,
) -> Result<Outcome> {
    // The source is open: where it is from does not count.
    let options = PackOptions::new(SourceSpec::StandardInput, image.clone());
    let options = PackOptions { force: args.force, durable: true, ..options };
    let opened = Opened { source: Box::new(source), image: None };
    let bar = Progress::new();
    let built = pack::build_from(opened, &options, &mut |progress| {
        bar.show(progress.entries, progress.bytes, progress.bytes_total);
    });
    drop(bar);
    let summary = built?;
    if args.json {
        let report = Report {
            files: summary.files,
            directories: summary.directories,
            symlinks: summary.symlinks,
            specials: summary.specials,
            hard_links: summary.hard_links,
            bytes: summary.bytes,
            image_bytes: summary.image_bytes,
        };
        report::json_line(out, &report)?;
        return Ok(Outcome::Done);
    }
    let others = summary.symlinks + summary.specials + summary.hard_links;
    writeln!(
        out,
        "{image}: {}, holding {} files, {} directories, {others} others, {} of data",
        text::bytes(summary.image_bytes),
        summary.files,
        summary.directories,
        text::bytes(summary.bytes),
    )?;
    Ok(Outcome::Done)
}
