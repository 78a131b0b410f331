//! `undercroft prune`.

use super::{StoreArgs, open};
use crate::failure::Usage;
use crate::report::{self, Outcome};
use crate::text;
use anyhow::Result;
use serde::Serialize;
use std::io::Write;
use std::time::Duration;
use undercroft_store::{PruneOptions, Pruned};

/// Remove chunks from a store that no image has any more.
///
/// An image goes when its name is given up (--forget), or is moved to a new one, and --unnamed says that nobody
/// knows it by its digest. Hosts that read it still fail then: let some time pass.
///
/// Nothing is removed while another one publishes there, and nobody publishes meanwhile. Whatever ends
/// this early leaves no image without a chunk.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(in super::super) struct Args {
    /// The store, without a name: s3://BUCKET/PREFIX, gs://, az://, or a directory.
    #[arg(value_name = "STORE")]
    source: String,

    /// Keep what was stored in the last so many hours, by the clock of the store.
    #[arg(long, value_name = "HOURS", default_value = "24")]
    grace: u64,

    /// Give this name up first. Repeat for more.
    #[arg(long, value_name = "NAME")]
    forget: Vec<String>,

    /// Remove images that have no name, too.
    #[arg(long)]
    unnamed: bool,

    /// Only say what would be removed.
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    store: StoreArgs,
}

const EXAMPLES: &str = "\
Examples:
  undercroft prune --forget v1 --unnamed s3://bucket/images
  undercroft publish root.img store@v1 && undercroft prune --dry-run store";

#[derive(Serialize)]
struct Report {
    images: u64,
    chunks: u64,
    removed_images: u64,
    removed_chunks: u64,
    removed_bytes: u64,
}

pub(in super::super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let (repository, reference) = open(&args.source)?;
    if reference.is_some() {
        return Err(Usage("name the store alone; --forget NAME gives a name up".into()).into());
    }
    let hour = 3600;
    let options = PruneOptions {
        grace: Duration::from_secs(args.grace.saturating_mul(hour)),
        forget: args.forget.clone(),
        unnamed: args.unnamed,
        dry_run: args.dry_run,
    };
    let Pruned { manifests, chunks, removed_manifests, removed_chunks, removed_bytes } =
        undercroft_store::prune(&repository, &options)?;
    if args.store.json {
        let report = Report {
            images: manifests,
            chunks,
            removed_images: removed_manifests,
            removed_chunks,
            removed_bytes,
        };
        report::json_line(out, &report)?;
    } else {
        let would = if args.dry_run { "would be removed" } else { "removed" };
        let bytes = text::bytes(removed_bytes);
        writeln!(
            out,
            "{removed_manifests} images and {removed_chunks} chunks ({bytes}) {would}; {manifests} images, \
             {chunks} chunks stay"
        )?;
    }
    args.store.print_stats(out)?;
    Ok(Outcome::Done)
}
