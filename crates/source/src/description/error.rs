//! Errors of a description.

use crate::SourceError;
use crate::entry::{MAX_FILE_SIZE, MAX_NAME, MAX_PATH, MAX_SYMLINK_TARGET};
use crate::files::ContentsProblem;
use std::fmt;
use std::io;

/// A fault in a description, with its place.
#[derive(Debug)]
pub struct DescriptionError {
    /// The description as it was named.
    pub description: String,
    /// The line at fault, counted from 1.
    pub line: u64,
    /// The fault.
    pub problem: DescriptionProblem,
}

impl fmt::Display for DescriptionError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: line {}: {}", self.description, self.line, self.problem)
    }
}

impl From<Box<DescriptionError>> for SourceError {
    fn from(error: Box<DescriptionError>) -> Self {
        Self::Fault(error)
    }
}

impl std::error::Error for DescriptionError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.problem)
    }
}

/// The fault of a description.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DescriptionProblem {
    /// The description cannot be read.
    #[error("cannot read on: {0}; the file is damaged or its storage fails")]
    Io(#[source] io::Error),
    /// A line is longer than any that is read.
    #[error("the line has more than {0} bytes; this is no description")]
    LineLength(usize),
    /// The description ends too early.
    #[error("the description ends before {0}; it is cut off, fetch or create it again")]
    Truncated(&'static str),
    /// Text that means nothing here.
    #[error("\"{}\" {reason}", text.escape_ascii())]
    Syntax {
        /// The text, cut.
        text: Vec<u8>,
        /// What is wrong with it, and what to write.
        reason: &'static str,
    },
    /// A name that no entry can have.
    #[error("the name \"{}\" {reason}", name.escape_ascii())]
    Name {
        /// The name as it is spelled, cut.
        name: Vec<u8>,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A name with a slash, which may stand for a space.
    #[error("the name \"{}\" has a slash; if that stands for a space, say so", name.escape_ascii())]
    Slash {
        /// The name as it is spelled, cut.
        name: Vec<u8>,
    },
    /// A name that is too long.
    #[error("a name of {0} bytes; the most is {MAX_NAME}")]
    NameLength(usize),
    /// A path that is too long.
    #[error("a path of {0} bytes; the most is {MAX_PATH}")]
    PathLength(usize),
    /// A value that does not fit its keyword or field.
    #[error("{field} is \"{}\": {reason}", value.escape_ascii())]
    Value {
        /// The keyword or field.
        field: &'static str,
        /// Its value, cut.
        value: Vec<u8>,
        /// What it should be.
        reason: &'static str,
    },
    /// Something is not said that has to be.
    #[error("\"{}\" {what}", path.escape_ascii())]
    Unsaid {
        /// The entry.
        path: Vec<u8>,
        /// What is missing, and what to do.
        what: &'static str,
    },
    /// A user or group whose number is not known.
    #[error("\"{}\" belongs to {keyword}={}, whose number is not known: say it with {number}=, or have {file} in the directory of contents", path.escape_ascii(), name.escape_ascii())]
    Owner {
        /// The entry.
        path: Vec<u8>,
        /// `uname` or `gname`.
        keyword: &'static str,
        /// The name.
        name: Vec<u8>,
        /// `uid` or `gid`.
        number: &'static str,
        /// The list of names.
        file: &'static str,
    },
    /// A path that is described twice.
    #[error("\"{}\" is described on line {first} already; leave one of the two out", path.escape_ascii())]
    Duplicate {
        /// The path.
        path: Vec<u8>,
        /// The line before.
        first: u64,
    },
    /// An entry in a directory that is not described.
    #[error("\"{}\" lies in \"{}\", which is not described; add a line for the directory", path.escape_ascii(), parent.escape_ascii())]
    NoParent {
        /// The path.
        path: Vec<u8>,
        /// Its directory.
        parent: Vec<u8>,
    },
    /// An entry below a symbolic link or a file.
    #[error("\"{}\" lies below \"{}\", which is {kind} by line {first} and no directory", path.escape_ascii(), parent.escape_ascii())]
    ParentNotDirectory {
        /// The path.
        path: Vec<u8>,
        /// The entry above.
        parent: Vec<u8>,
        /// What that is.
        kind: &'static str,
        /// Its line.
        first: u64,
    },
    /// The root is no directory.
    #[error("the root of the tree is described as something else than a directory")]
    RootNotDirectory,
    /// A hard link to nothing that is described, or to a directory.
    #[error("\"{}\" is a hard link to \"{}\", which {reason}", path.escape_ascii(), target.escape_ascii())]
    Link {
        /// The link.
        path: Vec<u8>,
        /// The name that it links to.
        target: Vec<u8>,
        /// What is wrong with that.
        reason: &'static str,
    },
    /// Names of one file that are described as different.
    #[error("\"{}\" is another name of the file on line {first}, and is described otherwise; give both the same attributes", path.escape_ascii())]
    Names {
        /// The name.
        path: Vec<u8>,
        /// The line of the other name.
        first: u64,
    },
    /// A target that a symbolic link cannot have.
    #[error("\"{}\" is a symbolic link with a target of {length} bytes; it must have 1 to {MAX_SYMLINK_TARGET} and no zero byte", path.escape_ascii())]
    SymlinkTarget {
        /// The link.
        path: Vec<u8>,
        /// Bytes of its target.
        length: usize,
    },
    /// A size that no file can have.
    #[error("a size of {0} bytes; the most is {MAX_FILE_SIZE}")]
    FileSize(u64),
    /// An extended attribute that cannot be kept.
    #[error("the extended attribute \"{}\" {reason}", name.escape_ascii())]
    Xattr {
        /// Its name, cut.
        name: Vec<u8>,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The contents of a file are elsewhere, and it was not said where.
    #[error("\"{}\" has contents that the description does not hold; name their directory", path.escape_ascii())]
    NoContents {
        /// The file.
        path: Vec<u8>,
    },
    /// The file with the contents is not there, or is another one.
    #[error(transparent)]
    Contents(#[from] ContentsProblem),
    /// Something would be taken with a warning, and is not to be.
    #[error("{0}")]
    Strict(String),
    /// More entries than are counted.
    #[error("more than {0} entries")]
    Entries(u32),
}

/// Text as errors have it.
pub(super) fn cut(text: &[u8]) -> Vec<u8> {
    const LONGEST: usize = 200;
    text[..text.len().min(LONGEST)].to_vec()
}

impl DescriptionProblem {
    pub(super) fn syntax(text: &[u8], reason: &'static str) -> Self {
        Self::Syntax { text: cut(text), reason }
    }

    pub(super) fn value(field: &'static str, value: &[u8], reason: &'static str) -> Self {
        Self::Value { field, value: cut(value), reason }
    }

    /// The fault with its place.
    pub(crate) fn at(self, description: &str, line: u64) -> Box<DescriptionError> {
        Box::new(DescriptionError { description: description.to_owned(), line, problem: self })
    }
}
