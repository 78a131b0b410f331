//! When files are made durable: the methods of fs_mark, and tickets.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How the files of an iteration become durable. The numbers are those of fs_mark's `-S`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// 0: not at all.
    #[serde(rename = "0")]
    NoSync,
    /// 1: fsync before each close.
    #[serde(rename = "1")]
    FsyncBeforeClose,
    /// 2: sync when all are written, then one fsync.
    #[serde(rename = "2")]
    SyncFsync,
    /// 3: opened again in reverse order, fsync for each.
    #[serde(rename = "3")]
    PostReverseFsync,
    /// 4: sync, then as 3.
    #[serde(rename = "4")]
    SyncPostReverseFsync,
    /// 5: opened again in order, fsync for each.
    #[serde(rename = "5")]
    PostFsync,
    /// 6: sync, then as 5.
    #[serde(rename = "6")]
    SyncPostFsync,
    /// async: a ticket for each file as soon as it is written; all are waited for in the end.
    #[serde(rename = "async")]
    Async,
}

impl Mode {
    /// Every mode with its name.
    pub const ALL: [(&'static str, Self); 8] = [
        ("0", Self::NoSync),
        ("1", Self::FsyncBeforeClose),
        ("2", Self::SyncFsync),
        ("3", Self::PostReverseFsync),
        ("4", Self::SyncPostReverseFsync),
        ("5", Self::PostFsync),
        ("6", Self::SyncPostFsync),
        ("async", Self::Async),
    ];

    /// Whether everything is synced when all files are written.
    pub(super) const fn syncs_all(self) -> bool {
        matches!(self, Self::SyncFsync | Self::SyncPostReverseFsync | Self::SyncPostFsync)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(_, mode)| mode == self).map_or("", |(name, _)| name);
        f.pad(name)
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(name, _)| *name == text);
        found.map(|(_, mode)| *mode).ok_or_else(|| "a mode is 0 to 6, or async".to_owned())
    }
}
