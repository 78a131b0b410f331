//! Whether a journal holds something to replay.

use super::recovery::{LogArea, LogEnds, LogState};
use crate::error::Error;
use crate::volume::Volume;

/// Looks whether the journal on the disk holds something to replay, also if that was done in memory
/// when the volume was opened.
///
/// # Errors
/// The device failed, or no record can be found.
pub fn state(volume: &Volume) -> Result<LogState, Error> {
    if volume.is_replayed_in_memory() { Ok(LogState::Dirty) } else { Ok(ends(volume)?.state) }
}

/// Finds the ends of the journal.
///
/// # Errors
/// The device failed, or no record can be found.
pub(crate) fn ends(volume: &Volume) -> Result<LogEnds, Error> {
    match LogArea::new(volume.cache().device().as_ref(), volume.geometry()) {
        Some(area) => area.ends(volume.geometry()),
        None => Ok(LogEnds::default()),
    }
}
