//! Which source there is at a path.

use crate::description::{DescriptionOptions, DescriptionSource, DescriptionSpec};
use crate::directory::DirectorySource;
use crate::error::SourceError;
use crate::oci::{self, Form, ImageOptions, ImageReport, ImageSource, ImageSpec, PlainStream};
use crate::options::Options;
use crate::rules::{MatchedSource, RuledSource, Rules};
use crate::sorted::SortedArchive;
use crate::source::Source;
use crate::tar::TarSource;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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

/// How to open a source.
#[derive(Debug, Clone, Default)]
pub struct SourceOptions {
    /// How to read it, of whichever kind it is.
    pub reading: Options,
    /// What to add, and what to change.
    pub rules: Arc<Rules>,
    /// How to read it if it is a container image.
    pub image: ImageOptions,
    /// How to read it if it is a description.
    pub description: DescriptionOptions,
}

impl From<Options> for SourceOptions {
    fn from(reading: Options) -> Self {
        Self { reading, ..Self::default() }
    }
}

/// A source that was opened.
pub struct Opened {
    /// The source.
    pub source: Box<dyn Source>,
    /// The container image that it is, if it is one.
    pub image: Option<ImageReport>,
}

impl Opened {
    fn image(source: ImageSource) -> Self {
        let image = Some(source.report().clone());
        Self { source: Box::new(source), image }
    }

    fn tree(source: impl Source + 'static) -> Self {
        Self { source: Box::new(source), image: None }
    }

    /// An archive in its own order; or sorted, as one is of which something is left out: its data is
    /// taken by its place, so that what is left out is not read, and a file may have its data at such a
    /// name.
    fn archive(tar: TarSource, options: &Options) -> Self {
        let is_sorted = options.sorted || !options.exclude.is_empty();
        if is_sorted { Self::tree(SortedArchive::new(tar, options)) } else { Self::tree(tar) }
    }

    /// As [`archive`](Self::archive), of what shows no form before it was read.
    fn stream(tar: TarSource, options: &Options) -> Self {
        let name = tar.name().to_owned();
        Self::tree(PlainStream::new(Self::archive(tar, options).source, name))
    }
}

/// Why a source is not the one that is asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The directory, or the archive of one, is an image in a form that is not read.
    #[error(
        "{} is a container image as skopeo keeps it in dir:, which is not read; make a layout of it (skopeo copy dir:DIR oci:LAYOUT), or take its files as they are with {way}:{}",
        path.display(), path.display()
    )]
    SkopeoCopy {
        /// The directory or archive.
        path: PathBuf,
        /// How its files are named as a source.
        way: &'static str,
    },
    /// The directory is an image in a form that is read as an archive alone.
    #[error(
        "{} is the container image of an archive of docker that was unpacked; pack it again (tar -C DIR -cf image.tar .) and take docker-archive:image.tar, or take its files as they are with dir:{}",
        path.display(), path.display()
    )]
    UnpackedArchive {
        /// The directory.
        path: PathBuf,
    },
    /// Contents were named for a source that has its own.
    #[error(
        "{0} has contents of its own; contents elsewhere are for descriptions: mtree:FILE, composefs:FILE or proto:FILE"
    )]
    NoDescription(String),
    /// A source is in a registry, or in the store of a container engine.
    #[error(
        "{0} is a container image in a place that is not read: `skopeo copy {0} oci:DIRECTORY` copies \
         it, then take oci:DIRECTORY"
    )]
    Elsewhere(String),
    /// A source is no container image, and should be one.
    #[error(
        "{0} is no container image; name one by oci:DIR, oci-archive:FILE or docker-archive:FILE"
    )]
    NotAnImage(String),
}

impl From<OpenError> for SourceError {
    fn from(error: OpenError) -> Self {
        Self::Fault(Box::new(error))
    }
}

/// Opens a source: a directory is walked, everything else is read as a tar archive, whose compression
/// is found by its first bytes. A directory or an archive in the form of a container image is
/// opened as one. The rules of the options are followed.
///
/// # Errors
/// The path cannot be opened, the first bytes are no tar archive, or the image is not one.
pub fn open(spec: &SourceSpec, options: &SourceOptions) -> Result<Opened, SourceError> {
    if !options.reading.strict || options.reading.exclude.is_empty() {
        return Ok(with_rules(open_plain(spec, options)?, options));
    }
    let exclude = options.reading.exclude.noting();
    let reading = Options { exclude, ..options.reading.clone() };
    let options = &SourceOptions { reading, ..options.clone() };
    Ok(with_rules(open_plain(spec, options)?, options))
}

/// Puts the rules of the options over a source, which follows the other options itself. With exclusions that
/// [note](crate::Exclude::noting) what they match, all of them have to match something.
#[must_use]
pub fn with_rules(Opened { source, image }: Opened, options: &SourceOptions) -> Opened {
    let SourceOptions { reading, rules, .. } = options;
    let source: Box<dyn Source> = match reading.exclude.notes() {
        true => Box::new(MatchedSource::over(source, &reading.exclude)),
        false => source,
    };
    // Directories above what an exclusion keeps are delivered when they are needed.
    if rules.is_empty() && !reading.exclude.has_includes() {
        return Opened { source, image };
    }
    Opened { source: Box::new(RuledSource::over(source, rules, reading)), image }
}

