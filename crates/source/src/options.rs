//! How to read any source.

use crate::Exclude;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// How to read any source. The stream of entries depends on `exclude`, `strip_absolute` and `sorted`
/// alone.
#[derive(Debug, Clone)]
pub struct Options {
    /// What to leave out. An archive then comes as with `sorted`.
    pub exclude: Exclude,
    /// Take absolute paths in an archive as relative to the root instead of refusing them.
    pub strip_absolute: bool,
    /// Deliver all entries depth first, the names of a directory sorted by bytes, those of an archive
    /// and those that rules add, too. Other entries come so in any case. An archive is then read
    /// twice, and costs some 200 bytes of memory for each name.
    pub sorted: bool,
    /// Refuse an archive of which something is left out or that may not be whole, and rules and
    /// exclusions that match nothing, instead of saying so in [`Warnings`](crate::Warnings).
    pub strict: bool,
    /// Where a stream that cannot be read twice is kept between the passes.
    pub temporary_directory: PathBuf,
    /// Threads that read ahead in a directory; `None` is one for each processor, at most 8.
    pub threads: Option<NonZeroUsize>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            exclude: Exclude::default(),
            strip_absolute: false,
            sorted: false,
            strict: false,
            temporary_directory: Some(std::env::temp_dir())
                .filter(|directory| directory.is_dir())
                // A small container has none.
                .unwrap_or_else(|| ".".into()),
            threads: None,
        }
    }
}
