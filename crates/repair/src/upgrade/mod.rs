//! Features of a volume turned on and off, in place.
//!
//! All is made in memory on top of the device, as a repair is: parent pointers by the engine, then the trees of all
//! groups from what inodes claim, in blocks that are free on the volume as it is. What goes to these blocks is
//! written first, and nobody reads it. All else is one transaction of a new journal, and the superblock that names
//! it is the switch: a cut leaves the volume as it was, or as it is to be (docs/upgrade.md).

mod fitness;
mod journal;
mod parents;
mod room;
mod wanted;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use undercroft_block::BlockDevice;
use undercroft_recover::pieces;
use undercroft_xfs::format::{Agi, Superblock};
use undercroft_xfs::mkfs::Feature;
use undercroft_xfs::recovery::{
    BlockImage, NewVolume, install, journal_position, recover, renew_journal, switch_volume,
};
use undercroft_xfs::units::AgNumber;

use crate::chunks::Chunks;
use crate::claims::Claims;
use crate::commit::{self, Piece};
use crate::error::RepairError;
use crate::faults::Faults;
use crate::free::Free;
use crate::group::{self, Kept};
use crate::journal::next_cycle;
use crate::owners::Owners;
use crate::scratch::Scratch;
use crate::subject::Subject;
use crate::superblock;
use crate::{threads, undo};
pub use wanted::Wanted;

/// Features that are only in the superblock, as inodes say by themselves which of them they have. A kernel may
/// learn of them while it replays the journal.
const IN_SUPERBLOCK: [Feature; 3] = [Feature::Bigtime, Feature::Nrext64, Feature::Exchange];

/// What an upgrade will do. Nothing was changed yet.
pub struct Upgrade {
    /// Features that are turned on and off.
    pub changes: Vec<(Feature, bool)>,
    /// Parent pointers that are added.
    pub parents: usize,
    /// How many more blocks are in use than before.
    pub more_blocks: i64,
    /// Whether the journal has to be replayed first.
    pub is_dirty: bool,
    wanted: Wanted,
    scratch: Scratch,
    superblock: Superblock,
    /// The blocks that are free on the volume as it is, and change.
    prepared: Vec<Piece>,
    /// All others that change.
    pieces: Vec<Piece>,
    /// The cycle that the new journal begins with; `None` if the old one stays.
    cycle: Option<u32>,
}

impl Upgrade {
    /// Works out how the volume that starts with the device gets the features that are wanted. The device is
    /// only read; all changes are made in memory, and checked there.
    ///
    /// # Errors
    /// The volume is damaged, or of a kind that cannot be changed; a feature cannot be turned on or off; there is
    /// no room; the device failed.
    pub fn find(device: Arc<dyn BlockDevice>, wanted: &Wanted) -> Result<Self, RepairError> {
        let scratch = Scratch::new(device)?;
        let old = superblock::read(&scratch)?;
        fitness::kind(&old)?;
        if let Some((count, first)) = fitness::faults(&scratch)? {
            return Err(RepairError::Damaged { count, first });
        }
        let is_dirty = recover(&scratch.device(), &mut |_| {})?.is_some();
        let mut subject = Subject::new(scratch, old, Vec::new())?;
        subject.reload()?;
        let old = subject.superblock.clone();
        let changes = wanted.changes(&old.features);
        let target = wanted::target(&old, &changes)?;
        let free = free(&subject)?;
        let missing = room::missing(&subject.scratch, &subject.geometry)?;
        let chunks = Chunks::read(&subject, &Faults::default(), &mut Owners::default())?;
        fitness::inodes(&subject, &chunks, &target)?;
        let (mut parents, mut cycle) = (0, None);
        if !changes.is_empty() {
            if target.features.parent_pointers() && !old.features.parent_pointers() {
                parents = parents::add(&mut subject, &chunks, &target)?;
            }
            let mut new = Superblock { lsn: old.lsn, ..target };
            let is_more = changes.iter().any(|(feature, _)| !IN_SUPERBLOCK.contains(feature));
            if is_more || journal::is_short(&new) {
                journal::place(&mut new, &common(&free, &self::free(&subject)?))?;
                wanted::check_root(&old, &new)?;
                let next = next_cycle(journal_position(&subject.device(), &old)?.cycle());
                cycle = Some(next);
                superblock::write(&subject.scratch, &new)?;
                renew_journal(&subject.device(), &new, next)?;
                subject.reload()?;
                groups(&subject, &chunks, &free)?;
            } else {
                superblock::write(&subject.scratch, &new)?;
                subject.reload()?;
            }
            superblock::renew(&subject.scratch, &subject.superblock)?;
            subject.reload()?;
            room::check(&missing, &subject.scratch, &subject.geometry)?;
            if let Some((count, first)) = fitness::faults(&subject.scratch)? {
                let what = format!("the result would have {count} faults, the first: {first}");
                return Err(RepairError::Refused(vec![what]));
            }
        }
        let (prepared, mut pieces) = pieces(&subject, &free)?;
        if cycle.is_some() {
            // The first superblock is the switch.
            pieces.retain(|piece| piece.sector().0 > 0);
        }
        let Subject { scratch, superblock, .. } = subject;
        Ok(Self {
            changes,
            parents,
            more_blocks: old.free_blocks as i64 - superblock.free_blocks as i64,
            is_dirty,
            wanted: wanted.clone(),
            scratch,
            superblock,
            cycle,
            prepared,
            pieces,
        })
    }

