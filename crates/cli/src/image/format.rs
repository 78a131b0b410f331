//! What is made of files that hold a disk in a format of their own.

use crate::stats::IMAGE_HEADING;
use clap::ValueEnum;
use undercroft_block::stack::DiskFormat;

/// What is made of files that hold a disk in a format of their own, such as qcow2.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct FormatArgs {
    /// Take an image as the bytes that it is, whatever they look like. Without this, a qcow2 is the disk in
    /// it.
    #[arg(long, value_name = "FORMAT", conflicts_with = "backing", help_heading = IMAGE_HEADING)]
    format: Option<Format>,

    /// Read the file, too, that a qcow2 has only the changes to, if that is in its directory or below.
    #[arg(long, help_heading = IMAGE_HEADING)]
    backing: bool,
}

/// Formats that can be said.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Raw,
}

impl FormatArgs {
    /// What they say.
    pub(crate) fn disk_format(&self) -> DiskFormat {
        match (self.format, self.backing) {
            (Some(Format::Raw), _) => DiskFormat::Raw,
            (None, true) => DiskFormat::Backed,
            (None, false) => DiskFormat::Auto,
        }
    }
}
