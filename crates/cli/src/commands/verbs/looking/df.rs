//! `undercroft df`.

use super::sizes::SizeArgs;
use crate::commands::verbs::Verb;
use crate::report::{self, Outcome};
use crate::session::Session;
use anyhow::Result;
use serde::Serialize;
use std::io::Write;

/// The unit of sizes.
const KIBIBYTE: u64 = 1024;

/// Show how full the volume is, in KiB.
///
/// Space of files and their metadata; the journal, and what the volume keeps for itself, are left out, as
/// statfs(2) of a mount does.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    sizes: SizeArgs,

    /// Show inodes, not space.
    #[arg(short, long)]
    inodes: bool,

    /// Print JSON, with bytes.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  undercroft df -h root.img";

/// How full a volume is, as JSON.
#[derive(Serialize)]
struct Full {
    size_bytes: u64,
    used_bytes: u64,
    free_bytes: u64,
    inodes: u64,
    used_inodes: u64,
    free_inodes: u64,
}

impl Verb for Args {
    const CHANGES: bool = false;

    fn run(&self, session: &Session<'_>, out: &mut dyn Write) -> Result<Outcome> {
        let usage = session.fs.statfs()?;
        let bytes = |blocks: u64| blocks.saturating_mul(usage.block_size.into());
        let full = Full {
            size_bytes: bytes(usage.blocks),
            used_bytes: bytes(usage.blocks.saturating_sub(usage.free_blocks)),
            free_bytes: bytes(usage.free_blocks),
            inodes: usage.inodes.saturating_add(usage.free_inodes),
            used_inodes: usage.inodes,
            free_inodes: usage.free_inodes,
        };
        if self.json {
            report::json_line(out, &full)?;
            return Ok(Outcome::Done);
        }
        let Full { size_bytes, used_bytes, free_bytes, inodes, used_inodes, free_inodes } = full;
        let counts = if self.inodes {
            [inodes, used_inodes, free_inodes].map(|count| count.to_string())
        } else {
            [size_bytes, used_bytes, free_bytes].map(|bytes| self.sizes.shown(bytes, KIBIBYTE))
        };
        let (used, free) =
            if self.inodes { (used_inodes, free_inodes) } else { (used_bytes, free_bytes) };
        let title = match (self.inodes, self.sizes.human_readable) {
            (true, _) => "Inodes",
            (_, true) => "Size",
            _ => "1K-blocks",
        };
        writeln!(out, "{title:>12} {:>12} {:>12} Use%", "Used", "Free")?;
        let [all, taken, left] = counts;
        writeln!(out, "{all:>12} {taken:>12} {left:>12} {:>4}", percent(used, free))?;
        Ok(Outcome::Done)
    }

    fn json(&self) -> bool {
        self.json
    }
}

/// The part that is used, rounded up.
fn percent(used: u64, free: u64) -> String {
    let (used, all) = (u128::from(used), u128::from(used) + u128::from(free));
    if all == 0 { "-".to_owned() } else { format!("{}%", (used * 100).div_ceil(all)) }
}
