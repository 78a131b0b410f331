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
//! use undercroft_source::{Kind, Options, SourceSpec, open};
//!
//! # fn main() -> Result<(), undercroft_source::SourceError> {
//! let spec = SourceSpec::Path(concat!(env!("CARGO_MANIFEST_DIR"), "/src").into());
//! let mut source = open(&spec, &Options::default())?;
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

mod acl;
pub mod ahead;
mod chunk;
pub mod describe;
pub mod description;
pub mod directory;
pub mod entry;
mod error;
mod exclude;
mod foreign;
mod glob;
mod lent;
mod mode_change;
pub mod oci;
mod open;
mod options;
mod pool;
mod region;
pub mod rules;
pub mod selinux;
mod source;
pub mod tar;
mod timestamp;
mod warnings;

pub use chunk::{Chunk, Data};
pub use description::{DescriptionFormat, DescriptionOptions, DescriptionSpec};
pub use entry::{DataRange, Device, Entry, EntryPath, Kind, Links, Metadata, Timestamp, Xattr};
pub use error::SourceError;
pub use exclude::{Choice, Exclude};
pub use foreign::{Foreign, ForeignKind, HEAD as FOREIGN_HEAD, recognise};
pub use lent::{Lending, LentFile};
pub use mode_change::ModeChange;
pub use open::{SourceSpec, open};
pub use options::Options;
pub use pool::BufferPool;
pub use rules::{RuleError, RuleList, Rules};
pub use source::Source;
pub use warnings::Warnings;
