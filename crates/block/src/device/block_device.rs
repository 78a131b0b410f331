//! What every device is: the trait, and its contract.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::claim::Claim;
use super::request_queue::RequestQueue;
use crate::bio::Bio;
use crate::driver::{OpenError, Taken};
use crate::experiments::Placement;
use crate::statistics::{QueueLatencies, Statistics};
use crate::units::{Limits, Sector};

/// A device of [`SECTOR_SIZE`](crate::SECTOR_SIZE)-byte sectors.
///
/// Bios are submitted through a [`Plug`](crate::Plug), or one at a time by
/// [`read_exact_at`](crate::read_exact_at) and its like.
///
/// # Contract
/// - **Answers.** Every bio submitted is answered once, possibly in another thread and possibly
///   before the call that submits it returns.
/// - **Checks.** Each device checks range and permission of what reaches it; a leaf checks
///   alignment too. Callers cannot: the capacity may change between their check and the I/O.
/// - **Order.** Completions come in any order. Bios that overlap, one of them modifying, take
///   effect in the order in which they were submitted, if that order is defined (one thread, or
///   threads that synchronised), unless a leaf was told to leave the order to its users.
/// - **Durability.** A completed write is visible to every later read, and durable only after a
///   flush that was submitted after it, or if it asked for forced unit access. A flush covers all
///   bios submitted before it, completed or not. After a failed flush nothing is known about the
///   durability of earlier writes.
/// - **Blocking.** Submitting may block for room in a queue, never in a completion callback.
/// - **Names.** An error carries the name of the device that failed and the addresses of the
///   submitter, also through devices stacked on each other.
pub trait BlockDevice: Send + Sync {
    /// How messages call this device: a path, or a description.
    fn name(&self) -> &str;

    /// Number of sectors.
    fn capacity(&self) -> Sector;

    /// What requests must look like.
    fn limits(&self) -> Limits;

    /// Whether operations that modify are refused.
    fn is_read_only(&self) -> bool;

    /// The answer of the device to a bio.
    fn layer(&self) -> Layer<'_>;

    /// Devices that belong together and are one only by what is on them, such as the disks of a group of
    /// LVM; none for a device with bytes.
    fn members(&self) -> &[Arc<dyn BlockDevice>] {
        &[]
    }

    /// What passed so far through the leaves at or below this device.
    fn statistics(&self) -> Statistics {
        let mut sum = Statistics::default();
        visit_leaves(self.layer(), &mut |queue| sum = sum + queue.statistics());
        sum
    }

    /// How long requests took so far in the leaves at or below this device.
    fn latencies(&self) -> QueueLatencies {
        let mut sum = QueueLatencies::default();
        visit_leaves(self.layer(), &mut |queue| sum = std::mem::take(&mut sum) + queue.latencies());
        sum
    }

    /// For [experiments](crate::experiments): says where the leaves at or below this device start and
    /// answer requests from now on.
    fn set_placement(&self, placement: &Placement) {
        visit_leaves(self.layer(), &mut |queue| queue.set_placement(placement));
    }

    /// Gives this thread a hardware queue of its own in every leaf at or below this device, which
    /// it drives itself until the claim is dropped ([`Claim`]).
    ///
    /// # Errors
    /// When a driver cannot open one more queue.
    fn claim(&self) -> Result<Claim, OpenError> {
        let mut claim = Ok(Claim::new());
        visit_leaves(self.layer(), &mut |queue| {
            if let Ok(claims) = &mut claim {
                match queue.claim() {
                    Ok(more) => claims.join(more),
                    Err(error) => claim = Err(error),
                }
            }
        });
        claim
    }

    /// Looks whether another program has become able to change what the devices at or below this
    /// one are stored in: where one is open for change, a mount since then, or a file that lost its
    /// name. Cheap enough to be asked ahead of every write of a journal.
    ///
    /// # Errors
    /// The holder of a file or disk.
    fn check_alone(&self) -> Result<(), Taken> {
        match self.layer() {
            Layer::Leaf(_) => Ok(()),
            Layer::Stacked(stacked) => {
                stacked.devices().iter().try_for_each(|device| device.check_alone())
            }
        }
    }

