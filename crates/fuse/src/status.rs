//! The state of a mount, for people and programs.
//!
//! It is an attribute of the root directory, which no listing shows: so it can be asked for wherever
//! the mount is seen, in whatever container, without a socket that must be found.

use serde::{Deserialize, Serialize};

/// The attribute of the root directory that is the status, as JSON.
pub const STATUS_ATTRIBUTE: &str = "system.undercroft.status";

/// The state of a mount. Sizes are bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Status {
    /// The image.
    pub image: String,
    /// Process of the server.
    pub pid: u32,
    /// Name of the socket in the abstract space on which the server says how it ended.
    pub socket: String,
    /// Whether nothing can be changed.
    pub read_only: bool,
    /// Whether that is so since it was remounted: the volume is clean, and can be remounted for changes.
    #[serde(default)]
    pub at_rest: bool,
    /// Why nothing can be changed, if something failed.
    pub failed: Option<String>,
    /// Data of files that is newer in memory than on the device.
    pub dirty_data: u64,
    /// Metadata in memory.
    pub buffers: u64,
    /// The part of it that is newer than its place on the device.
    pub dirty_buffers: u64,
    /// Size of the journal.
    pub journal: u64,
    /// The part of it that a replay would need.
    pub journal_used: u64,
    /// Files that the kernel knows.
    pub known_files: u64,
    /// Those of them that are open here.
    pub open_files: u64,
    /// Requests so far.
    pub requests: u64,
    /// Requests under way, this one too.
    pub in_flight: u64,
    /// Requests that met damage.
    pub damage_errors: u64,
    /// Requests that failed with the device.
    pub device_errors: u64,
}

impl Status {
    /// From the value of the attribute.
    ///
    /// # Errors
    /// It is none.
    pub fn from_json(value: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(value)
    }

    pub(crate) fn to_json(&self) -> Vec<u8> {
        // There are only strings and numbers in it.
        serde_json::to_vec(self).unwrap_or_default()
    }
}
