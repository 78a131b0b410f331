//! Blocks that hold nothing but a value: the target of a symbolic link, or of an attribute.

pub(crate) mod header;
mod symlink;

pub use symlink::{
    SYMLINK_MAGIC, SYMLINK_MAX, symlink_blocks, symlink_part, symlink_payload, verify_symlink,
    write_symlink,
};
