//! File operations: what callers use.
//!
//! Two layers. [`create`], [`add_link`], [`set_attributes`], [`allocate_file`] are parts: they take
//! an open transaction and the locked inodes that they work on, and the caller commits; a bulk load
//! is made of them. Functions that take the volume and a time are whole. Each begins its
//! transaction, which may wait for the journal, and locks its inodes in the order of numbers. It
//! makes all checks, and makes sure of the space for its worst case, before it changes anything. It
//! is one transaction, or a chain of transactions that each leave a sound volume.
//! [`OpenFile`](crate::OpenFile) does so for data. Functions that read take the volume.

mod attribute_fork;
mod create;
mod directory;
mod discard;
mod extent_map;
mod footprint;
mod inherit;
mod link;
mod locks;
mod make;
pub mod mend;
mod metadata;
mod new_contents;
mod parents;
mod path;
mod placement;
mod privileges;
mod put_back;
mod rename;
mod set_xattr;
mod size_hint;
mod spare;
pub(crate) mod superblock;
mod unlink;
mod whiteout;
mod wipe;
mod xattr;

pub use crate::attr::SetMode;
pub use crate::dir::{DirectoryEntry, Position, check_name};
pub use crate::file::{CloneRange, Size, data_ranges, read_link};
pub use create::{NewInode, Times, add_link, create, set_metadata};
pub(crate) use create::{create_reserved, create_root};
pub use directory::{all_entries, entries, lookup, lookup_in_use};
pub use discard::Trimmed;
pub use extent_map::{MappedExtent, extent_map};
pub use footprint::{Content, DirectoryFootprint, Footprint, StoredAttribute};
pub use link::link;
pub use make::{create_unlinked, make, make_open};
pub use metadata::{MetadataChange, change_metadata};
pub use new_contents::{DataWriter, FileMap, FileWriter, RangeClone, allocate_file};
pub use parents::{Parent, parents};
pub use path::path_text;
pub use placement::DataPlacement;
pub use privileges::drop_privileges;
pub use put_back::{OldFile, put_back};
pub use rename::{Name, RenameMode, rename, rename_leaving_whiteout};
pub use set_xattr::{get_xattr, remove_xattr, set_xattr};
pub use size_hint::{SizeHints, set_size_hints};
pub(crate) use superblock::change as change_superblock;
pub use unlink::{rmdir, unlink};
pub use wipe::Wiping;
pub use xattr::{NamedValue, attributes, set_attributes};