    /// Waits until every bio submitted before has been answered. Does not flush caches.
    ///
    /// A stacked device that holds bios back itself waits for those too.
    fn drain(&self) {
        visit_layers(self.layer(), &mut |layer| match layer {
            Layer::Leaf(queue) => queue.drain(),
            Layer::Stacked(stacked) => stacked.wait_answered(),
        });
    }

    /// Closes every leaf at or below this device: refuses bios that are submitted from now on,
    /// stops requests in flight as far as drivers can, and waits until all bios have been answered.
    /// Bios that had not been started or come later fail with
    /// [`Reason::Closed`](crate::Reason::Closed).
    ///
    /// Must not be called in a completion callback.
    fn close(&self) {
        visit_leaves(self.layer(), &mut |queue| queue.close());
    }
}

impl fmt::Debug for dyn BlockDevice + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockDevice").field("name", &self.name()).finish_non_exhaustive()
    }
}

/// The handling of a bio by a device.
pub enum Layer<'d> {
    /// It puts it in a request, and that in a queue.
    Leaf(&'d Arc<dyn RequestQueue>),
    /// It hands it on.
    Stacked(&'d dyn Stacked),
}

/// A device made of other devices.
pub trait Stacked: Send + Sync {
    /// Hands `bio` to devices below by [`Below::submit`]: as it is with another address
    /// ([`Bio::remap`]) where one device serves all of it, else in parts. Checks it first with
    /// [`Bio::admit`]; answers a bio that it cannot serve.
    ///
    /// A flush covers every device below that may hold writes. Must not block.
    fn map<'d>(&'d self, bio: Bio, below: &mut Below<'d>);

    /// Calls `visit` with where `sectors`, which are inside the device, are below it.
    fn parts<'d>(&'d self, sectors: Range<Sector>, visit: &mut dyn FnMut(Part<'d>));

    /// The devices below, in a fixed order.
    fn devices(&self) -> &[Arc<dyn BlockDevice>];

    /// Waits until all bios that were mapped before have been answered, if the device holds some
    /// back itself.
    fn wait_answered(&self) {}
}

/// Sectors of a device that are sectors of a device above it.
pub struct Part<'d> {
    /// The device below.
    pub device: &'d dyn BlockDevice,
    /// Its sectors.
    pub sectors: Range<Sector>,
    /// Whether the device above ever writes them.
    pub is_written: bool,
}

/// Where a stacked device puts the bios for the devices below it.
#[derive(Default)]
pub struct Below<'d> {
    /// The first, which most often is the only one.
    pub(super) first: Option<(&'d dyn BlockDevice, Bio)>,
    /// Those behind it, in the order in which the device mapped them.
    pub(super) others: Vec<(&'d dyn BlockDevice, Bio)>,
}

impl<'d> Below<'d> {
    /// Hands `bio`, whose address is one of `device`, to `device`. Bios take effect in the order of
    /// these calls.
    #[inline]
    pub fn submit(&mut self, device: &'d dyn BlockDevice, bio: Bio) {
        if self.first.is_none() {
            self.first = Some((device, bio));
        } else {
            self.others.push((device, bio));
        }
    }

    /// Moves all bios to the end of `work`, the last one first.
    pub(super) fn drain_into(&mut self, work: &mut Vec<(&'d dyn BlockDevice, Bio)>) {
        work.extend(self.others.drain(..).rev());
        work.extend(self.first.take());
    }
}

impl fmt::Debug for Below<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bios = self.first.iter().chain(&self.others).map(|(device, bio)| (device.name(), bio));
        f.debug_list().entries(bios).finish()
    }
}

/// Calls `visit` with the queue of every leaf at or below `layer`.
pub(crate) fn visit_leaves(layer: Layer<'_>, visit: &mut dyn FnMut(&Arc<dyn RequestQueue>)) {
    visit_layers(layer, &mut |layer| {
        if let Layer::Leaf(queue) = layer {
            visit(queue);
        }
    });
}

/// Calls `visit` with `layer` and all below it, upper ones first, without recursion.
fn visit_layers(layer: Layer<'_>, visit: &mut dyn FnMut(&Layer<'_>)) {
    let mut work: SmallVec<[Layer<'_>; 8]> = SmallVec::from_iter([layer]);
    while let Some(layer) = work.pop() {
        visit(&layer);
        if let Layer::Stacked(stacked) = layer {
            work.extend(stacked.devices().iter().rev().map(|device| device.layer()));
        }
    }
}
