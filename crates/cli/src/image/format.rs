//! What is made of files that hold a disk in a format of their own.

#[cfg(feature = "objects")]
use super::cache::CacheArgs;
use super::keys::KeyRing;
use crate::stats::IMAGE_HEADING;
use anyhow::Result;
use clap::{ValueEnum, ValueHint};
use std::path::{Path, PathBuf};
use undercroft_block::stack::DiskFormat;

/// What is made of files that hold a disk in a format of their own, such as qcow2.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct FormatArgs {
    /// Take an image as the bytes that it is, whatever they look like. Without this, a qcow2 is the disk in
    /// it.
    #[arg(long, value_name = "FORMAT", conflicts_with = "backing", help_heading = IMAGE_HEADING)]
    format: Option<Format>,

    /// Read the files that an image names, if they are in its directory or below.
    ///
    /// Those are what a qcow2 has only the changes to, and the data of a VMDK.
    #[arg(long, help_heading = IMAGE_HEADING)]
    backing: bool,

    /// The disk as it was at this snapshot of a qcow2.
    ///
    /// It is only read. `undercroft disks` lists the names; identifiers count, too.
    #[arg(long, value_name = "NAME", conflicts_with = "format", hide_short_help = true,
        help_heading = IMAGE_HEADING)]
    snapshot: Option<String>,

    /// What opens a LUKS container is all that is in this file.
    ///
    /// `-` is standard input. Repeat for more. The variable UNDERCROFT_PASSPHRASE may have it, too; else it is asked for at the
    /// terminal.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = IMAGE_HEADING)]
    key_file: Vec<PathBuf>,

    #[cfg(feature = "objects")]
    #[command(flatten)]
    cache: CacheArgs,
}

/// Formats that can be said.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Raw,
}

impl FormatArgs {
    /// Has disks in object stores that are opened from now on use the cache that is named.
    pub(crate) fn use_cache(&self) {
        #[cfg(feature = "objects")]
        self.cache.apply();
    }

    /// The same with another cache.
    #[cfg(feature = "objects")]
    pub(crate) fn with_cache(self, cache: CacheArgs) -> Self {
        Self { cache, ..self }
    }

    /// The passphrases.
    pub(crate) fn key_ring(&self) -> Result<KeyRing> {
        KeyRing::of(&self.key_file)
    }

    /// The same, with one more file.
    pub(crate) fn key_ring_with(&self, file: &Path) -> Result<KeyRing> {
        let files: Vec<_> = self.key_file.iter().cloned().chain([file.to_owned()]).collect();
        KeyRing::of(&files)
    }

    /// The snapshot that is the disk.
    pub(crate) fn snapshot(&self) -> Option<&str> {
        self.snapshot.as_deref()
    }

    /// What they say of the format.
    pub(crate) fn disk_format(&self) -> DiskFormat {
        match (self.format, self.backing) {
            (Some(Format::Raw), _) => DiskFormat::Raw,
            (None, true) => DiskFormat::Backed,
            (None, false) => DiskFormat::Auto,
        }
    }
}
