//! The status of a file, from which Python makes an `os.stat_result`.

use pyo3::prelude::*;
use undercroft_fs::{Metadata, Timestamp};

/// Nanoseconds since 1970.
pub(crate) fn nanoseconds(time: Timestamp) -> i128 {
    i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanoseconds)
}

/// The time of these nanoseconds since 1970.
pub(crate) fn timestamp(nanoseconds: i128) -> Option<Timestamp> {
    let seconds = i64::try_from(nanoseconds.div_euclid(1_000_000_000)).ok()?;
    Some(Timestamp { seconds, nanoseconds: nanoseconds.rem_euclid(1_000_000_000) as u32 })
}

/// The status of a file at one moment. Times are nanoseconds since 1970.
#[pyclass(frozen, get_all, module = "undercroft")]
pub(crate) struct Status {
    mode: u32,
    number: u64,
    generation: u32,
    links: u32,
    uid: u32,
    gid: u32,
    /// Bytes.
    size: u64,
    /// Units of 512 bytes.
    blocks: u64,
    /// Bytes of a block of the volume.
    block_size: u32,
    major: u32,
    minor: u32,
    accessed: i128,
    modified: i128,
    changed: i128,
    created: i128,
}

impl Status {
    pub(crate) fn of(known: &Metadata) -> Self {
        Self {
            mode: known.full_mode().into(),
            number: known.number.0,
            generation: known.generation,
            links: known.nlink,
            uid: known.uid,
            gid: known.gid,
            size: known.size,
            blocks: known.blocks,
            block_size: known.block_size,
            major: known.device.major,
            minor: known.device.minor,
            accessed: nanoseconds(known.accessed),
            modified: nanoseconds(known.modified),
            changed: nanoseconds(known.changed),
            created: nanoseconds(known.created),
        }
    }
}
