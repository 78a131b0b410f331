//! Which source there is at a path.

use crate::directory::DirectorySource;
use crate::error::SourceError;
use crate::options::Options;
use crate::rules::RuledSource;
use crate::source::Source;
use crate::tar::TarSource;
use std::path::PathBuf;

/// Which tree to pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceSpec {
    /// A directory or a tar file, plain or compressed.
    Path(PathBuf),
    /// A tar stream on standard input, plain or compressed.
    StandardInput,
}

impl From<PathBuf> for SourceSpec {
    /// `-` is standard input, everything else a path.
    fn from(path: PathBuf) -> Self {
        if path.as_os_str() == "-" { Self::StandardInput } else { Self::Path(path) }
    }
}

/// Opens a source: a directory is walked, everything else is read as a tar archive, whose compression
/// is found by its first bytes. The rules of the options are followed.
///
/// # Errors
/// The path cannot be opened, or the first bytes are no tar archive.
pub fn open(spec: &SourceSpec, options: &Options) -> Result<Box<dyn Source>, SourceError> {
    let source = open_plain(spec, options)?;
    // Directories above what an exclusion keeps are delivered when they are needed.
    if options.rules.is_empty() && !options.exclude.has_includes() {
        return Ok(source);
    }
    Ok(Box::new(RuledSource::over(source, options)))
}

/// Opens a source without its rules.
fn open_plain(spec: &SourceSpec, options: &Options) -> Result<Box<dyn Source>, SourceError> {
    let path = match spec {
        SourceSpec::StandardInput => return Ok(Box::new(TarSource::standard_input(options)?)),
        SourceSpec::Path(path) => path,
    };
    let metadata = std::fs::metadata(path)
        .map_err(|source| SourceError::Open { path: path.clone(), source })?;
    if metadata.is_dir() {
        Ok(Box::new(DirectorySource::open(path, options)?))
    } else {
        Ok(Box::new(TarSource::open(path, options)?))
    }
}
