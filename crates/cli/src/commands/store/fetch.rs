//! `undercroft fetch`.

use super::super::convert::{self, Report};
use super::{StoreArgs, expect_image, uri};
use crate::image::{CacheArgs, ImageArgs};
use crate::output_file;
use crate::report::{self, Outcome};
use crate::text;
use anyhow::Result;
use clap::ValueHint;
use std::io::Write;
use std::path::PathBuf;
use undercroft_block::stack::Description;
use undercroft_store::Location;

/// Copy an image that was published into a file, with holes, to be changed or kept.
///
/// All chunks are verified by their digests. What was left out when it was published reads as zeroes.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(in super::super) struct Args {
    /// The image: s3://BUCKET/PREFIX@NAME, gs://, az://, https://, @sha256:DIGEST in the place of @NAME,
    /// or a directory, DIR@NAME.
    #[arg(value_name = "STORE@NAME")]
    source: String,

    /// The new file.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    target: PathBuf,

    /// Replace a file that exists.
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    store: StoreArgs,

    #[command(flatten)]
    cache: CacheArgs,
}

const EXAMPLES: &str = "\
Examples:
  undercroft fetch s3://bucket/images@v1 root.img
  undercroft publish root.img store@v1 && undercroft fetch store@v1 copy.img";

pub(in super::super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    output_file::check(&args.target, args.force)?;
    let uri = uri(&args.source)?;
    expect_image(&args.source, Location::parse(&uri)?.reference().cloned())?;
    let image: Description = Description::from_argument(std::ffi::OsStr::new(&uri))?;
    let disk = ImageArgs::disk_of(image).with_cache(args.cache.clone()).device()?;
    let report = convert::to_raw(&*disk, &args.target, args.force)?;
    if args.store.json {
        report::json_line(out, &report)?;
    } else {
        let Report { bytes, data_bytes, .. } = report;
        let (bytes, data) = (text::bytes(bytes), text::bytes(data_bytes));
        writeln!(out, "{}: {bytes}, {data} of data", args.target.display())?;
    }
    args.store.print_stats(out)?;
    Ok(Outcome::Done)
}
