//! Disks in files of a format of their own.
//!
//! This crate knows no such format. A crate that does says how they are opened
//! ([`register_containers`]), and all descriptions have them.

use std::error::Error;
use std::sync::{Arc, OnceLock};

use super::disk_format::DiskFormat;
use super::leaf_options::LeafOptions;
use super::options::FileLeaf;
use crate::device::BlockDevice;
use crate::stack::StackError;

/// Opens the disk in a file, if the file has a format that is known.
pub type OpenContainer = fn(
    &FileLeaf,
    LeafOptions,
) -> Result<Option<Arc<dyn BlockDevice>>, Box<dyn Error + Send + Sync>>;

static OPENER: OnceLock<OpenContainer> = OnceLock::new();

/// Says how disks in files of a format of their own are opened, for the whole process. The first call
/// counts.
pub fn register_containers(open: OpenContainer) {
    let _ = OPENER.set(open);
}

impl FileLeaf {
    /// The disk in the file, if that has a format of its own and is not to be taken as it is.
    pub(super) fn open_container(
        &self,
        options: LeafOptions,
    ) -> Result<Option<Arc<dyn BlockDevice>>, StackError> {
        match OPENER.get() {
            Some(open) if self.format != DiskFormat::Raw => {
                open(self, options).map_err(StackError::Container)
            }
            _ => Ok(None),
        }
    }
}
