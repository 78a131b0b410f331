//! `undercroft resync`.

use crate::failure::Usage;
use crate::progress::Progress;
use crate::report::{self, Outcome};
use crate::stats::StatsArgs;
use crate::text;
use crate::value;
use anyhow::{Context, Result, anyhow, bail};
use clap::ValueHint;
use serde::Serialize;
use std::io::Write;
use std::ops::ControlFlow;
use std::sync::Arc;
use undercroft_block::BlockDevice;
use undercroft_block::stack::{Description, DeviceReport, MirrorEvent, MirrorLeg, ResyncError};

/// Fill a leg of a mirror with the data of its other legs.
///
/// Two occasions call for it: a command told that a leg failed and was dropped from its mirror, or a
/// disk was replaced by an empty one. Nothing on the legs says which of them is up to date, so you
/// do: LEG is overwritten, the others are only read. Until it is filled, leave it out: give commands
/// the other legs instead of the mirror.
///
/// All of LEG is copied, as far as the mirror reaches, and flushed. An interruption leaves it out of
/// date: start again. A file that is to replace a lost one is made first, as long as the others.
///
/// Examples:
///   undercroft resync 'mirror(a.img,b.img)' b.img
///   truncate --reference=a.img b.img && undercroft resync 'mirror(a.img,b.img)' b.img
///   undercroft resync 'stripe:64k(mirror(/dev/sda,/dev/sdb),mirror(/dev/sdc,/dev/sdd))' /dev/sdd
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// The device with the mirror in it, such as 'mirror(a.img,b.img)' or @stack.toml.
    #[arg(value_parser = value::image(), value_hint = ValueHint::AnyPath)]
    device: Description,

    /// The leg to overwrite, as it stands in DEVICE; of a file or disk the path is enough.
    #[arg(value_parser = value::image(), value_hint = ValueHint::AnyPath)]
    leg: Description,

    /// Print the result as JSON.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    stats: StatsArgs,
}

/// The result, as JSON.
#[derive(Serialize)]
struct Report {
    mirror: String,
    leg: String,
    bytes: u64,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let leg = find(args)?;
    check_files(leg)?;
    let note = |event: &MirrorEvent| match event {
        // Told at the end, on standard output.
        MirrorEvent::Resynchronised { .. } => {}
        other => report::note(other),
    };
    let mirror = leg
        .open_stale(Some(Arc::new(note)))
        .with_context(|| format!("cannot fill {}", leg.description()))?;
    let bytes = mirror.capacity().to_bytes().unwrap_or(u64::MAX);
    check_others(leg, bytes)?;
    let progress = Progress::new();
    let filled = mirror.resynchronise(leg.number(), &mut |copied| {
        progress.show_bytes(copied.done, copied.total);
        ControlFlow::Continue(())
    });
    drop(progress);
    filled.map_err(|error| explain(leg, error))?;
    let report = Report { mirror: mirror.name().into(), leg: leg.description().to_string(), bytes };
    if args.json {
        report::json_line(out, &report)?;
    } else {
        let Report { mirror, leg, .. } = report;
        writeln!(out, "{leg} is up to date in {mirror}: {} copied", text::bytes(bytes))?;
    }
    args.stats.print(&DeviceReport::of_stack(&mirror), args.json, out)?;
    Ok(Outcome::Done)
}

/// The leg that is meant.
fn find(args: &Args) -> Result<MirrorLeg<'_>> {
    let legs = args.device.mirror_legs();
    if legs.is_empty() {
        let what = format!(
            "there is no mirror in {}; write one such as 'mirror(a.img,b.img)'",
            args.device
        );
        bail!(Usage(what));
    }
    legs.iter().copied().find(|leg| leg.is_called(&args.leg)).ok_or_else(|| {
        let names: Vec<String> = legs.iter().map(|leg| leg.description().to_string()).collect();
        let (leg, device, names) = (&args.leg, &args.device, names.join(", "));
        anyhow!(Usage(format!("{leg} is no leg of a mirror in {device}; choose one of {names}")))
    })
}

/// Says how to make a missing file.
fn check_files(leg: MirrorLeg<'_>) -> Result<()> {
    for file in leg.description().files() {
        if !file.path.exists() {
            let path = file.path.display();
            bail!(
                "{path} does not exist; make it first, so that {} is as long as the other legs: \
                 truncate --size=BYTES {path}",
                leg.description()
            );
        }
    }
    Ok(())
}

/// Refuses to fill a leg from legs that are empty, and a file from shorter ones: those lost their end, or
/// are others than were meant. A disk may be replaced by a longer one.
fn check_others(leg: MirrorLeg<'_>, bytes: u64) -> Result<()> {
    let name = leg.description();
    if bytes == 0 {
        bail!("cannot fill {name}: the other legs of its mirror have no bytes");
    }
    let Some(path) = name.as_path() else { return Ok(()) };
    let metadata = path.metadata().with_context(|| format!("cannot fill {name}"))?;
    if metadata.is_file() && metadata.len() > bytes.next_multiple_of(4096) {
        let found = metadata.len();
        bail!(
            "cannot fill {name}: it has {found} bytes, the other legs of the mirror {bytes}; bring \
             their length back, or cut it if they are whole: truncate --size={bytes} {}",
            path.display()
        );
    }
    Ok(())
}

/// Says what the operator can do.
fn explain(leg: MirrorLeg<'_>, error: ResyncError) -> anyhow::Error {
    let name = leg.description();
    let remedy = match &error {
        ResyncError::Write(_) => {
            format!("{name} is still out of date; replace it and start again")
        }
        ResyncError::Read(_) => {
            format!("no leg beside {name} holds all; {name} is partly overwritten, and out of date")
        }
        _ => format!("{name} is still out of date; start again"),
    };
    anyhow::Error::new(error).context(remedy)
}
