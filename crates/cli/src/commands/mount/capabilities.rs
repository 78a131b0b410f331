//! The rights of root that a server gives up before it has threads, which get what it has then.
//!
//! A program that root starts has them all again, by its user (capabilities(7)).

use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// To mount and to unmount; to open an image and a log of others; to lock memory that a ring of reads
/// and writes knows; to use the last blocks of a file system, which it keeps for root, where the image
/// has holes.
const KEPT: CapabilitySet = CapabilitySet::SYS_ADMIN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::IPC_LOCK)
    .union(CapabilitySet::SYS_RESOURCE);

/// Keeps those rights alone, of which this thread may lack some.
///
/// # Errors
/// None that is known: rights can always be given up.
pub(super) fn give_up() -> Result<(), Errno> {
    let held = capabilities(None)?;
    let kept = CapabilitySets {
        effective: held.effective.intersection(KEPT),
        permitted: held.permitted.intersection(KEPT),
        inheritable: held.inheritable.intersection(KEPT),
    };
    set_capabilities(None, kept)
}
