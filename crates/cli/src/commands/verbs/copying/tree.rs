//! A tree copied into a volume, with a progress bar and a word at the end.

use crate::commands::warnings::warn;
use crate::progress::Progress;
use crate::report::{self, Outcome};
use crate::session::Session;
use crate::text;
use anyhow::Result;
use serde::Serialize;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use undercroft_image::copy::{self, CopyOptions, CopySummary};
use undercroft_source::Source;

/// What was copied as JSON.
#[derive(Serialize)]
struct Line {
    #[serde(flatten)]
    path: text::Name,
    entries: u64,
    bytes: u64,
}

/// Where a directory comes that is copied to a path: in a directory there, under its name; with /. behind it,
/// what is in it comes to the path itself.
pub(crate) fn target(session: &Session<'_>, path: &OsStr, source: &OsStr) -> Result<OsString> {
    let bytes = source.as_bytes();
    if bytes == b"." || bytes.ends_with(b"/.") {
        return Ok(path.to_owned());
    }
    session.destination(path, source)
}

/// Copies a source to a path, and says what was done.
pub(crate) fn copy(
    session: &Session<'_>,
    path: &OsStr,
    source: &mut dyn Source,
    options: CopyOptions,
    json: bool,
    out: &mut dyn Write,
) -> Result<Outcome> {
    let bar = Progress::new();
    let mut show = |entries, bytes| bar.show(entries, bytes, None);
    let copied = copy::copy(&session.fs, Path::new(path), source, options, &mut show);
    drop(bar);
    let CopySummary { entries, bytes, warnings, .. } = copied?;
    warn(&warnings, false);
    let path = text::Name::new(path.as_bytes());
    if json {
        report::json_line(out, &Line { path, entries, bytes })?;
    } else {
        writeln!(out, "{path}: {entries} entries, {} of data", text::bytes(bytes))?;
    }
    Ok(Outcome::Done)
}
