//! `undercroft replay`.

use crate::failure::Usage;
use crate::image::{self, ImageArgs};
use crate::progress::Progress;
use crate::report::{self, Outcome};
use anyhow::{Result, bail};
use serde::Serialize;
use std::io::Write;
use std::sync::Arc;
use undercroft_block::BlockDevice;
use undercroft_block::stack::Overlay;
use undercroft_xfs::recovery::RecoveryReport;
use undercroft_xfs::recovery::{RecoveryProgress, recover};
use undercroft_xfs::units::Lsn;

/// Replay the journal of a volume that was not unmounted, so that it is clean.
///
/// Unfinished work of the kernel is finished, files that were deleted while they were open are
/// freed, and the counters are made right. An interruption does no harm: replay again. A journal
/// with records that this version does not know is refused before anything is written.
///
/// For example: undercroft replay --dry-run root.img
#[derive(clap::Args)]
#[command(mut_arg("no_replay", image::hidden))]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) image: ImageArgs,

    /// Replay in memory only: tell what would be done, and write nothing.
    #[arg(long)]
    dry_run: bool,

    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

/// The findings and the work done, as JSON.
#[derive(Serialize)]
struct Report {
    state: &'static str,
    written: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    tail: Option<Position>,
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<Position>,
    records: u64,
    transactions: u64,
    items: u64,
    blocks: u64,
    intents: u64,
    unlinked_inodes: u64,
    cow_extents: u64,
    dropped_quotas: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    torn: Option<Torn>,
}

/// A place in the journal.
#[derive(Serialize)]
struct Position {
    cycle: u32,
    block: u32,
}

/// The first record that did not count.
#[derive(Serialize)]
struct Torn {
    #[serde(flatten)]
    position: Position,
    what: String,
}

impl From<Lsn> for Position {
    fn from(lsn: Lsn) -> Self {
        Self { cycle: lsn.cycle(), block: lsn.block() }
    }
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    if !args.image.may_replay() {
        bail!(Usage(
            "--no-replay leaves nothing to do: replay the journal, or look with `info`".into()
        ));
    }
    let report = replay(&args.image, args.dry_run)?;
    tell(report.as_ref(), args.dry_run, args.json, out)?;
    Ok(Outcome::Done)
}

/// Prints what was done, for people or as JSON.
pub(super) fn tell(
    report: Option<&RecoveryReport>,
    dry_run: bool,
    json: bool,
    out: &mut dyn Write,
) -> Result<()> {
    if json {
        return Ok(report::json_line(out, &as_json(report, dry_run))?);
    }
    print(report, dry_run, out)
}

/// Replays the journal of the volume of `image`; `None` if it was clean.
pub(super) fn replay(image: &ImageArgs, dry_run: bool) -> Result<Option<RecoveryReport>> {
    let device: Arc<dyn BlockDevice> =
        if dry_run { Arc::new(Overlay::new(image.device()?)) } else { image.writable_device()? };
    let progress = Progress::new();
    let report = recover(&device, &mut |step| {
        let (RecoveryProgress::Checking { done, total }
        | RecoveryProgress::Replaying { done, total }) = step;
        progress.show_bytes(done * 512, total * 512);
    });
    drop(progress);
    report.map_err(|error| image.explain(error.into()))
}

fn as_json(report: Option<&RecoveryReport>, dry_run: bool) -> Report {
    let state = if report.is_some() { "dirty" } else { "clean" };
    let (tail, head) = (report.map(|done| done.tail.into()), report.map(|done| done.head.into()));
    let written = report.is_some() && !dry_run;
    let done = report.cloned().unwrap_or_default();
    Report {
        state,
        written,
        tail,
        head,
        records: done.records,
        transactions: done.transactions,
        items: done.items,
        blocks: done.blocks,
        intents: done.intents,
        unlinked_inodes: done.unlinked,
        cow_extents: done.cow_extents,
        dropped_quotas: done.dropped_quotas,
        torn: done.torn.map(|torn| Torn { position: torn.lsn.into(), what: torn.what }),
    }
}

/// Tells what was done.
fn print(report: Option<&RecoveryReport>, dry_run: bool, out: &mut dyn Write) -> Result<()> {
    let Some(report) = report else {
        return Ok(writeln!(out, "clean: nothing to replay")?);
    };
    let position = |lsn: Lsn| format!("cycle {}, block {}", lsn.cycle(), lsn.block());
    let verb = if dry_run { "would replay" } else { "replayed" };
    writeln!(
        out,
        "{verb} {} records with {} transactions of {} items, from {} to {}",
        report.records,
        report.transactions,
        report.items,
        position(report.tail),
        position(report.head)
    )?;
    if let Some(torn) = &report.torn {
        let place = position(torn.lsn);
        writeln!(out, "left out    what a crash cut off at {place}: {}", torn.what)?;
    }
    let counts = [
        ("finished", report.intents, "intents"),
        ("freed", report.unlinked, "deleted files that were open"),
        ("freed", report.cow_extents, "extents set aside for copy-on-write"),
    ];
    for (verb, count, what) in counts.into_iter().filter(|(_, count, _)| *count > 0) {
        writeln!(out, "{verb:<11} {count} {what}")?;
    }
    if report.dropped_quotas {
        writeln!(out, "left out    changes of quotas; they are counted anew at the next mount")?;
    }
    Ok(())
}
