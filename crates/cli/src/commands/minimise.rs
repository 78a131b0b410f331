//! `undercroft minimise`.

use super::shrink;
use crate::image::{self, ImageArgs};
use crate::report::Outcome;
use anyhow::Result;
use std::io::Write;
use undercroft_xfs::maintain;

/// Make a volume as small as it can be, in place: the last step of making an image.
///
/// This is `undercroft shrink --size min` until nothing is gained any more: contents of files,
/// inodes and the journal move to the front, and the file is cut behind the volume. `undercroft
/// grow` or `xfs_growfs` makes the volume larger on its target.
///
/// An interruption loses nothing: the same command goes on, and `undercroft shrink --abandon` gives
/// it up.
///
/// For example: undercroft minimise root.img
#[derive(clap::Args)]
#[command(mut_arg("no_replay", image::hidden))]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) image: ImageArgs,

    /// Give no inode another number: the volume becomes as small as that allows.
    #[arg(long)]
    keep_inode_numbers: bool,

    /// Make the partition, chosen by --partition, as short as the volume in the partition table, last
    /// of all: a primary one, or one of a GPT.
    #[arg(long, requires = "partition")]
    partition_table: bool,

    /// Look at all files before and afterwards, and say how spread they are, as `undercroft frag` does.
    #[arg(long)]
    frag: bool,

    /// Print the sizes as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let report =
        shrink::perform(&args.image, args.partition_table, args.frag, |device, progress| {
            maintain::minimise(device, args.keep_inode_numbers, progress)
        })?;
    shrink::print(&report, args.json, out)?;
    Ok(Outcome::Done)
}