/// Opens a source without its rules.
fn open_plain(spec: &SourceSpec, options: &SourceOptions) -> Result<Opened, SourceError> {
    let SourceOptions { reading, image, description, .. } = options;
    let is_description = matches!(spec, SourceSpec::Description(_));
    if !is_description && *description != DescriptionOptions::default() {
        return Err(OpenError::NoDescription(spec.to_string()).into());
    }
    if image.required && !matches!(spec, SourceSpec::Image(_) | SourceSpec::Path(_)) {
        let path = spec.path().filter(|_| !is_description);
        let name = path.map_or_else(|| spec.to_string(), |path| path.display().to_string());
        return Err(OpenError::NotAnImage(name).into());
    }
    Ok(match spec {
        SourceSpec::Path(path) => open_path(path, options)?,
        SourceSpec::Image(spec) => Opened::image(ImageSource::open(spec, image, reading)?),
        SourceSpec::Description(spec) => {
            Opened::tree(DescriptionSource::open(spec, description, reading)?)
        }
        SourceSpec::Directory(path) => Opened::tree(DirectorySource::open(path, reading)?),
        SourceSpec::Archive(path) => Opened::archive(TarSource::open(path, reading)?, reading),
        SourceSpec::StandardInput => Opened::stream(TarSource::standard_input(reading)?, reading),
    })
}

/// Names of images that other programs fetch begin so.
const ELSEWHERE: [&str; 3] = ["docker://", "docker-daemon:", "containers-storage:"];

/// Opens what is at a path.
fn open_path(path: &Path, options: &SourceOptions) -> Result<Opened, SourceError> {
    let SourceOptions { reading, image, .. } = options;
    let name = path.as_os_str().as_bytes();
    if !path.exists() && ELSEWHERE.iter().any(|prefix| name.starts_with(prefix.as_bytes())) {
        return Err(OpenError::Elsewhere(path.display().to_string()).into());
    }
    match oci::recognise(path)? {
        Some(Form::Image { format, otherwise }) => {
            let found = ImageSource::recognised(path, (format, otherwise), image, reading)?;
            return Ok(Opened::image(found));
        }
        Some(Form::SkopeoCopy) => {
            let way = if path.is_dir() { "dir" } else { "tar" };
            return Err(OpenError::SkopeoCopy { path: path.into(), way }.into());
        }
        None => {}
    }
    if oci::is_unpacked_archive(path) {
        return Err(OpenError::UnpackedArchive { path: path.into() }.into());
    }
    if image.required {
        return Err(OpenError::NotAnImage(path.display().to_string()).into());
    }
    let metadata = std::fs::metadata(path)
        .map_err(|source| SourceError::Open { path: path.into(), source })?;
    Ok(if metadata.is_dir() {
        Opened::tree(DirectorySource::open(path, reading)?)
    } else if metadata.is_file() {
        Opened::archive(TarSource::open(path, reading)?, reading)
    } else {
        Opened::stream(TarSource::open(path, reading)?, reading)
    })
}

/// Programs without decoders, for which `cargo xtask test` builds this crate without its features.
#[cfg(all(test, not(any(feature = "xz", feature = "zstd"))))]
mod tests {
    use super::*;
    use crate::description::DescriptionFormat;
    use std::fs;

    fn refusal(spec: &SourceSpec) -> String {
        let error = open(spec, &SourceOptions::default()).err();
        error.expect("a source that cannot be read").to_string()
    }

    #[test]
    fn a_decoder_that_was_left_out_is_named_with_the_file_and_its_feature() {
        let directory = tempfile::tempdir().unwrap();
        for (name, magic) in [
            ("zstd", &[0x28, 0xb5, 0x2f, 0xfd, 0, 0][..]),
            ("zstd", &[0x50, 0x2a, 0x4d, 0x18, 0, 0]),
            ("xz", &[0xfd, b'7', b'z', b'X', b'Z', 0]),
        ] {
            let path = directory.path().join(format!("archive.{name}"));
            fs::write(&path, magic).unwrap();
            let description =
                DescriptionSpec { format: DescriptionFormat::Mtree, path: path.clone() };
            for spec in [
                SourceSpec::Path(path.clone()),
                SourceSpec::Archive(path.clone()),
                SourceSpec::Description(description),
            ] {
                let text = refusal(&spec);
                assert!(text.contains(&path.display().to_string()), "{text}");
                assert!(text.contains(&format!("compressed with {name}")), "{text}");
                assert!(text.contains(&format!("feature `{name}`")), "{text}");
                assert!(!text.contains("check that it exists"), "{text}");
            }
        }
    }
}
