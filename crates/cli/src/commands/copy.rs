//! `undercroft copy`.

use super::verbs::copying::tree;
use crate::failure::Usage;
use crate::image::{ImageArgs, ImageName, Part};
use crate::report::Outcome;
use crate::session::Session;
use anyhow::Result;
use clap::builder::{OsStringValueParser, TypedValueParser};
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use undercroft_image::copy::CopyOptions;
use undercroft_image::unpack::VolumeSource;

/// Copy a directory of a volume into another volume.
///
/// All that is in it is copied as `undercroft put -r` does it. Into a directory that is there it gets the
/// name that it had; with /. behind it, what is in it is copied.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The image to read, a colon, and the path of the directory from the root of its volume.
    #[arg(value_name = "IMAGE:PATH", value_parser = Spot::parser())]
    source: Spot,

    /// The image to change, a colon, and the path to copy to.
    #[arg(value_name = "IMAGE:PATH", value_parser = Spot::parser())]
    target: Spot,

    /// Replace files that exist.
    #[arg(short, long)]
    force: bool,

    /// Print the counts of entries and bytes as JSON.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  undercroft copy old.img:/home new.img:/                 the directory home, in the root directory
  undercroft copy --force old.img:/etc/. new.img:/etc     what is in it";

/// A path in the volume of an image.
#[derive(Clone, Debug)]
struct Spot {
    image: ImageName,
    path: OsString,
}

impl Spot {
    /// `IMAGE:/PATH`: the last colon before a path counts. One before two slashes is part of a URI.
    fn parser() -> impl TypedValueParser<Value = Self> {
        OsStringValueParser::new().try_map(|text| {
            let bytes = text.as_bytes();
            let colon = bytes.windows(2).rposition(|pair| pair == b":/");
            let Some((image, path)) = colon
                .filter(|at| *at > 0 && bytes.get(at + 2) != Some(&b'/'))
                .map(|at| (&bytes[..at], &bytes[at + 1..]))
            else {
                return Err("write IMAGE:/PATH, such as root.img:/etc".to_owned());
            };
            let image = ImageName::of(OsStr::from_bytes(image));
            let image = image.map_err(|error| error.to_string())?;
            Ok(Self { image, path: OsStr::from_bytes(path).to_owned() })
        })
    }

    fn image(&self) -> ImageArgs {
        ImageArgs::part_of(self.image.clone(), Part::default())
    }
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let (from, to) = (args.source.image(), args.target.image());
    if from.name() == to.name() {
        let what = "both paths are on one volume; `undercroft clone` copies files within it";
        return Err(Usage(what.into()).into());
    }
    let volume = from.open()?;
    let path = &args.source.path;
    let read = Session::new(&volume)?;
    let mut source = VolumeSource::at(&read.fs, Path::new(path))?;
    let edit = to.open_for_change()?;
    let done = (|| {
        let session = Session::new(edit.volume())?;
        let target = tree::target(&session, &args.target.path, path)?;
        let options = CopyOptions { force: args.force, owner: None };
        tree::copy(&session, &target, &mut source, options, args.json, out)
    })();
    // Changes before an error stay; the first error counts.
    let closed = edit.close();
    done.and_then(|outcome| closed.map(|()| outcome))
}
