//! Trees to pack: a directory, a tar archive, a container image or a description as a deterministic
//! stream of entries.
//!
//! [`open`] takes a directory, a tar file (ustar, pax, GNU, v7; sparse; plain or compressed with
//! gzip, zstd or xz), a container image (an OCI layout, or an archive of one or of docker), a
//! [`description`] or standard input, and gives a [`Source`]. It has a scan, which shows every
//! entry without data, and the stream of entries. Each regular file is followed by its data in
//! shared [`Chunk`]s, which need no copy on their way to a device. [`rules`] over a source leave
//! entries out, add some and change their attributes; [`selinux`] has their labels.
//! [`describe`] makes a text of a source.
//!
//! Contract:
//! - the same input and [`Options`] give the same stream, on any host, with any number of threads
//!   and any order of entries in directories;
//! - everything is kept: contents and holes, permission bits, numeric owners, nanosecond times, hard
//!   links, symbolic links, devices, pipes, sockets, all extended attributes with ACLs;
//! - memory is bounded: data is read ahead within a fixed window, and only one directory's listing,
//!   or some 50 bytes for each name in an archive, 200 in a layer and 600 in a description, grows
//!   with the tree;
//! - wrong input is an error that names the entry and the place, never a panic.
//!
//! ```
//! use undercroft_source::{Kind, Opened, SourceOptions, SourceSpec, open};
//!
//! # fn main() -> Result<(), undercroft_source::SourceError> {
//! let spec = SourceSpec::Path(concat!(env!("CARGO_MANIFEST_DIR"), "/src").into());
//! let Opened { mut source, .. } = open(&spec, &SourceOptions::default())?;
//! let (mut promised, mut delivered) = (0, 0);
//! while let Some(entry) = source.next_entry()? {
//!     if let Kind::Regular { size, .. } = entry.kind {
//!         promised += size;
//!     }
//!     while let Some(data) = source.next_data()? {
//!         delivered += data.chunk.len() as u64;
//!     }
//! }
//! assert_eq!(promised, delivered);
//! # Ok(())
//! # }
//! ```
//!
//! The crate reads no file system format and no devices; it recognises some, to name them. It is separate because it carries archive
//! parsing and decompressors that users of the file system library have no need for.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

// Rooms by floors, from the ground up: each imports only from floors above it in this list, which
// `cargo xtask test` checks.

// Nouns: pieces of data, entries, errors; what first bytes are; digests and decompressors.
mod acl;
mod chunk;
mod compression;
mod digest;
pub mod entry;
mod error;
mod foreign;
mod glob;
mod mode_change;
mod region;
mod warnings;

// What is made of them: buffers, choices, times, labels; a thread that reads ahead.
pub mod ahead;
mod exclude;
mod file_error;
mod pool;
pub mod selinux;
mod timestamp;

// What a source is asked for: options, files in the place of their data.
mod lending;
mod options;

// The trait of sources.
mod source;

// Reading: files by threads, archives.
mod files;
pub mod tar;

// Sources and what is put over them.
pub mod description;
pub mod directory;
pub mod rules;
mod sorted;

// Container images: archives on one another, sorted. Texts of any source.
pub mod describe;
pub mod oci;

// Whichever source there is.
mod open;

pub use chunk::{Chunk, Data};
pub use description::{DescriptionFormat, DescriptionOptions, DescriptionSpec};
pub use entry::{DataRange, Device, Entry, EntryPath, Kind, Links, Metadata, Timestamp, Xattr};
pub use error::SourceError;
pub use exclude::{Choice, Exclude};
pub use file_error::FileError;
pub use files::data_ranges;
pub use foreign::{
    END as FOREIGN_END, Foreign, ForeignKind, HEAD as FOREIGN_HEAD, recognise, recognise_end,
};
pub use lending::{Lending, LentFile};
pub use mode_change::ModeChange;
pub use open::{OpenError, Opened, SourceOptions, SourceSpec, open, with_rules};
pub use options::Options;
pub use pool::BufferPool;
pub use rules::{RuleError, RuleList, Rules};
pub use source::Source;
pub use warnings::Warnings;
