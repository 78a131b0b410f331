//! The waist of the stack: what every device is, and what it promises.
//!
//! A device is one of two things. A **leaf** takes requests into a [queue](RequestQueue) over a
//! driver. A **stacked** device takes bios one at a time and [maps](Stacked::map) them to devices
//! below, until only bios of leaves remain. Mapping never recurses: the bios of all levels are on
//! one work list of the submitting thread.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::affinity::Placement;
use crate::drivers::{OpenError, Taken};
use crate::error::BlockError;
use crate::queue::{Claim, RequestQueue, claim};
use crate::sector::{SECTOR_SIZE, Sector};
use crate::statistics::{QueueLatencies, Statistics};
use crate::{Bio, Buffer};

/// What the requests to a device must look like. The plug merges within these limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// First byte and length of every request are multiples of this, in bytes: the logical block
    /// size of the device, a multiple of [`SECTOR_SIZE`].
    pub block_bytes: u64,
    /// Most bytes in a request; zeroes and discards carry none and are not limited.
    pub max_request_bytes: u64,
    /// Most pieces of memory in a request.
    pub max_segments: usize,
    /// Start and length of every piece of memory are multiples of this, in bytes; 1 = any.
    pub memory_alignment: usize,
}

impl Default for Limits {
    /// Any whole sectors, any memory; requests of at most 1 MiB in 1,024 pieces (what one system
    /// call takes).
    fn default() -> Self {
        Self {
            block_bytes: SECTOR_SIZE,
            max_request_bytes: 1 << 20,
            max_segments: 1024,
            memory_alignment: 1,
        }
    }
}

impl Limits {
    /// What satisfies both: for a device over several others.
    #[must_use]
    pub fn combine(self, other: Self) -> Self {
        Self {
            block_bytes: self.block_bytes.max(other.block_bytes),
            max_request_bytes: self.max_request_bytes.min(other.max_request_bytes),
            max_segments: self.max_segments.min(other.max_segments),
            memory_alignment: self.memory_alignment.max(other.memory_alignment),
        }
    }
}

/// A device of [`SECTOR_SIZE`]-byte sectors.
///
/// Bios are submitted through a [`Plug`](crate::Plug), or one at a time by the functions of this
/// module.
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

    /// What the device does with a bio.
    fn layer(&self) -> Layer<'_>;

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

    /// Says where the leaves at or below this device start and answer requests from now on.
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

    /// Looks whether another program has become able to change what the devices at or below this one
    /// are stored in: where one is open for change, a mount since then, or a file that lost its name.
    /// Cheap enough to be asked ahead of every write of a journal.
    ///
    /// # Errors
    /// Who has which file or disk.
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
            Layer::Stacked(stacked) => stacked.settle(),
        });
    }

    /// Closes every leaf at or below this device: refuses everything that is submitted from now on,
    /// stops what is in flight as far as drivers can, and waits until everything has been answered.
    /// What had not been started, and what comes later, fails with
    /// [`Reason::Closed`](crate::Reason::Closed).
    ///
    /// Must not be called in a completion callback.
    fn close(&self) {
        visit_leaves(self.layer(), &mut |queue| queue.close());
    }

    /// Sends on what leaves hold back by policy, in every leaf at or below this device.
    fn unplug(&self) {
        visit_leaves(self.layer(), &mut |queue| queue.unplug());
    }
}

/// What a device does with a bio.
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
    /// [`Bio::admit`]; answers what it cannot serve.
    ///
    /// A flush covers every device below that may hold writes. Must not block.
    fn map<'d>(&'d self, bio: Bio, below: &mut Below<'d>);

    /// The devices below, in a fixed order.
    fn devices(&self) -> &[Arc<dyn BlockDevice>];

    /// Waits until all bios that were mapped before have been answered, if the device holds some
    /// back itself.
    fn settle(&self) {}
}

