//! `undercroft check`.

use crate::image::ImageArgs;
use crate::report::{self, Outcome};
use crate::text;
use anyhow::Result;
use serde::Serialize;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use undercroft_xfs::check::{self, CheckOptions, Finding, Report, Severity};
use undercroft_xfs::recovery::LogState;

/// Check a volume: read everything, and compare what is stored twice.
///
/// Findings are printed as they come, one a line: errors, and warnings of remains of a crash on a
/// clean volume. The volume is not changed. Exit status 1 means that there are errors.
///
/// For example: undercroft check root.img
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) image: ImageArgs,

    /// Threads that read and check.
    #[arg(long, value_name = "COUNT", default_value = "2")]
    threads: NonZeroUsize,

    /// Findings printed; further ones are only counted.
    #[arg(long, value_name = "COUNT", default_value = "10000")]
    max_findings: u64,

    /// Print one JSON object a line: the findings, then the summary.
    #[arg(long)]
    pub(super) json: bool,
}

/// A finding as JSON.
#[derive(Serialize)]
struct Line<'a> {
    severity: &'static str,
    place: String,
    structure: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    field: &'static str,
    what: &'a str,
}

/// The summary as JSON.
#[derive(Serialize)]
struct Summary {
    clean: bool,
    complete: bool,
    errors: u64,
    warnings: u64,
    log: &'static str,
    inodes: u64,
    directories: u64,
    bytes: u64,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let options = CheckOptions {
        threads: args.threads.get(),
        findings_max: args.max_findings,
        replay: args.image.may_replay(),
    };
    volume(&args.image, &options, args.json, out)
}

/// Checks the volume of `image` and prints what it finds.
pub(super) fn volume(
    image: &ImageArgs,
    options: &CheckOptions,
    json: bool,
    out: &mut dyn Write,
) -> Result<Outcome> {
    let device = image.device()?;
    // A reader that goes away ends the output, not the check.
    let mut written = Ok(());
    let report = check::check(device, options, &mut |finding| {
        if written.is_ok() {
            written = print(&finding, json, out);
        }
    });
    let report = report.map_err(|error| image.explain(error.into()))?;
    let outcome = if report.is_clean() { Outcome::Done } else { Outcome::Findings };
    match written.and_then(|()| summarize(&report, json, out)) {
        // A reader of the first lines alone gets the verdict, too.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(outcome),
        written => Ok(written.map(|()| outcome)?),
    }
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

fn print(finding: &Finding, json: bool, out: &mut dyn Write) -> io::Result<()> {
    let Finding { location, structure, field, what, .. } = finding;
    let severity = severity(finding.severity);
    if json {
        let place = location.to_string();
        return report::json_line(out, &Line { severity, place, structure, field, what });
    }
    writeln!(out, "{severity}: {}", text::visible(&finding.to_string()))
}

fn summarize(report: &Report, json: bool, out: &mut dyn Write) -> io::Result<()> {
    if json {
        let log = match report.log {
            LogState::Clean => "clean",
            LogState::Dirty => "dirty",
            LogState::External => "external",
        };
        let summary = Summary {
            clean: report.is_clean(),
            complete: report.complete,
            errors: report.errors,
            warnings: report.warnings,
            log,
            inodes: report.inodes,
            directories: report.directories,
            bytes: report.bytes,
        };
        return report::json_line(out, &summary);
    }
    let verdict = match (report.errors, report.complete) {
        (0, true) if report.warnings > 0 => format!("clean, {} warnings", report.warnings),
        (0, true) => "clean".to_owned(),
        (0, false) => "not everything could be read".to_owned(),
        (errors, _) => format!("{errors} errors"),
    };
    writeln!(
        out,
        "{verdict}: {} inodes, {} directories, {} of metadata read",
        report.inodes,
        report.directories,
        text::bytes(report.bytes)
    )
}
