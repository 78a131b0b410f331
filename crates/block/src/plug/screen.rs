//! Bios that no device has to see, and bios that are too large for one request.

use crate::bio::{Bio, Operation, Reason};
use crate::device::BlockDevice;
use crate::units::{Limits, SECTOR_SIZE};

/// Answers bios that no device has to see: those not made of whole sectors, and empty ones.
#[inline]
pub(super) fn screen(bio: Bio, device: &dyn BlockDevice) -> Option<Bio> {
    if is_regular(&bio) { Some(bio) } else { answer_irregular(bio, device) }
}

/// Whether a bio is made of whole sectors, and of some unless it is a flush.
#[inline]
pub(super) fn is_regular(bio: &Bio) -> bool {
    bio.end().is_some() && (bio.length() > 0 || bio.operation() == Operation::Flush)
}

#[cold]
pub(super) fn answer_irregular(bio: Bio, device: &dyn BlockDevice) -> Option<Bio> {
    if bio.end().is_none() {
        bio.fail(device.name(), Reason::Misaligned { unit: SECTOR_SIZE });
    } else {
        bio.succeed();
    }
    None
}

/// Hands `bio` to `stage`, in parts if it is larger than a request may be.
#[inline]
pub(super) fn for_each_fitting(mut bio: Bio, limits: &Limits, mut stage: impl FnMut(Bio)) {
    while let Some(bytes) = bio.fitting_bytes(limits) {
        stage(bio.split_front(bytes));
    }
    stage(bio);
}
