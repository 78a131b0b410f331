//! `undercroft describe`.

mod json;

use crate::image::PartArgs;
use crate::output_file;
use crate::progress::Progress;
use crate::report::{self, Outcome};
use crate::tree;
use anyhow::Result;
use clap::{ValueEnum, ValueHint};
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use undercroft_source::SourceOptions;
use undercroft_source::describe::Listing;
use undercroft_source::description::Algorithm;

/// Describe a tree as a text: names, attributes, and digests of all contents.
///
/// The tree is a volume or a source as `build` takes it. Entries are in the order of a directory, so
/// that equal trees have equal descriptions, which `diff` compares. `build` makes a volume of a
/// description again, with the contents from a directory.
///
/// mtree is that of bsdtar and mtree; it has no place for extended attributes, which are counted
/// at the end. Names of one file have a tag in common, which `build` knows. composefs is that of
/// mkcomposefs --from-file, with all attributes and the digests of fs-verity; the payload of a file is
/// its path. json is one object a line. Holes are only in json. Files of 1 TiB and more have a digest
/// in composefs alone, which takes the zeros of holes at once.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// A volume (an image file, a disk, or a device stacked on several), a directory, a tar file, - for
    /// a tar stream on standard input, oci:DIR or another container image, or a description.
    #[arg(value_hint = ValueHint::AnyPath)]
    source: OsString,

    /// The language of the description.
    #[arg(long, value_enum)]
    format: Format,

    /// Write to a file instead of standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,

    /// Replace a file that exists.
    #[arg(long, requires = "output")]
    force: bool,

    #[command(flatten)]
    part: PartArgs,
}

/// The languages.
#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// mtree(5).
    Mtree,
    /// composefs-dump(5).
    Composefs,
    /// An object a line.
    Json,
}

const EXAMPLES: &str = "\
Examples:
  undercroft describe --format mtree root.img
  undercroft describe --format json --output rootfs.json rootfs.tar.zst
  undercroft describe --format composefs --output root.dump rootfs/
  undercroft describe --format mtree --partition 2 disk.img";

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    if let Some(path) = &args.output {
        output_file::check(path, args.force)?;
    }
    let part = args.part.part().unwrap_or_default();
    let mut source = tree::open(&args.source, part, &SourceOptions::default())?;
    let algorithm = match args.format {
        Format::Composefs => Algorithm::Verity,
        Format::Mtree | Format::Json => Algorithm::Sha256,
    };
    let bar = Progress::new();
    let listed = Listing::of(source.as_mut(), algorithm, &mut |entries, bytes| {
        bar.show(entries, bytes, None);
    });
    drop(bar);
    let listing = listed?;
    match &args.output {
        None => write(&listing, args.format, out)?,
        Some(path) => {
            let mut text = Vec::new();
            write(&listing, args.format, &mut text)?;
            output_file::write(path, &text, args.force)?;
        }
    }
    Ok(Outcome::Done)
}

fn write(listing: &Listing, format: Format, out: &mut dyn Write) -> Result<()> {
    match format {
        Format::Mtree => {
            let left_out = listing.mtree(out)?;
            if left_out > 0 {
                report::note(format_args!(
                    "{left_out} extended attributes have no place in mtree; composefs and \
                     json have them"
                ));
            }
        }
        Format::Composefs => listing.composefs(out)?,
        Format::Json => json::write(listing, out)?,
    }
    Ok(())
}
