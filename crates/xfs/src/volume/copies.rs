//! The copies of the superblock in all groups but the first. Mounts do not look at them, but
//! `xfs_repair` takes the size of a volume from most of them: one that is larger is written ahead of
//! the change that makes the volume so, any other change behind it. A crash between the two, or a
//! kernel that replays the change and leaves the copies, makes them old: each opening for changes
//! looks at them.
//!
//! They also say that a journal moves, and that it may have blocks which are not in use.

use crate::cache::stamp;
use crate::error::Error;
use crate::format::{BufferKind, Incompat, Superblock};
use crate::geometry::Geometry;
use crate::units::{AgNumber, Lsn};
use std::sync::Arc;
use undercroft_block::{Bio, BlockDevice, Buffer, Plug, Waiter, flush, write_all_at};

/// The first group with a copy.
const FIRST: u32 = 1;

/// Copies that are read at a time.
const AT_ONCE: u32 = 4096;

/// The position in the journal that copies have while it moves. No record is there, as cycles begin
/// with 1, and other programs write 0 or that of a record.
const JOURNAL_MOVES: Lsn = Lsn(1);

/// Writes all copies.
pub(crate) fn write_copies(device: &dyn BlockDevice, superblock: &Superblock) -> Result<(), Error> {
    write(device, superblock, Lsn(0))
}

/// As [`write_copies`]; they say that the journal moves.
pub(crate) fn mark_copies(device: &dyn BlockDevice, superblock: &Superblock) -> Result<(), Error> {
    write(device, superblock, JOURNAL_MOVES)
}

/// Whether a copy says that the journal moves.
pub(crate) fn is_marked(copy: &Superblock) -> bool {
    copy.lsn == JOURNAL_MOVES
}

fn write(device: &dyn BlockDevice, superblock: &Superblock, lsn: Lsn) -> Result<(), Error> {
    let geometry = superblock.geometry();
    let mut bytes = vec![0; geometry.sector_size()];
    superblock.encode(&mut bytes);
    stamp(BufferKind::Superblock, &mut bytes, lsn, &geometry);
    let write = |ag| write_all_at(device, geometry.header_sector(ag, 0), &bytes);
    (FIRST..geometry.ag_count).map(AgNumber).try_for_each(write)?;
    Ok(flush(device)?)
}

/// How the copies stand to the first superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CopiesState {
    /// What a change makes different is the same in all.
    Current,
    /// One is old: a change was cut before it had written them, by us or by a kernel.
    Old,
    /// One says that the journal moves.
    JournalMoving,
}

/// All copies, on their way from the device.
pub(crate) struct Copies {
    device: Arc<dyn BlockDevice>,
    superblock: Superblock,
    geometry: Geometry,
    reads: Vec<Waiter>,
    /// Those of the groups in front of this one were begun.
    next: u32,
}

impl Copies {
    /// Begins to read them, so that they come with what else is read.
    pub(crate) fn begin(device: &Arc<dyn BlockDevice>, superblock: &Superblock) -> Self {
        let mut copies = Self {
            device: Arc::clone(device),
            geometry: superblock.geometry(),
            superblock: superblock.clone(),
            reads: Vec::new(),
            next: FIRST,
        };
        copies.begin_next();
        copies
    }

    fn begin_next(&mut self) {
        let end = self.next.saturating_add(AT_ONCE).min(self.geometry.ag_count);
        if self.next >= end {
            return;
        }
        let plug = Plug::new(&self.device);
        let read = |ag| {
            let buffer = Buffer::zeroed(self.geometry.sector_size());
            let sector = self.geometry.header_sector(AgNumber(ag), 0);
            let (bio, waiter) = Bio::read(sector, buffer).waited();
            plug.submit(bio);
            waiter
        };
        self.reads = (self.next..end).map(read).collect();
        self.next = end;
    }

    /// Compares them with the first superblock. One that cannot be read is damage, and left to checks.
    pub(crate) fn state(mut self) -> CopiesState {
        let mut state = CopiesState::Current;
        while !self.reads.is_empty() {
            for read in std::mem::take(&mut self.reads) {
                let Ok(bytes) = read.wait().into_buffer() else { continue };
                let Ok(copy) = Superblock::decode(&bytes) else { continue };
                state = state.max(self.state_of(&copy));
            }
            self.begin_next();
        }
        state
    }

    fn state_of(&self, copy: &Superblock) -> CopiesState {
        match identity(copy) == identity(&self.superblock) {
            _ if is_marked(copy) => CopiesState::JournalMoving,
            true => CopiesState::Current,
            false => CopiesState::Old,
        }
    }
}

/// What a change that may be interrupted makes different.
fn identity(superblock: &Superblock) -> impl PartialEq + use<> {
    let Superblock { uuid, label, blocks, ag_count, ag_blocks, log_start, features, .. } =
        superblock;
    // That of the metadata is in the superblock only where it is another one.
    let meta_uuid = superblock.geometry().meta_uuid;
    // The mark of `xfs_repair` is in the first one alone.
    let incompat = features.incompat - Incompat::NEEDSREPAIR;
    let ids = (*uuid, meta_uuid, *label);
    (ids, *blocks, *ag_count, *ag_blocks, *log_start, incompat, features.ro_compat)
}
