//! How a description is named, and read.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The language of a description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DescriptionFormat {
    /// mtree(5).
    Mtree,
    /// composefs-dump(5).
    Composefs,
    /// A prototype file of `mkfs.xfs -p`.
    Prototype,
}

impl DescriptionFormat {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Mtree, Self::Composefs, Self::Prototype];

    /// The prefix by which it is named.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Mtree => "mtree:",
            Self::Composefs => "composefs:",
            Self::Prototype => "proto:",
        }
    }
}

/// A description of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescriptionSpec {
    /// Its language.
    pub format: DescriptionFormat,
    /// Its file; `-` is standard input.
    pub path: PathBuf,
}

impl DescriptionSpec {
    /// The description that `text` names by a prefix; `None` without one.
    pub(crate) fn parse(text: &OsStr) -> Option<Self> {
        DescriptionFormat::ALL.iter().find_map(|&format| {
            let path = text.as_bytes().strip_prefix(format.prefix().as_bytes())?;
            Some(Self { format, path: PathBuf::from(OsStr::from_bytes(path)) })
        })
    }

    /// Whether it comes on standard input.
    pub(crate) fn is_standard_input(&self) -> bool {
        self.path.as_os_str() == "-"
    }
}

impl fmt::Display for DescriptionSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}", self.format.prefix(), self.path.display())
    }
}

/// How to read a description.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DescriptionOptions {
    /// The directory that has the contents of files.
    pub contents: Option<PathBuf>,
    /// Take slashes in the names of a prototype file for spaces.
    pub slashes_are_spaces: bool,
}
