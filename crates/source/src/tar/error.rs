//! Errors of an archive.

use crate::SourceError;
use crate::entry::{MAX_DATA_RANGES, MAX_NAME, MAX_PATH, MAX_SYMLINK_TARGET};
use crate::foreign::Foreign;
use std::fmt;
use std::io;

/// Bytes of the first header: what fails there may be no archive at all.
const FIRST_HEADER: u64 = 512;

/// A fault in an archive, with its place.
#[derive(Debug)]
pub struct TarError {
    /// Name of the archive: its path, or "standard input".
    pub archive: String,
    /// Where in the archive, in bytes from the start of the uncompressed stream: the header of the
    /// entry at fault, or the place where the stream broke off.
    pub offset: u64,
    /// Name of the entry as the archive spells it, where it is known.
    pub entry: Option<Vec<u8>>,
    /// The fault.
    pub problem: Problem,
}

impl TarError {
    /// A stream that breaks off at `offset`.
    pub(crate) fn of_stream(archive: &str, offset: u64, error: io::Error) -> Box<Self> {
        let problem = io_problem(error);
        Box::new(Self { archive: archive.to_owned(), offset, entry: None, problem })
    }
}

/// Decompressors tell by this kind that their input ended early.
pub(super) fn io_problem(error: io::Error) -> Problem {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            Problem::Truncated { missing: "its compressed stream ends early" }
        }
        _ => Problem::Io(error),
    }
}

impl From<Box<TarError>> for SourceError {
    fn from(error: Box<TarError>) -> Self {
        Self::Fault(error)
    }
}

impl fmt::Display for TarError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: at byte {}", self.archive, self.offset)?;
        if let Some(entry) = &self.entry {
            write!(formatter, ", entry \"{}\"", entry.escape_ascii())?;
        }
        write!(formatter, ": {}", self.problem)?;
        let is_known = matches!(self.problem, Problem::Foreign(_));
        if self.offset < FIRST_HEADER && self.entry.is_none() && !is_known {
            formatter.write_str(" (is this a tar archive? a source is one, or a directory)")?;
        }
        Ok(())
    }
}

impl std::error::Error for TarError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.problem)
    }
}

/// What is known about an entry type that cannot be packed, and how to do without it.
fn remedy(entry_type: u8) -> &'static str {
    match entry_type {
        b'N' => {
            " (long names of old versions of GNU tar); unpack the archive with tar and build from the directory"
        }
        b'A' => {
            " (an access control list of Solaris); create the archive without -p, or with GNU tar or bsdtar"
        }
        b'E' => {
            " (attributes of Solaris); create the archive without -@, or with GNU tar or bsdtar"
        }
        b'I' => " (a file of a partial dump by star, without its data); create a full dump",
        _ => "; create the archive with --format=pax or --format=gnu",
    }
}

