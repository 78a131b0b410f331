//! One writer of the sectors of a device: who changes a volume on it, makes or maintains one.
//!
//! The right belongs to the leaves below the device, so that it is one right whatever way leads to
//! them: the same device, a window, another stack. It keeps out those who ask for it too, and no
//! bios.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;
use std::time::{Duration, Instant};

use smallvec::SmallVec;

use super::block_device::{BlockDevice, Layer, Part};
use super::request_queue::RequestQueue;
use super::taken_sectors::overlap;
use crate::driver::{Holder, Taken};
use crate::units::Sector;

/// How long the end of the present holder is waited for: the last owner of a volume may be its own
/// thread, which has data to write first.
const PATIENCE: Duration = Duration::from_secs(1);

/// A device that no other holder of this type changes, in this program, as long as a clone of this
/// lives: not its sectors, nor a range of them. Readers do not ask for it. Of a file or disk, a
/// [`FileDevice`](crate::FileDevice) keeps other programs away.
#[derive(Clone)]
pub struct Reserved {
    device: Arc<dyn BlockDevice>,
    _right: Arc<Right>,
}

impl Reserved {
    /// Takes all sectors of `device`. Waits for a moment for a holder that may be ending.
    ///
    /// # Errors
    /// Some are taken.
    pub fn new(device: Arc<dyn BlockDevice>) -> Result<Self, Taken> {
        Self::within(device, PATIENCE)
    }

    /// Takes all sectors of `device`. Waits for as long as `patience` for the end of other holders.
    ///
    /// # Errors
    /// Some are taken.
    pub fn within(device: Arc<dyn BlockDevice>, patience: Duration) -> Result<Self, Taken> {
        let mut right = Right { parts: Vec::new() };
        let until = Instant::now() + patience;
        for part in leaf_parts(&*device, Sector::ZERO..device.capacity()) {
            if !part.is_written || part.sectors.is_empty() {
                continue;
            }
            if !part.leaf.reservations().take(part.sectors.clone(), until) {
                return Err(Taken { name: part.leaf.name().to_owned(), holder: Holder::Here });
            }
            right.parts.push((Arc::clone(part.leaf), part.sectors));
        }
        Ok(Self { device, _right: Arc::new(right) })
    }
}

impl Deref for Reserved {
    type Target = Arc<dyn BlockDevice>;

    fn deref(&self) -> &Arc<dyn BlockDevice> {
        &self.device
    }
}

impl fmt::Debug for Reserved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reserved").field(&self.device.name()).finish()
    }
}

/// What one holder has.
struct Right {
    parts: Vec<(Arc<dyn RequestQueue>, Range<Sector>)>,
}

impl Drop for Right {
    fn drop(&mut self) {
        for (leaf, sectors) in &self.parts {
            leaf.reservations().give_back(sectors);
        }
    }
}

/// Sectors of a leaf that are sectors of a device above it.
struct LeafPart<'d> {
    leaf: &'d Arc<dyn RequestQueue>,
    sectors: Range<Sector>,
    is_written: bool,
}

/// Where `sectors` of `device` are in the leaves at or below it.
fn leaf_parts(device: &dyn BlockDevice, sectors: Range<Sector>) -> Vec<LeafPart<'_>> {
    let mut found = Vec::new();
    let mut work = SmallVec::<[Part<'_>; 8]>::new();
    work.push(Part { device, sectors, is_written: true });
    while let Some(Part { device, sectors, is_written }) = work.pop() {
        match device.layer() {
            Layer::Leaf(leaf) => found.push(LeafPart { leaf, sectors, is_written }),
            Layer::Stacked(stacked) => stacked.parts(sectors, &mut |part| {
                work.push(Part { is_written: is_written && part.is_written, ..part });
            }),
        }
    }
    found
}

/// The name of a leaf that has a sector in two of `devices`, where it may be written.
pub(crate) fn shared_leaf(devices: &[Arc<dyn BlockDevice>]) -> Option<String> {
    let mut seen: Vec<LeafPart<'_>> = Vec::new();
    for device in devices {
        let parts = leaf_parts(&**device, Sector::ZERO..device.capacity());
        let same = |part: &LeafPart<'_>, other: &LeafPart<'_>| {
            Arc::ptr_eq(part.leaf, other.leaf)
                && overlap(&part.sectors, &other.sectors)
                && (part.is_written || other.is_written)
        };
        let shared = parts.iter().find(|part| seen.iter().any(|other| same(part, other)));
        if let Some(part) = shared {
            return Some(part.leaf.name().to_owned());
        }
        seen.extend(parts);
    }
    None
}