/// Where a stacked device puts the bios for the devices below it.
#[derive(Default)]
pub struct Below<'d> {
    /// The first, which most often is the only one.
    first: Option<(&'d dyn BlockDevice, Bio)>,
    /// Those behind it, in the order in which the device mapped them.
    others: Vec<(&'d dyn BlockDevice, Bio)>,
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
    fn drain_into(&mut self, work: &mut Vec<(&'d dyn BlockDevice, Bio)>) {
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

/// Maps `bio` down from `device`, level by level, and gives the bios that reach leaves to `stage`.
///
/// What one bio becomes goes down to the leaves before the next bio of the level above it, so
/// order is kept and the list stays as short as one path through the stack.
#[inline]
pub(crate) fn route<'d>(
    mut device: &'d dyn BlockDevice,
    mut bio: Bio,
    mut stage: impl FnMut(&'d Arc<dyn RequestQueue>, Bio),
) {
    let mut stacked = match device.layer() {
        Layer::Leaf(queue) => return stage(queue, bio),
        Layer::Stacked(stacked) => stacked,
    };
    let mut below = Below::default();
    // As long as one bio becomes one, there is no list.
    loop {
        stacked.map(bio, &mut below);
        if !below.others.is_empty() {
            return route_all(below, &mut stage);
        }
        let Some(only) = below.first.take() else { return };
        (device, bio) = only;
        match device.layer() {
            Layer::Leaf(queue) => return stage(queue, bio),
            Layer::Stacked(next) => stacked = next,
        }
    }
}

/// The same for all that one bio became.
#[cold]
fn route_all<'d>(mut below: Below<'d>, stage: &mut dyn FnMut(&'d Arc<dyn RequestQueue>, Bio)) {
    let mut work = Vec::new();
    below.drain_into(&mut work);
    while let Some((device, bio)) = work.pop() {
        match device.layer() {
            Layer::Leaf(queue) => stage(queue, bio),
            Layer::Stacked(stacked) => {
                stacked.map(bio, &mut below);
                below.drain_into(&mut work);
            }
        }
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

/// Submits one bio, past any plug but after what the plugs of this thread hold, and waits.
fn submit_and_wait(device: &dyn BlockDevice, bio: Bio) -> Result<Buffer, BlockError> {
    crate::plug::flush_thread();
    let (bio, waiter) = bio.immediate().waited();
    claim::defer(|| crate::plug::submit_directly(device, bio));
    waiter.wait().into_buffer()
}

/// Reads `length` bytes (whole sectors) from `sector` on, without a copy.
///
/// # Errors
/// As the device answered.
pub fn read_buffer(
    device: &dyn BlockDevice,
    sector: Sector,
    length: usize,
) -> Result<Buffer, BlockError> {
    read_into(device, sector, Buffer::zeroed(length))
}

/// Fills `buffer` (whole sectors) from `sector` on and gives it back: memory that is used again.
///
/// # Errors
/// As the device answered; the buffer is gone.
pub fn read_into(
    device: &dyn BlockDevice,
    sector: Sector,
    buffer: Buffer,
) -> Result<Buffer, BlockError> {
    submit_and_wait(device, Bio::read(sector, buffer))
}

/// Fills `bytes` (whole sectors) from `sector` on. For metadata and small reads: it copies, since
/// memory in flight is owned by its bio. On an error the contents of `bytes` are unspecified.
///
/// # Errors
/// As the device answered.
pub fn read_exact_at(
    device: &dyn BlockDevice,
    sector: Sector,
    bytes: &mut [u8],
) -> Result<(), BlockError> {
    bytes.copy_from_slice(&read_buffer(device, sector, bytes.len())?);
    Ok(())
}

/// Writes a copy of `bytes` (whole sectors) to `sector` on. Not durable before a [`flush`].
///
/// # Errors
/// As the device answered.
pub fn write_all_at(
    device: &dyn BlockDevice,
    sector: Sector,
    bytes: &[u8],
) -> Result<(), BlockError> {
    submit_and_wait(device, Bio::write(sector, Buffer::copy_of(bytes))).map(drop)
}

/// Makes everything submitted before durable.
///
/// # Errors
/// As the device answered; afterwards nothing is known about the durability of earlier writes.
pub fn flush(device: &dyn BlockDevice) -> Result<(), BlockError> {
    submit_and_wait(device, Bio::flush()).map(drop)
}