    /// Bytes of the new journal, if it moves.
    #[must_use]
    pub fn journal(&self) -> Option<u64> {
        let superblock = &self.superblock;
        self.cycle.map(|_| u64::from(superblock.log_blocks) << superblock.block_log)
    }

    /// Whether the volume has all features already.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.changes.is_empty()
    }

    /// Bytes that are written into free space, and those that go through the journal.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        let sum = |pieces: &[Piece]| pieces.iter().map(|piece| piece.len() as u64).sum();
        (sum(&self.prepared), sum(&self.pieces))
    }

    /// The volume as the upgrade leaves it, to look at.
    #[must_use]
    pub fn upgraded(&self) -> Arc<dyn BlockDevice> {
        self.scratch.device()
    }

    /// Whether what has to change at once fits the journal. Else an undo file is needed.
    #[must_use]
    pub fn fits_journal(&self) -> bool {
        commit::fits(&self.superblock, &self.pieces)
    }

    /// Changes the volume: it is the old one, or the new one, wherever this is cut. What sectors held before is kept
    /// in the file `undo`, if that is given, for [`UndoFile::take_back`](crate::UndoFile::take_back). With it
    /// changes need not fit the journal: an upgrade that is cut has to be taken back by it.
    ///
    /// # Errors
    /// The changes do not fit the journal, and there is no undo file; one of its name exists; the device is open
    /// for change, or failed.
    pub fn commit(&self, undo: Option<&Path>) -> Result<(), RepairError> {
        if self.is_done() {
            return Ok(());
        }
        let below = self.scratch.below();
        if self.is_dirty {
            recover(below, &mut |_| {})?;
            return Self::find(Arc::clone(below), &self.wanted)?.commit(undo);
        }
        let fits = self.fits_journal();
        let Some(undo) = undo else {
            if !fits {
                let bytes = commit::size(&self.superblock, &self.pieces);
                return Err(RepairError::NeedsUndo { bytes });
            }
            return self.switch(false);
        };
        let own = 0..self.superblock.geometry().sector_size() as u64 / 512;
        let changed = self.pieces.iter().map(Piece::sectors);
        let ranges: Vec<_> = std::iter::once(own).chain(changed).collect();
        undo::keep(self.scratch.legible(), &ranges, undo)?;
        self.switch(!fits)?;
        undo::finish(undo)
    }

    fn switch(&self, in_place: bool) -> Result<(), RepairError> {
        let geometry = self.superblock.geometry();
        let image = |piece| commit::image(&self.scratch, &geometry, piece);
        let images: Vec<BlockImage> = self.pieces.iter().map(image).collect::<Result<_, _>>()?;
        let superblock = &self.superblock;
        let Some(cycle) = self.cycle else {
            return Ok(install(self.scratch.below(), superblock, &images)?);
        };
        let new = NewVolume { superblock, cycle, images: &images, in_place };
        switch_volume(self.scratch.below(), &new, &mut self.prepared.iter().map(image))
    }
}

/// What changes in blocks that are free on the volume as it is, and what else does. Blocks that are free in the end
/// are of no account: those of the old journal are among them.
fn pieces(subject: &Subject, before: &[Free]) -> Result<(Vec<Piece>, Vec<Piece>), RepairError> {
    let geometry = &subject.geometry;
    let sectors = subject.scratch.differences(&commit::journal(geometry))?;
    let after = free(subject)?;
    let all = commit::pieces_of(geometry, sectors).into_iter();
    let in_use = all.filter(|piece| !is_free(subject, &after, piece));
    Ok(in_use.partition(|piece| is_free(subject, before, piece)))
}

/// What is free here and there, of all groups.
fn common(free: &[Free], others: &[Free]) -> Vec<Free> {
    free.iter().zip(others).map(|(free, other)| free.common(other)).collect()
}

/// The free space of all groups.
fn free(subject: &Subject) -> Result<Vec<Free>, RepairError> {
    let of = |ag| Ok(Free::of_records(&pieces::free(&subject.disk, ag)?));
    (0..subject.geometry.ag_count).map(AgNumber).map(of).collect()
}

/// Whether a piece is in blocks that are free.
fn is_free(subject: &Subject, free: &[Free], piece: &Piece) -> bool {
    let geometry = &subject.geometry;
    let group = u64::from(geometry.ag_blocks) * u64::from(geometry.sectors_per_block());
    let (ag, offset) = (piece.sector().0 / group, piece.sector().0 % group);
    let block = offset / u64::from(geometry.sectors_per_block());
    free.get(ag as usize).is_some_and(|free| free.has(block as u32, 1))
}

/// Makes all groups anew.
fn groups(subject: &Subject, chunks: &Chunks, free: &[Free]) -> Result<(), RepairError> {
    let all: BTreeSet<AgNumber> = (0..subject.geometry.ag_count).map(AgNumber).collect();
    let claims = Claims::collect(subject, chunks, &all, &BTreeMap::new())?;
    threads::each(
        free.len(),
        || (),
        |(), index| {
            let (ag, geometry) = (AgNumber(index as u32), &subject.geometry);
            let sector = geometry.header_sector(ag, 2);
            let header = subject.scratch.read(sector, geometry.sector_size())?;
            let unlinked = Agi::decode(&header, geometry).unlinked;
            let kept = Kept { space: Some(free[index].clone()), unlinked };
            group::rebuild(subject, chunks, ag, &claims, &kept)
        },
    )
    .map(drop)
}
