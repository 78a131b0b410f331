//! `undercroft mkfs`.

use crate::disk_options::format_of_name;
use crate::failure::Usage;
use crate::format_options::FormatArgs;
use crate::report::{self, Outcome};
use crate::stats::StatsArgs;
use crate::{text, value};
use anyhow::Result;
use clap::ValueHint;
use serde::Serialize;
use std::io::Write;
use std::time::SystemTime;
use undercroft_block::stack::Description;
use undercroft_image::pack::{Empty, EmptyOptions, make_empty};
use undercroft_xfs::format::Timestamp;
use uuid::Uuid;

/// Make an empty volume.
///
/// The options -L -f -b -d -i -l -m -n -s -K of mkfs.xfs are taken as well, where they mean the same.
///
/// For example: undercroft mkfs --size 1G --label data data.img
#[derive(clap::Args)]
pub(super) struct Args {
    /// The image file to make, or a block device; or a device stacked on several, such as
    /// 'stripe:64k(a.img,b.img)' or @stack.toml, whose files are made.
    #[arg(value_parser = value::image(), value_hint = ValueHint::AnyPath)]
    image: Description,

    /// Size of the volume (such as 64K, 1.5G, 10MB); a block device is filled without it.
    #[arg(long, value_name = "SIZE", value_parser = value::size)]
    size: Option<u64>,

    /// Replace an image that exists, or overwrite what is on a device: the message without this names
    /// it. A target that is mounted is always refused.
    #[arg(long)]
    force: bool,

    /// Return when the image is on stable storage.
    #[arg(long)]
    sync: bool,

    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,

    /// Owner and group of the root directory, as numbers.
    #[arg(long, value_name = "UID:GID", value_parser = value::owner, default_value = "0:0")]
    owner: (u32, u32),

    /// Permission bits of the root directory, in octal.
    #[arg(long, value_name = "MODE", value_parser = value::mode, default_value = "755")]
    root_mode: u16,

    /// Times of the root directory in seconds since 1970; the present without it.
    #[arg(long, value_name = "SECONDS", env = "SOURCE_DATE_EPOCH", allow_negative_numbers = true)]
    source_date_epoch: Option<i64>,

    /// Identifier of the volume; random without it.
    #[arg(long)]
    uuid: Option<Uuid>,

    #[command(flatten)]
    stats: StatsArgs,

    #[command(flatten)]
    format: FormatArgs,
}

/// The new volume as JSON.
#[derive(Serialize)]
struct Report {
    uuid: Uuid,
    block_size: u64,
    blocks: u64,
    free_blocks: u64,
    agcount: u32,
    log_blocks: u32,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    if args.format.follows_kernel() {
        return Err(
            Usage("--preset auto looks at a tree, and an empty volume has none".into()).into()
        );
    }
    if let Some(format) = format_of_name(&args.image) {
        let what = format!(
            "{}: an empty volume is written raw, and its name says {format}: choose another name",
            args.image
        );
        return Err(Usage(what).into());
    }
    let seconds = args.source_date_epoch.unwrap_or_else(now);
    let uuid = args.uuid.unwrap_or_else(Uuid::new_v4);
    let Empty { superblock, devices } = make_empty(&EmptyOptions {
        image: args.image.clone(),
        force: args.force,
        durable: args.sync,
        volume: args.format.options(args.size.unwrap_or(0), uuid)?,
        root_mode: args.root_mode,
        root_owner: args.owner,
        time: Timestamp { seconds, nanoseconds: 0 },
    })?;
    let block_size = 1 << superblock.block_log;
    if args.json {
        let report = Report {
            uuid: superblock.uuid,
            block_size,
            blocks: superblock.blocks,
            free_blocks: superblock.free_blocks,
            agcount: superblock.ag_count,
            log_blocks: superblock.log_blocks,
        };
        report::json_line(out, &report)?;
    } else {
        writeln!(
            out,
            "{}: {} in {} allocation groups, {} free, UUID {}",
            args.image,
            text::bytes(superblock.blocks * block_size),
            superblock.ag_count,
            text::bytes(superblock.free_blocks * block_size),
            superblock.uuid,
        )?;
    }
    args.stats.print(&devices, args.json, out)?;
    Ok(Outcome::Done)
}

/// The present in seconds since 1970; 0 for clocks that are before it.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