/// The fault of an archive.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// It is something else.
    #[error("this is {}, not a tar archive: {}", .0.name, .0.kind.to_a_tree())]
    Foreign(Foreign),
    /// It begins with zeros, and is no archive without entries.
    #[error("this begins as an archive ends, with zeros, and is too long for one without entries")]
    Zeros,
    /// Symbolic links that lead to one another, or too far.
    #[error("its path leads over more than {0} symbolic links of the archive, or becomes too long")]
    Links(usize),
    /// The operating system or the decompressor failed.
    #[error("cannot read on: {0}; the archive is damaged or its storage fails, fetch it again")]
    Io(#[source] io::Error),
    /// The stream ended inside an entry, or without the two zero blocks that end an archive.
    #[error("the archive is truncated: {missing}; fetch or create it again")]
    Truncated {
        /// What should have come.
        missing: &'static str,
    },
    /// A header's checksum does not fit its bytes.
    #[error(
        "header checksum is {stored}, its bytes sum up to {computed}; this is no tar archive or it is damaged"
    )]
    Checksum {
        /// The sum in the header.
        stored: u64,
        /// The sum of the header's bytes, taken as unsigned.
        computed: u64,
    },
    /// A single zero block is followed by something else.
    #[error(
        "a lone zero block is followed by more data, which tar does not read; the archive is damaged"
    )]
    LoneZeroBlock,
    /// A numeric header field holds no number, or one that is out of range.
    #[error("header field {field} is no number in range: \"{}\"", value.escape_ascii())]
    Number {
        /// The field's name in POSIX.
        field: &'static str,
        /// Its bytes.
        value: Vec<u8>,
    },
    /// A record of a pax header does not have the form "LENGTH KEY=VALUE\n".
    #[error("a record of the pax header is malformed at its byte {at}")]
    PaxRecord {
        /// Where in the pax header.
        at: usize,
    },
    /// A record of a pax header has a value that its key does not allow.
    #[error("pax record {key} has the value \"{}\", which {key} cannot have", value.escape_ascii())]
    PaxValue {
        /// The key.
        key: String,
        /// The value, cut after 100 bytes.
        value: Vec<u8>,
    },
    /// A pax header or long name is larger than is read.
    #[error("an extended header of {size} bytes; the most that is read is {limit}")]
    ExtendedHeaderSize {
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// An extended header is followed by no entry.
    #[error("an extended header is followed by the end of the archive instead of an entry")]
    DanglingExtendedHeader,
    /// An entry type that cannot be packed.
    #[error("entry type '{}' is not supported{}", .0.escape_ascii(), remedy(*.0))]
    EntryType(u8),
    /// The rest of a file whose start is in another archive of a set.
    #[error(
        "this is the rest of a file that begins in the volume before; unpack all volumes together (tar -x --multi-volume, with a --file for each) and build from the directory"
    )]
    Continuation,
    /// A path without any component.
    #[error("the name is empty")]
    EmptyName,
    /// A zero byte in a name or link target.
    #[error("the name or link target holds a zero byte")]
    NulInName,
    /// A path that starts with a slash.
    #[error(
        "the path is absolute; to take it as relative to the root of the image, allow absolute paths to be stripped"
    )]
    AbsolutePath,
    /// A path with a `..` component.
    #[error(
        "the path has a \"..\" component, which could leave the tree; create the archive with clean names"
    )]
    ParentComponent,
    /// A path component that is too long.
    #[error("a path component has {0} bytes, the most is {MAX_NAME}")]
    NameLength(usize),
    /// A path that is too long.
    #[error("the path has {0} bytes, the most is {MAX_PATH}")]
    PathLength(usize),
    /// A symbolic link without target, or with one that is too long.
    #[error("the symbolic link's target has {0} bytes, it must have 1 to {MAX_SYMLINK_TARGET}")]
    SymlinkTarget(usize),
    /// The same path for a directory and something else.
    #[error(
        "the path was already used by the entry at byte {first}, and only one of the two is a directory; create the archive without one of them"
    )]
    Duplicate {
        /// Archive offset of the other entry's header.
        first: u64,
    },
    /// Something below an entry that is no directory.
    #[error("its parent \"{}\" is no directory but the entry at byte {first}", parent.escape_ascii())]
    ParentNotDirectory {
        /// The parent's path.
        parent: Vec<u8>,
        /// Archive offset of the parent's header.
        first: u64,
    },
    /// The root is something else than a directory.
    #[error("the root of the archive is no directory")]
    RootNotDirectory,
    /// A hard link to a path that did not come before.
    #[error("hard link to \"{}\", which does not come before it in the archive", target.escape_ascii())]
    LinkTargetMissing {
        /// The path it names.
        target: Vec<u8>,
    },
    /// A hard link to its own path.
    #[error("hard link to itself; create the archive without it")]
    LinkToItself,
    /// A hard link to a path that was excluded.
    #[error("hard link to \"{}\", which is excluded; exclude this entry too, or keep its target", target.escape_ascii())]
    LinkTargetExcluded {
        /// The path it names.
        target: Vec<u8>,
    },
    /// A hard link to a directory.
    #[error("hard link to the directory \"{}\"", target.escape_ascii())]
    LinkTargetDirectory {
        /// The path it names.
        target: Vec<u8>,
    },
    /// A sparse map that is malformed, out of order, or reaches past the file.
    #[error("the sparse map is wrong at its range {at}: {reason}")]
    SparseMap {
        /// Index of the range.
        at: usize,
        /// Its defect.
        reason: &'static str,
    },
    /// A sparse map with more ranges than are kept track of.
    #[error("the file has more than {MAX_DATA_RANGES} separate data ranges")]
    SparseRanges,
    /// An access control list in text form that cannot be turned into its binary form.
    #[error("access control list in {key}: entry \"{}\" {reason}", entry.escape_ascii())]
    Acl {
        /// The pax key.
        key: &'static str,
        /// The entry of the list at fault.
        entry: Vec<u8>,
        /// Its defect.
        reason: &'static str,
    },
    /// An extended attribute with a name or value that is too long, or an empty name.
    #[error("extended attribute \"{}\" with {name_length} bytes of name and {value_length} bytes of value; the most is 255 and 65536", name.escape_ascii())]
    Xattr {
        /// The name, cut after 100 bytes.
        name: Vec<u8>,
        /// Bytes in the name.
        name_length: usize,
        /// Bytes in the value.
        value_length: usize,
    },
    /// An extended attribute outside of the namespaces of Linux.
    #[error("extended attribute \"{}\" is in none of the namespaces user., trusted., security. and system.; create the archive without it, or have it left out by reading less strictly", .0.escape_ascii())]
    ForeignAttribute(
        /// Its name.
        Vec<u8>,
    ),
    /// A file size that no file can have.
    #[error("the size of {0} bytes is more than a file can have")]
    FileSize(u64),
}
