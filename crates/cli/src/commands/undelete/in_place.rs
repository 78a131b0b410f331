//! Removed files put back where they were.

use super::super::deleted::{Found, look};
use super::{Args, Choice, expect_any};
use crate::progress::Progress;
use crate::report::{self, Outcome};
use crate::session::Session;
use crate::text;
use anyhow::{Context, Result, anyhow, bail};
use serde::Serialize;
use std::io::Write;
use std::sync::Arc;
use undercroft_image::{PutBack, PutBackEvent, PutBackSummary};
use undercroft_recover::State;
use undercroft_xfs::Error;

/// The summary as JSON.
#[derive(Serialize)]
struct Report {
    files: u64,
    directories: u64,
    others: u64,
    bytes: u64,
    there_already: u64,
    failed: u64,
    left_out: u64,
}

pub(super) fn run(args: &Args, choice: &Choice<'_>, out: &mut dyn Write) -> Result<Outcome> {
    // Looked for before the journal is replayed in its place, which overwrites a part of it.
    let (device, present) = args.image.open_to_replace()?;
    let found = look(&args.image, Arc::clone(&device), Arc::clone(present.device()))?;
    drop(present);
    let is_whole = |state: &State| *state == State::Whole;
    expect_any(&found, |file| choice.wants(file) && is_whole(&file.state))?;
    let wanted = found.removed.files.iter().filter(|file| choice.wants(file));
    let left_out = wanted.filter(|file| !is_whole(&file.state)).count() as u64;
    let edit = args.image.edit(device)?;
    let now = Session::new(edit.volume())?.now();
    let Found { disk, removed } = &found;
    let done = PutBack::new(edit.volume(), (disk, &removed.files), now, |file| choice.wants(file))
        .context("no place beside what removed files left; copy them out instead")
        .and_then(|files| put_back(files, args.json));
    let closed = edit.close();
    let summary = done?;
    closed?;
    print(args, &summary, left_out, out)?;
    match summary.failed {
        0 => Ok(Outcome::Done),
        1 => bail!("one file was not put back"),
        count => bail!("{count} files were not put back"),
    }
}

fn put_back(files: PutBack, json: bool) -> Result<PutBackSummary> {
    let bar = Progress::new();
    let summary = files.run(&mut |event| match event {
        PutBackEvent::Progress(done) => {
            bar.show(done.files + done.directories + done.others, done.bytes, None);
        }
        PutBackEvent::Renamed { path, name } => {
            let (path, name) = (text::name(path), text::name(name));
            bar.say(&format!("note: /{path} exists again: the removed file is {name} beside it"));
        }
        PutBackEvent::Failed { path, error } => {
            let error = anyhow!("/{}: {error}{}", text::name(path), remedy(error));
            bar.say(&report::failure_line(&error, json));
        }
    });
    Ok(summary?)
}

/// What to do about a file that cannot be put back.
const fn remedy(error: &Error) -> &'static str {
    match error {
        Error::Invalid(_) | Error::NoSpace { .. } => "; copy it out with `undercroft undelete`",
        _ => "",
    }
}

fn print(args: &Args, summary: &PutBackSummary, left_out: u64, out: &mut dyn Write) -> Result<()> {
    if args.json {
        let report = Report {
            files: summary.files,
            directories: summary.directories,
            others: summary.others,
            bytes: summary.bytes,
            there_already: summary.there,
            failed: summary.failed,
            left_out,
        };
        report::json_line(out, &report)?;
        return Ok(());
    }
    writeln!(
        out,
        "{} files, {} directories, {} others, {} of data put back",
        summary.files,
        summary.directories,
        summary.others,
        text::bytes(summary.bytes),
    )?;
    if summary.there > 0 {
        report::note(format_args!("{} files were back already", summary.there));
    }
    if left_out > 0 {
        report::note(format_args!(
            "{left_out} files were left out that are not whole, or that clones share blocks with; \
             without --in-place they can be copied out"
        ));
    }
    Ok(())
}
