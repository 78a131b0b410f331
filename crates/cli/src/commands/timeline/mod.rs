//! `undercroft timeline`.

mod forms;

use super::deleted::{disk, show};
use super::found::joined;
use crate::image::ImageArgs;
use crate::progress::Progress;
use crate::report::{self, Outcome};
use crate::value;
use anyhow::{Context, Result};
use forms::{EventJson, print_body, print_line};
use globset::{Glob, GlobMatcher};
use serde::Serialize;
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use undercroft_recover::{Change, Event, Path, Timeline};
use undercroft_xfs::format::Timestamp;

/// Say what happened on a volume, in order.
///
/// Nothing is written. Each line is an event: created, grown, shrunk, modified, rights (mode or owner),
/// renamed, linked and unlinked (one name of several), removed.
///
/// Inodes say when a file was made, changed last and removed. What came between, the journal tells, as far back
/// as it goes: by default some minutes of hard work or weeks of little. Of what happened within the same half a
/// minute it often has the outcome alone.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) image: ImageArgs,

    /// Only what happened at this time or later: @SECONDS since 1970 or RFC 3339.
    #[arg(long, value_parser = value::time, value_name = "TIME")]
    since: Option<Timestamp>,

    /// Only files with a name like this, now or before; * ? [ ] stand for others.
    #[arg(long, value_name = "GLOB")]
    name: Option<String>,

    /// Print the body file of the Sleuth Kit, which `mactime` reads.
    #[arg(long, conflicts_with = "json")]
    bodyfile: bool,

    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  undercroft timeline disk.img                                     all that is known
  undercroft timeline disk.img --since 2026-11-30T08:00:00Z        since this morning
  undercroft timeline disk.img --name '*.jpg'                      what became of pictures
  undercroft timeline disk.img --bodyfile | mactime -d -z UTC      with the events of other sources";

/// The events as JSON.
#[derive(Serialize)]
struct Report {
    events: Vec<EventJson>,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let name = args.name.as_deref().map(Glob::new).transpose();
    let name = name.context("--name is no pattern")?.map(|glob| glob.compile_matcher());
    let disk = disk(&args.image)?;
    let bar = Progress::new();
    let timeline = Timeline::find(&disk, &mut |step, done, all| show(&bar, step, done, all));
    drop(bar);
    let timeline = timeline.map_err(|error| args.image.explain(error.into()))?;
    let events = timeline.events.iter().filter(|event| {
        args.since.is_none_or(|since| event.time >= since)
            && name.as_ref().is_none_or(|name| has_name(event, name))
    });
    if args.json {
        report::json_line(out, &Report { events: events.map(EventJson::new).collect() })?;
        return Ok(Outcome::Done);
    }
    for event in events {
        if args.bodyfile { print_body(event, out)? } else { print_line(event, out)? }
    }
    Ok(Outcome::Done)
}

/// Whether a file has a name, or had it before.
fn has_name(event: &Event, glob: &GlobMatcher) -> bool {
    let before = match &event.change {
        Change::Renamed { from } => Some(from),
        _ => None,
    };
    let names = event.path.iter().chain(before).filter_map(|path| path.names.last());
    names.into_iter().any(|name| glob.is_match(OsStr::from_bytes(name)))
}

/// The path of a file as one name; its number where it has none.
fn path(event: &Event) -> Vec<u8> {
    let unknown = || format!("?/{}", event.id).into_bytes();
    event.path.as_ref().map_or_else(unknown, |path: &Path| joined(path))
}
