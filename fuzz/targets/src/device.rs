//! A sample with damage, as a device that notices when a reader runs away.

use crate::input::{Change, Patches};
use crate::sample::Sample;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use undercroft_block::{
    Drive, Driver, Failure, Leaf, OpenError, Operation, QueueContext, QueueOptions, Reason,
    Request, Sector, Synchronous,
};

/// A damaged sample. Reading more than the budget panics: the volume is small, so the reader walks
/// in circles or believes a number that it should have checked.
pub struct PatchedDevice {
    sample: &'static Sample,
    /// Sectors that differ from the sample.
    patched: HashMap<u64, [u8; 512]>,
    read: AtomicU64,
    budget: AtomicU64,
}

impl PatchedDevice {
    /// Applies the patches to those pieces of the sample that `may_change` and repairs their
    /// checksums.
    #[must_use]
    pub fn new(
        sample: &'static Sample,
        patches: Patches<'_>,
        may_change: impl Fn(&crate::Piece) -> bool,
    ) -> Self {
        let targets: Vec<usize> =
            (0..sample.pieces.len()).filter(|index| may_change(&sample.pieces[*index])).collect();
        let mut changed: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
        for patch in patches {
            let index = targets[usize::from(patch.piece) % targets.len()];
            let piece = &sample.pieces[index];
            let bytes = changed.entry(index).or_insert_with(|| piece.bytes.clone());
            apply(sample, bytes, patch.offset, &patch.change);
        }
        let mut patched = HashMap::new();
        for (index, mut bytes) in changed {
            let piece = &sample.pieces[index];
            piece.stamp(&mut bytes, &sample.geometry);
            insert(sample, &mut patched, piece.start, &bytes);
        }
        Self { sample, patched, read: AtomicU64::new(0), budget: AtomicU64::new(u64::MAX) }
    }

    /// Allows further reads of `bytes` bytes, in place of the rest.
    pub fn allow(&self, bytes: u64) {
        self.budget.store(self.read() + bytes, Ordering::Relaxed);
    }

    /// Bytes read so far.
    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// The sample as a device that serves each request in the thread that submits it.
    #[must_use]
    pub fn into_device(self) -> Leaf<Self> {
        let options = QueueOptions { drive: Drive::Inline, ..QueueOptions::default() };
        Leaf::start(self, options)
            .expect("neither a thread nor anything of the operating system is needed")
    }
}

/// Applies a change to the bytes of a piece.
pub(crate) fn apply(sample: &Sample, bytes: &mut [u8], offset: u16, change: &Change<'_>) {
    let other = |index: u16| &sample.pieces[usize::from(index) % sample.pieces.len()];
    match change {
        Change::Bytes(new) => crate::input::overwrite(bytes, offset, new),
        Change::Pointer { to, width, add } => {
            let pointer = sample.pointer(other(*to), *width).wrapping_add_signed((*add).into());
            crate::input::overwrite(bytes, offset, &pointer.to_be_bytes()[8 - width..]);
        }
        Change::Copy { from } => {
            let source = &other(*from).bytes;
            let start = usize::from(offset) % bytes.len();
            crate::input::overwrite(bytes, offset, source.get(start..).unwrap_or_default());
        }
    }
}

/// Puts the bytes of a piece, which need not be whole sectors, over the old ones.
fn insert(sample: &Sample, patched: &mut HashMap<u64, [u8; 512]>, start: u64, bytes: &[u8]) {
    let (mut at, mut rest) = (start, bytes);
    while !rest.is_empty() {
        let inside = (at % 512) as usize;
        let len = rest.len().min(512 - inside);
        let sector = patched.entry(at / 512).or_insert_with(|| {
            let mut sound = [0; 512];
            sample.read(at / 512 * 512, &mut sound);
            sound
        });
        sector[inside..inside + len].copy_from_slice(&rest[..len]);
        (at, rest) = (at + len as u64, &rest[len..]);
    }
}

impl Driver for PatchedDevice {
    type Queue = Synchronous<Self>;

    fn name(&self) -> &str {
        "damaged sample"
    }

    fn capacity(&self) -> Sector {
        Sector(self.sample.bytes / 512)
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn open_queue(self: &Arc<Self>, _context: &QueueContext) -> Result<Self::Queue, OpenError> {
        Ok(Synchronous::new(self))
    }

    fn execute(&self, request: &mut Request) -> Option<Result<(), Failure>> {
        if request.operation() != Operation::Read {
            return Some(Err(Reason::ReadOnly.into()));
        }
        let read = self.read.fetch_add(request.length(), Ordering::Relaxed) + request.length();
        assert!(
            read <= self.budget.load(Ordering::Relaxed),
            "runaway reads: {read} bytes of a device of {}",
            self.sample.bytes
        );
        let mut at = request.sector().0 * 512;
        for piece in request.scatter() {
            self.sample.read(at, piece);
            if !self.patched.is_empty() {
                for (sector, part) in (at / 512..).zip(piece.chunks_exact_mut(512)) {
                    if let Some(bytes) = self.patched.get(&sector) {
                        part.copy_from_slice(bytes);
                    }
                }
            }
            at += piece.len() as u64;
        }
        Some(Ok(()))
    }
}
