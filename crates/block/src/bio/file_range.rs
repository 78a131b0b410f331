//! A range of a file of the operating system, whose blocks a device may share.

use std::fs::File;
use std::sync::Arc;

/// Where in a file a range starts; its length is that of the bio.
#[derive(Clone, Debug)]
pub struct FileRange {
    /// The file, open for reading.
    pub file: Arc<File>,
    /// First byte.
    pub offset: u64,
}
