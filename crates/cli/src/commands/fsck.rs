//! `undercroft fsck`: the command as fsck(8) calls it.

use super::repair::{self, CORRECTED, UNCORRECTED};
use super::{check, replay};
use crate::image::{self, ImageArgs};
use crate::report::{self, Outcome};
use anyhow::Result;
use serde::Serialize;
use std::io::Write;
use undercroft_xfs::check::CheckOptions;
use undercroft_xfs::maintain;

/// Exit statuses of fsck(8).
pub(crate) const TROUBLE: u8 = 8;
pub(crate) const WRONG_USAGE: u8 = 16;

/// Replay, check and repair a volume as fsck(8) asks for it, with its exit statuses.
///
/// This is what `fsck.undercroft` does, a name that packages install for fsck(8). With -a, -p or -y the
/// journal is replayed first, as a mount would do, and what a cut grow, set or shrink left is completed.
/// Faults whose repair loses nothing are repaired then, all at once through the journal; others are told, and
/// `undercroft repair` shows what they cost. Without these options, and with --no-replay, nothing is written.
///
/// Exit status: 0 no faults; 1 the journal was replayed, blocks were freed or faults repaired, and none are
/// left; 4 faults; 8 it failed; 16 wrong usage.
///
/// For example: undercroft fsck -p root.img
#[derive(clap::Args)]
#[command(mut_arg("no_replay", image::hidden), group = clap::ArgGroup::new("write").args(["auto", "preen", "yes"]).multiple(true))]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) image: ImageArgs,

    /// Replay the journal of a volume that was not unmounted.
    #[arg(short)]
    auto: bool,

    /// The same.
    #[arg(short)]
    preen: bool,

    /// The same.
    #[arg(short)]
    yes: bool,

    /// Write nothing, which is so without -a, -p and -y, too.
    #[arg(short, conflicts_with = "write")]
    no: bool,

    /// Check a clean volume, too, which is always done.
    #[arg(short)]
    force: bool,

    /// Print what was done and found as JSON, one object a line.
    #[arg(long)]
    pub(super) json: bool,

    /// Progress goes to a terminal in any case.
    #[arg(short = 'C', value_name = "DESCRIPTOR", num_args = 0..=1, require_equals = false, hide = true)]
    progress: Option<Option<i32>>,
}

/// Blocks that were freed, as JSON.
#[derive(Serialize)]
struct Freed {
    freed_journal_blocks: u64,
}

fn tell_freed(blocks: u64, json: bool, out: &mut dyn Write) -> Result<()> {
    if json {
        return Ok(report::json_line(out, &Freed { freed_journal_blocks: blocks })?);
    }
    Ok(writeln!(out, "freed {blocks} blocks of a journal that moved in a shrink that was cut")?)
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let may_write = (args.auto || args.preen || args.yes) && args.image.may_replay();
    let mut corrected = match may_write.then(|| replay::replay(&args.image, false)).transpose()? {
        Some(report) => {
            replay::tell(report.as_ref(), false, args.json, out)?;
            report.is_some()
        }
        None => false,
    };
    if may_write {
        // Where that fails, the check tells why.
        let blocks = maintain::free_left_journal(&args.image.writable_device()?).unwrap_or(0);
        if blocks > 0 {
            tell_freed(blocks, args.json, out)?;
            corrected = true;
        }
    }
    let options = CheckOptions { replay: args.image.may_replay(), ..CheckOptions::default() };
    Ok(match check::volume(&args.image, &options, args.json, out)? {
        Outcome::Findings if may_write && repair::without_loss(&args.image, args.json, out)? => {
            Outcome::Status(CORRECTED)
        }
        Outcome::Findings => Outcome::Status(UNCORRECTED),
        _ if corrected => Outcome::Status(CORRECTED),
        outcome => outcome,
    })
}
