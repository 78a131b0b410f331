//! `undercroft build LAYER --on BASE`.

use super::Args;
use super::report::peak_rss_bytes;
use crate::commands::warnings::warn;
use crate::image::{ImageArgs, Part};
use crate::progress::Progress;
use crate::report::{Outcome, json_line};
use crate::session::Session;
use crate::text;
use anyhow::{Result, bail};
use serde::Serialize;
use std::io::Write;
use std::path::Path;
use std::time::Instant;
use undercroft_block::stack::Description;
use undercroft_image::layer::{self, LayerSummary};
use undercroft_source::oci::LayerSource;
use undercroft_source::{Options, SourceSpec};

/// The summary as JSON.
#[derive(Serialize)]
struct Report {
    removed: u64,
    entries: u64,
    bytes: u64,
    seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_rss_bytes: Option<u64>,
}

pub(super) fn run(args: &Args, base: &Description, out: &mut dyn Write) -> Result<Outcome> {
    let spec = SourceSpec::from(args.source.clone());
    let path = match &spec {
        SourceSpec::Path(path) | SourceSpec::Archive(path) if !path.is_dir() => path,
        SourceSpec::StandardInput => Path::new("-"),
        _ => bail!("{}: --on takes the tar archive of one layer", args.source.display()),
    };
    let options = Options {
        strip_absolute: args.content.strip_absolute,
        strict: args.content.strict,
        ..Options::default()
    };
    let start = Instant::now();
    // Before the volume is opened, whose journal is replayed then: a bad layer changes nothing.
    let mut layer = LayerSource::open(path, &options)?;
    if !matches!(spec, SourceSpec::Archive(_)) {
        layer.expect_layer()?;
    }
    let image = ImageArgs::part_of(base.clone(), Part::default());
    let edit = image.open_for_change()?;
    let session = Session::new(edit.volume())?;
    let bar = Progress::new();
    let applied = layer::apply(&session.fs, &mut layer, &mut |entries, bytes| {
        bar.show(entries, bytes, None);
    });
    drop((bar, session));
    // The first error counts.
    let closed = edit.close();
    let summary = applied?;
    closed?;
    warn(&summary.warnings, true);
    let LayerSummary { removed, entries, bytes, .. } = summary;
    let seconds = start.elapsed().as_secs_f64();
    if args.json {
        let peak_rss_bytes = peak_rss_bytes();
        json_line(out, &Report { removed, entries, bytes, seconds, peak_rss_bytes })?;
    } else {
        writeln!(
            out,
            "{base}: {removed} names taken away, {entries} entries put on, {} of data; {seconds:.2} s",
            text::bytes(bytes),
        )?;
    }
    Ok(Outcome::Done)
}
