//! The ends of the journal on a device.

use super::area::LogArea;
use super::ends::LogEnds;
use crate::error::Error;
use crate::geometry::Geometry;
use std::sync::Arc;
use undercroft_block::BlockDevice;

/// Finds the ends of the journal.
///
/// # Errors
/// The device failed, or no record can be found.
pub(crate) fn ends(device: &Arc<dyn BlockDevice>, geometry: &Geometry) -> Result<LogEnds, Error> {
    match LogArea::new(device, geometry) {
        Some(area) => area.ends(geometry),
        None => Ok(LogEnds::default()),
    }
}
