//! The format of a new volume, as `build` and `mkfs` take it.

use crate::value;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use undercroft_xfs::mkfs::{self, Feature, MkfsError, MkfsOptions, Preset};
use uuid::Uuid;

/// Size of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LogSize {
    Bytes(u64),
    /// That of a volume of this size.
    Of(u64),
}

fn log_size(text: &str) -> Result<LogSize, String> {
    match text.strip_prefix("auto:") {
        Some(size) => value::size(size).map(LogSize::Of),
        None => value::size(text)
            .map(LogSize::Bytes)
            .map_err(|error| format!("{error}; or write auto: and the size that it will grow to")),
    }
}

/// The features to start from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PresetChoice {
    /// Those that the kernel in the tree mounts.
    Auto,
    Of(Preset),
}

fn preset(name: &str) -> Result<PresetChoice, String> {
    if name == "auto" { Ok(PresetChoice::Auto) } else { value::preset(name).map(PresetChoice::Of) }
}

/// Format of the new volume.
#[derive(clap::Args)]
#[command(next_help_heading = "Format")]
pub(crate) struct FormatArgs {
    /// Label of the volume, at most 12 bytes.
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    label: String,

    /// Features as mkfs.xfs has them for this long-term kernel, which can mount the result; or auto,
    /// for `build`: those that the newest kernel in lib/modules of the source can mount.
    #[arg(long, value_name = "PRESET", default_value = "default",
        value_parser = PossibleValuesParser::new(value::PRESETS).try_map(|name| preset(&name)))]
    preset: PresetChoice,

    /// Turn one feature on or off, by its name in mkfs.xfs; repeat for more.
    #[arg(long, value_name = "NAME=0|1", value_parser = value::feature)]
    feature: Vec<(Feature, bool)>,

    /// Block size, 1K to 64K.
    #[arg(long, value_name = "BYTES", value_parser = value::small_size, default_value = "4K")]
    block_size: u32,

    /// Inode size, 512 to 2048.
    #[arg(long, value_name = "BYTES", value_parser = value::small_size, default_value = "512")]
    inode_size: u32,

    /// Directory block size, at least 4K and the block size, at most 64K.
    #[arg(long, value_name = "BYTES", value_parser = value::small_size)]
    dir_block_size: Option<u32>,

    /// Sector size, 512 or 4096; on a disk with longer blocks it is theirs.
    #[arg(long, value_name = "BYTES", value_parser = value::small_size, default_value = "512")]
    sector_size: u32,

    /// Number of allocation groups.
    #[arg(long, value_name = "COUNT")]
    agcount: Option<u32>,

    /// Size of the journal; or auto:SIZE, the journal of a volume of that size, for one that will
    /// grow to it: growing never makes a journal longer.
    #[arg(long, value_name = "BYTES|auto:SIZE", value_parser = log_size)]
    log_size: Option<LogSize>,

    /// Stripe unit: the chunk of one disk of a RAID.
    #[arg(long, value_name = "BYTES", value_parser = value::size, requires = "stripe_width")]
    stripe_unit: Option<u64>,

    /// Stripe width: the chunks of all data disks of a RAID.
    #[arg(long, value_name = "BYTES", value_parser = value::size, requires = "stripe_unit")]
    stripe_width: Option<u64>,
}

impl FormatArgs {
    /// Whether the preset is that for the kernel in the tree.
    pub(crate) fn follows_kernel(&self) -> bool {
        self.preset == PresetChoice::Auto
    }

    /// The options of the library for a volume of `size` bytes.
    ///
    /// # Errors
    /// A volume of the size that the journal is for cannot be.
    pub(crate) fn options(&self, size: u64, uuid: Uuid) -> Result<MkfsOptions, MkfsError> {
        let mut options = MkfsOptions {
            block_size: self.block_size,
            sector_size: self.sector_size,
            inode_size: self.inode_size,
            dir_block_size: self.dir_block_size,
            ag_count: self.agcount,
            stripe: self.stripe_unit.zip(self.stripe_width),
            label: self.label.clone(),
            preset: match self.preset {
                PresetChoice::Auto => Preset::Default,
                PresetChoice::Of(preset) => preset,
            },
            features: self.feature.clone(),
            ..MkfsOptions::new(size, uuid)
        };
        options.log_size = match self.log_size {
            None => None,
            Some(LogSize::Bytes(bytes)) => Some(bytes),
            Some(LogSize::Of(volume)) => Some(mkfs::usual_log_size(&options, volume)?),
        };
        Ok(options)
    }
}
