//! Where pieces of disks in object stores are kept.

use crate::report;
use crate::stats::IMAGE_HEADING;
use crate::value;
use clap::ValueHint;
use std::path::PathBuf;
use std::time::Duration;
use undercroft_store::{CacheOptions, Settings};

/// Names the directory where no option does.
const DIRECTORY: &str = "UNDERCROFT_CACHE";
/// Seconds for which failed requests are tried again.
const PATIENCE: &str = "UNDERCROFT_STORE_PATIENCE";

/// Where pieces of disks in object stores are kept.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct CacheArgs {
    /// Keep what is read from object stores (s3://, https:// ...) in this directory.
    ///
    /// Several processes share it, it survives them, and what is in it is verified when it is read. Without this the
    /// variable UNDERCROFT_CACHE names it; where neither does, pieces are kept in memory alone.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, hide_short_help = true,
        help_heading = IMAGE_HEADING)]
    cache: Option<PathBuf>,

    /// Most bytes of a cache that is made; later its own bound counts.
    #[arg(long, value_name = "BYTES", value_parser = value::size, default_value = "10G",
        hide_short_help = true, help_heading = IMAGE_HEADING)]
    cache_size: u64,
}

impl CacheArgs {
    /// Has disks that are opened from now on use it.
    pub(crate) fn apply(&self) {
        undercroft_store::configure(self.settings());
    }

    /// How disks in stores are read.
    pub(crate) fn settings(&self) -> Settings {
        let named = || std::env::var_os(DIRECTORY).filter(|name| !name.is_empty());
        let directory = self.cache.clone().or_else(|| named().map(PathBuf::from));
        // Arguments that no command line gave have no bound.
        let bytes = if self.cache_size == 0 { 10 << 30 } else { self.cache_size };
        let cache = directory.map(|directory| CacheOptions { directory, bytes });
        let seconds = std::env::var(PATIENCE).ok().and_then(|text| text.parse().ok());
        let patience = seconds.map_or(Settings::default().patience, Duration::from_secs);
        Settings { cache, patience, note: |what| report::note(what) }
    }
}
