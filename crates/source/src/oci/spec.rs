//! How an image is named.

use super::platform::Platform;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The form in which an image lies on a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImageFormat {
    /// A directory with an OCI image layout.
    Oci,
    /// A tar archive of such a directory.
    OciArchive,
    /// What `docker save` writes.
    DockerArchive,
}

impl ImageFormat {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Oci, Self::OciArchive, Self::DockerArchive];

    /// The prefix by which it is named.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Oci => "oci:",
            Self::OciArchive => "oci-archive:",
            Self::DockerArchive => "docker-archive:",
        }
    }
}

/// A container image on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageSpec {
    /// Its form.
    pub format: ImageFormat,
    /// The directory or archive.
    pub path: PathBuf,
    /// Which of its images: a tag, or `sha256:` and so on.
    pub reference: Option<String>,
}

impl ImageSpec {
    /// The image that `text` names by a prefix; `None` without one.
    pub(crate) fn parse(text: &OsStr) -> Option<Self> {
        let has_prefix =
            |format: &ImageFormat| text.as_bytes().strip_prefix(format.prefix().as_bytes());
        // `oci:` is no prefix of the others.
        let (format, rest) =
            ImageFormat::ALL.iter().find_map(|format| Some((*format, has_prefix(format)?)))?;
        let (path, reference) = split(rest);
        let path = PathBuf::from(OsString::from_vec(path.to_vec()));
        Some(Self { format, path, reference })
    }
}

/// Splits a path from a reference that follows a colon, or a digest that follows `@`. Both may have
/// colons: the path is the longest that there is.
fn split(text: &[u8]) -> (&[u8], Option<String>) {
    let exists = |path: &[u8]| !path.is_empty() && Path::new(OsStr::from_bytes(path)).exists();
    let separators = (0..text.len()).rev().filter(|&at| matches!(text[at], b':' | b'@'));
    let candidates = || separators.clone().map(|at| (&text[..at], &text[at + 1..]));
    if exists(text) {
        return (text, None);
    }
    // With nothing there, the shortest path makes the error.
    let found = candidates().find(|(path, _)| exists(path)).or_else(|| candidates().next_back());
    match found {
        Some((path, reference)) => {
            (path, Some(String::from_utf8_lossy(reference).into_owned()).filter(|r| !r.is_empty()))
        }
        None => (text, None),
    }
}

impl fmt::Display for ImageSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}", self.format.prefix(), self.path.display())?;
        match &self.reference {
            Some(reference) => write!(formatter, ":{}", reference.escape_default()),
            None => Ok(()),
        }
    }
}

/// How to read an image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageOptions {
    /// Which platform, where there are several; `None` is this machine's.
    pub platform: Option<Platform>,
    /// Keep the labels of the config as user attributes of the root directory.
    pub labels: bool,
    /// Refuse a source that is no image.
    pub required: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (PathBuf, Option<String>) {
        let spec = ImageSpec::parse(OsStr::new(text)).unwrap();
        (spec.path, spec.reference)
    }

    #[test]
    fn the_longest_path_that_exists_is_the_path() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a:b");
        std::fs::create_dir(&path).unwrap();
        let text = path.display().to_string();
        assert_eq!(parsed(&format!("oci:{text}")), (path.clone(), None));
        assert_eq!(parsed(&format!("oci:{text}:")), (path.clone(), None));
        let tagged = (path.clone(), Some("x:1.0".to_owned()));
        assert_eq!(parsed(&format!("oci-archive:{text}:x:1.0")), tagged);
        let digest = (path, Some("sha256:00".to_owned()));
        assert_eq!(parsed(&format!("oci:{text}@sha256:00")), digest);
        let absent = (PathBuf::from("/absent"), Some("tag:x".to_owned()));
        assert_eq!(parsed("docker-archive:/absent:tag:x"), absent);
        assert_eq!(ImageSpec::parse(OsStr::new("./oci:x")), None);
    }
}
