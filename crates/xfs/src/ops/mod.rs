//! File operations: what callers use.
//!
//! Operations that change a volume take an open transaction and the locked inodes that they work
//! on; the caller commits. Those that need several transactions, such as [`FileEdit`], begin and
//! commit them. Those that read take the volume.

mod create;
mod directory;
mod edit;
mod extent_map;
mod footprint;
mod path;
mod placement;
mod read;
mod write;
mod xattr;

pub use create::{NewInode, Times, create, link, set_metadata};
pub(crate) use create::{create_reserved, create_root};
pub use directory::{entries, lookup};
pub use edit::{CloneRange, FileEdit, Size, clone_range, dedupe_range};
pub use extent_map::{MappedExtent, extent_map};
pub use footprint::{Content, DirectoryFootprint, Footprint, StoredAttribute};
pub use path::{path_text, resolve};
pub use placement::DataPlacement;
pub use read::{FileReader, Piece, data_ranges, read_at, read_link};
pub(crate) use edit::check_kind;
pub(crate) use write::MAX_FILE_SIZE;
pub use write::{DataWriter, FileMap, FileWriter, allocate_file};
pub use xattr::{NamedValue, attributes, set_attributes};
