//! `undercroft status`.

use crate::mounts::status_of;
use crate::report::{self, Outcome};
use crate::text;
use anyhow::{Context, Result};
use clap::ValueHint;
use std::io::Write;
use std::path::PathBuf;

/// Print the state of a mount: what is dirty, in the journal, under way and in memory, and the errors
/// so far.
///
/// What the kernel holds back is not in it; `sync -f DIR` sends that.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Directory that the volume is mounted at.
    #[arg(value_hint = ValueHint::DirPath)]
    directory: PathBuf,

    /// Print it as JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let status = status_of(&args.directory).with_context(|| {
        let at = args.directory.display();
        format!("{at} is not the root of a volume that undercroft has mounted")
    })?;
    if args.json {
        report::json_line(out, &status)?;
        return Ok(Outcome::Done);
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
    Ok(Outcome::Done)
}
