//! `undercroft status`.

use crate::mounts::{places, status_of};
use crate::report::{self, Outcome};
use crate::text;
use anyhow::{Context, Result};
use clap::ValueHint;
use std::io::Write;
use std::path::PathBuf;
use undercroft_fuse::Status;

/// Print the state of a mount: what is dirty, in the journal, under way and in memory, and the errors
/// so far.
///
/// What the kernel holds back is not in it; `sync -f DIR` sends that.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Directory that the volume is mounted at; all mounts, if it is left out.
    #[arg(value_hint = ValueHint::DirPath)]
    directory: Option<PathBuf>,

    /// Print it as JSON.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  undercroft status     what is mounted
  undercroft mount root.img --exec undercroft status --json .";

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    if let Some(directory) = &args.directory {
        let status = status_of(directory).with_context(|| {
            let at = directory.display();
            format!("{at} is not the root of a volume that undercroft has mounted")
        })?;
        print(&status, args.json, out)?;
        return Ok(Outcome::Done);
    }
    let places = places().context("cannot list the mounts")?;
    for (index, directory) in places.iter().enumerate() {
        if !args.json {
            let line = if index > 0 { "\n" } else { "" };
            writeln!(out, "{line}{}", text::name(directory.as_os_str().as_encoded_bytes()))?;
        }
        match status_of(directory) {
            Ok(status) => print(&status, args.json, out)?,
            Err(error) => report::note(format_args!(
                "the server of {} does not answer: {error}; `undercroft unmount` removes it",
                directory.display()
            )),
        }
    }
    if places.is_empty() && !args.json {
        writeln!(out, "undercroft has mounted nothing")?;
    }
    Ok(Outcome::Done)
}

fn print(status: &Status, json: bool, out: &mut dyn Write) -> Result<()> {
    if json {
        return Ok(report::json_line(out, status)?);
    }
    let state = match (&status.failed, status.read_only) {
        (Some(why), _) => format!("read-only since something failed: {why}"),
        (None, true) if status.at_rest => "read-only since it was remounted, and clean".into(),
        (None, true) => "read-only".into(),
        (None, false) => "read and written".into(),
    };
    writeln!(out, "image:          {}", text::visible(&status.image))?;
    writeln!(out, "state:          {state}")?;
    writeln!(out, "server:         process {}", status.pid)?;
    writeln!(out, "dirty data:     {}", text::bytes(status.dirty_data))?;
    let (buffers, dirty) = (text::bytes(status.buffers), text::bytes(status.dirty_buffers));
    writeln!(out, "metadata:       {buffers}, {dirty} of it dirty")?;
    let (used, all) = (text::bytes(status.journal_used), text::bytes(status.journal));
    writeln!(out, "journal:        {used} of {all}")?;
    writeln!(out, "files:          {} known, {} open", status.known_files, status.open_files)?;
    // This one is not worth mentioning.
    let others = status.in_flight.saturating_sub(1);
    writeln!(out, "requests:       {}, {others} under way", status.requests)?;
    let (damage, device) = (status.damage_errors, status.device_errors);
    writeln!(out, "errors:         {damage} from damage, {device} from the device")?;
    Ok(())
}
