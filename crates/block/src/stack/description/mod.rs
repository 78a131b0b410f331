//! A device in words: files, and how they are stacked.
//!
//! On the command line:
//!
//! ```text
//! device  = PATH | "PATH" | kind [":" options] "(" device { "," device } ")"
//! kind    = "file" | "linear" | "stripe" | "mirror"
//! options = option { "," option }
//! ```
//!
//! for instance `disk.img`, `linear(a.img,b.img)`, `stripe:64k(mirror(a,b),mirror(c,d))`,
//! `file:direct("odd, name.img")`. A text that does not begin with a kind and `(` or `:` is the
//! path of a file, whatever else it holds. Inside parentheses a path that holds `(`, `)`, `,` or
//! `"`, or begins or ends with a space, stands in double quotes, with `\"` and `\\` for these two.
//! A file whose name begins like a device is written with its directory: `./mirror(old).img`.
//!
//! In a TOML file, named on the command line as `@stack.toml`, every device is a path or a table
//! with one of the keys `file`, `linear`, `stripe`, `mirror`; options are further keys:
//!
//! ```toml
//! chunk = "64k"
//! stripe = [
//!     { mirror = ["a.img", "b.img"] },
//!     { mirror = ["c.img", { file = "d.img", direct = true }] },
//! ]
//! ```
//!
//! Relative paths in it start at the directory of the TOML file.

mod build;
mod mirror_leg;
mod options;
mod size;
mod text;
mod toml;

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use thiserror::Error;

pub use build::{OpenLeaf, StackObserver};
pub use mirror_leg::MirrorLeg;
pub use options::FileLeaf;
pub use size::{Allotment, NoRoom};

/// Deepest nesting that a description may have; deeper devices are made by their constructors.
pub const MAX_DEPTH: usize = 32;

/// What a device is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Description {
    /// A file or a block device.
    File(FileLeaf),
    /// The legs one after the other.
    Linear(Vec<Self>),
    /// The legs in turn, chunk by chunk.
    Stripe {
        /// Bytes on a leg before the next one's turn: a power of two from 4 KiB on.
        chunk: u64,
        /// At least one.
        legs: Vec<Self>,
    },
    /// The same on every leg.
    Mirror(Vec<Self>),
}

/// Bytes of the longest description.
const LONGEST: u64 = 1 << 20;

/// Why a description cannot be understood.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DescriptionError {
    /// The text on the command line is wrong.
    #[error("{text}: character {character}: {problem}")]
    Text {
        /// The whole text, with replacements for what is not UTF-8.
        text: String,
        /// Where, counted from 1.
        character: usize,
        /// What is wrong there, and what would be right.
        problem: String,
    },
    /// The TOML file is wrong.
    #[error("{}:{line}:{column}: {problem}", path.display())]
    Toml {
        /// The file.
        path: PathBuf,
        /// Line, counted from 1.
        line: usize,
        /// Character in the line, counted from 1.
        column: usize,
        /// What is wrong there, and what would be right.
        problem: String,
    },
    /// The TOML file cannot be read.
    #[error("cannot read the description {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl Description {
    /// The device that an argument of a command names: a path, a description, or `@` and the path
    /// of a TOML file.
    ///
    /// # Errors
    /// The text is wrong, or the TOML file is or cannot be read.
    pub fn from_argument(argument: &OsStr) -> Result<Self, DescriptionError> {
        match argument.as_bytes().strip_prefix(b"@") {
            Some(path) => Self::from_toml_file(Path::new(OsStr::from_bytes(path))),
            None => text::parse(argument.as_bytes()),
        }
    }

    /// Reads the TOML file at `path`.
    ///
    /// # Errors
    /// It cannot be read, or is wrong.
    pub fn from_toml_file(path: &Path) -> Result<Self, DescriptionError> {
        let failed = |source| DescriptionError::Read { path: path.to_owned(), source };
        let mut text = String::new();
        let file = File::open(path).map_err(failed)?;
        file.take(LONGEST + 1).read_to_string(&mut text).map_err(failed)?;
        if text.len() as u64 > LONGEST {
            let what = format!("it is longer than {LONGEST} bytes");
            return Err(failed(io::Error::new(io::ErrorKind::FileTooLarge, what)));
        }
        toml::parse(&text, path)
    }

    /// The devices that it is made of; none for a file.
    #[must_use]
    pub fn legs(&self) -> &[Self] {
        match self {
            Self::File(_) => &[],
            Self::Linear(legs) | Self::Mirror(legs) | Self::Stripe { legs, .. } => legs,
        }
    }

    /// The files at the bottom, in order: those of the first leg, then those of the second, ...
    #[must_use]
    pub fn files(&self) -> Vec<&FileLeaf> {
        match self {
            Self::File(file) => vec![file],
            _ => self.legs().iter().flat_map(Self::files).collect(),
        }
    }

    /// The path, if this is one file without options.
    #[must_use]
    pub fn as_path(&self) -> Option<&Path> {
        match self {
            Self::File(file) if *file == FileLeaf::new(&file.path) => Some(&file.path),
            _ => None,
        }
    }
}

impl From<PathBuf> for Description {
    fn from(path: PathBuf) -> Self {
        Self::File(FileLeaf::new(path))
    }
}

impl From<&Path> for Description {
    fn from(path: &Path) -> Self {
        path.to_owned().into()
    }
}

impl FromStr for Description {
    type Err = DescriptionError;

    fn from_str(text: &str) -> Result<Self, DescriptionError> {
        Self::from_argument(text.as_ref())
    }
}

/// As on the command line: parses back to the same, if all paths are UTF-8.
impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(path) = self.as_path() else { return self.nested(f) };
        let bytes = path.as_os_str().as_bytes();
        if text::kind(bytes).is_some() || matches!(bytes, [] | [b'@', ..]) {
            f.write_str("file(")?;
            self.nested(f)?;
            return f.write_str(")");
        }
        path.display().fmt(f)
    }
}

impl Description {
    /// As it stands inside parentheses.
    fn nested(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, legs) = match self {
            Self::File(file) => return file.nested(f),
            Self::Linear(legs) => ("linear".into(), legs),
            Self::Mirror(legs) => ("mirror".into(), legs),
            Self::Stripe { chunk, legs } => (format!("stripe:{}", Size(*chunk)), legs),
        };
        write!(f, "{kind}(")?;
        for (number, leg) in legs.iter().enumerate() {
            f.write_str(if number == 0 { "" } else { "," })?;
            leg.nested(f)?;
        }
        f.write_str(")")
    }
}

/// A number of bytes in the largest unit that leaves it whole.
pub(crate) struct Size(pub(crate) u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("T", 40), ("G", 30), ("M", 20), ("k", 10)];
        let whole = |&(_, shift): &(&str, u32)| self.0 > 0 && self.0.trailing_zeros() >= shift;
        match units.into_iter().find(whole) {
            Some((unit, shift)) => write!(f, "{}{unit}", self.0 >> shift),
            None => self.0.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests;
