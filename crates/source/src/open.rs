//! Which source there is at a path.

use crate::description::{DescriptionOptions, DescriptionSource, DescriptionSpec};
use crate::directory::DirectorySource;
use crate::error::SourceError;
use crate::oci::{self, ImageSource, ImageSpec, SortedArchive};
use crate::options::Options;
use crate::rules::RuledSource;
use crate::source::Source;
use crate::tar::TarSource;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Which tree to pack.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceSpec {
    /// A directory or a tar file, plain or compressed. If it has the form of a container image, it
    /// is one.
    Path(PathBuf),
    /// A directory, whatever is in it.
    Directory(PathBuf),
    /// A tar file, whatever is in it.
    Archive(PathBuf),
    /// A container image.
    Image(ImageSpec),
    /// A description of a tree.
    Description(DescriptionSpec),
    /// A tar stream on standard input, plain or compressed.
    StandardInput,
}

impl From<PathBuf> for SourceSpec {
    /// `-` is standard input, `oci:`, `oci-archive:`, `docker-archive:`, `mtree:`, `composefs:`,
    /// `proto:`, `dir:` and `tar:` say what follows, and everything else is a path.
    fn from(path: PathBuf) -> Self {
        let text = path.as_os_str();
        let after = |prefix: &str| {
            let rest = text.as_bytes().strip_prefix(prefix.as_bytes())?;
            Some(PathBuf::from(OsStr::from_bytes(rest)))
        };
        if text == "-" {
            Self::StandardInput
        } else if let Some(directory) = after("dir:") {
            Self::Directory(directory)
        } else if let Some(archive) = after("tar:") {
            Self::Archive(archive)
        } else if let Some(image) = ImageSpec::parse(text) {
            Self::Image(image)
        } else if let Some(description) = DescriptionSpec::parse(text) {
            Self::Description(description)
        } else {
            Self::Path(path)
        }
    }
}

impl SourceSpec {
    /// Where it is, unless it is standard input.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Path(path) | Self::Directory(path) | Self::Archive(path) => Some(path),
            Self::Image(image) => Some(&image.path).filter(|path| path.as_os_str() != "-"),
            Self::Description(spec) => Some(&spec.path).filter(|_| !spec.is_standard_input()),
            Self::StandardInput => None,
        }
        .map(PathBuf::as_path)
    }
}

impl fmt::Display for SourceSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.display().fmt(formatter),
            Self::Directory(path) => write!(formatter, "dir:{}", path.display()),
            Self::Archive(path) => write!(formatter, "tar:{}", path.display()),
            Self::Image(image) => image.fmt(formatter),
            Self::Description(description) => description.fmt(formatter),
            Self::StandardInput => formatter.write_str("standard input"),
        }
    }
}

/// Opens a source: a directory is walked, everything else is read as a tar archive, whose compression
/// is found by its first bytes. A directory or an archive in the form of a container image is
/// opened as one. The rules of the options are followed.
///
/// # Errors
/// The path cannot be opened, the first bytes are no tar archive, or the image is not one.
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
    let not_an_image = |name: String| Err(SourceError::NotAnImage(name));
    let required = options.image.required;
    if options.description != DescriptionOptions::default()
        && !matches!(spec, SourceSpec::Description(_))
    {
        return Err(SourceError::NoDescription(spec.to_string()));
    }
    match spec {
        SourceSpec::Description(description) if required => not_an_image(description.to_string()),
        SourceSpec::Description(description) => {
            Ok(Box::new(DescriptionSource::open(description, options)?))
        }
        SourceSpec::Image(image) => Ok(Box::new(ImageSource::open(image, options)?)),
        SourceSpec::Path(path) => {
            if let Some(image) = oci::recognise(path)? {
                return Ok(Box::new(ImageSource::recognised(&image, options)?));
            }
            if required {
                return not_an_image(path.display().to_string());
            }
            let metadata = std::fs::metadata(path)
                .map_err(|source| SourceError::Open { path: path.clone(), source })?;
            if metadata.is_dir() {
                Ok(Box::new(DirectorySource::open(path, options)?))
            } else {
                Ok(archive(TarSource::open(path, options)?, options))
            }
        }
        SourceSpec::Directory(path) | SourceSpec::Archive(path) if required => {
            not_an_image(path.display().to_string())
        }
        SourceSpec::StandardInput if required => not_an_image("standard input".to_owned()),
        SourceSpec::Directory(path) => Ok(Box::new(DirectorySource::open(path, options)?)),
        SourceSpec::Archive(path) => Ok(archive(TarSource::open(path, options)?, options)),
        SourceSpec::StandardInput => Ok(archive(TarSource::standard_input(options)?, options)),
    }
}

/// An archive in its own order; or sorted, as one is of which something is left out: its data is taken
/// by its place, so that what is left out is not read, and a file may have its data at such a name.
fn archive(tar: TarSource, options: &Options) -> Box<dyn Source> {
    let is_sorted = options.sorted || !options.exclude.is_empty();
    if is_sorted { Box::new(SortedArchive::new(tar, options)) } else { Box::new(tar) }
}
