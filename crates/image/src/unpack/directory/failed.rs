//! Errors of the destination.

use crate::unpack::UnpackError;
use crate::unpack::sink::Item;

/// What could not be done with which entry.
pub(super) fn failed(
    action: &'static str,
    item: &Item<'_>,
    error: rustix::io::Errno,
) -> UnpackError {
    UnpackError::Create { action, path: item.text(), source: error.into() }
}
