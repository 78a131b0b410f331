//! A repair from its beginning to its end: find, plan, write.

use std::path::Path;
use std::sync::Arc;

use undercroft_block::stack::Overlay;
use undercroft_block::{BlockDevice, Reserved, Sector, flush, write_all_at};
use undercroft_xfs::format::Superblock;
use undercroft_xfs::recovery::{BlockImage, install};
use undercroft_xfs::units::{AgNumber, InodeNumber};

use crate::action::{Action, Place};
use crate::chunks::Chunks;
use crate::commit::Piece;
use crate::error::RepairError;
use crate::faults::Faults;
use crate::inode::contents::Refill;
use crate::names::{self, Work};
use crate::owners::Owners;
use crate::scratch::Scratch;
use crate::structure::Structure;
use crate::subject::Subject;
use crate::threads;
use crate::writer::Writer;
use crate::{commit, group, journal, positions, short, superblock, undo};

/// Rounds of a repair: each begins with the faults that the one before left.
const MOST_ROUNDS: u32 = 8;

/// Rounds that do not count, as there were more faults than a round is told of.
const MOST_ROUNDS_OF_MANY: u32 = 64;

/// What a repair will do. Nothing was changed yet.
pub struct Plan {
    /// What a check found at first, one line each.
    pub faults: Vec<String>,
    /// How many faults that were; of many not all are in words.
    pub fault_count: u64,
    /// What is done about it, in the order of its doing.
    pub actions: Vec<Action>,
    scratch: Scratch,
    superblock: Superblock,
    /// The blocks that change.
    pieces: Vec<Piece>,
    /// The cycle that the journal begins with, if it begins anew.
    new_cycle: Option<u32>,
}

impl Plan {
    /// Finds out how the volume that starts with the device can be made sound. The device is only read;
    /// all changes are made in memory, and checked there.
    ///
    /// # Errors
    /// The device failed; there is nothing to repair with; the volume has what cannot be repaired here; or
    /// what would be left is still not sound.
    pub fn find(device: Arc<dyn BlockDevice>) -> Result<Self, RepairError> {
        let mut actions = Vec::new();
        let scratch = Scratch::new(device)?;
        let (superblock, needed) = superblock::mend(&scratch, &mut actions)?;
        let (scratch, new_cycle) = journal::settle(scratch, &superblock, &mut actions)?;
        let mut subject = Subject::new(scratch, superblock, actions)?;
        subject.new_cycle = new_cycle;
        if let Some(needed) = needed {
            short::settle(&mut subject, needed)?;
        }
        let mut owners = Owners::default();
        let mut faults = Faults::find(&subject.scratch)?;
        let texts = std::mem::take(&mut faults.texts);
        let (mut rounds, mut all_rounds, mut refills) = (0, 0, Vec::new());
        let fault_count = faults.count;
        while !(faults.is_empty() && refills.is_empty()) {
            if rounds == MOST_ROUNDS {
                let first = faults.texts.into_iter().next().unwrap_or_default();
                return Err(RepairError::NotSound { count: faults.count, first });
            }
            let before = faults.is_cut_off();
            if faults.has_structure() {
                refills.append(&mut structures(&mut subject, &faults, &mut owners)?);
            } else {
                names(&mut subject, std::mem::take(&mut refills))?;
            }
            faults = Faults::find(&subject.scratch)?;
            // Of more faults than one round is told of, each round mends some.
            all_rounds += 1;
            rounds += u32::from(!before || all_rounds > MOST_ROUNDS_OF_MANY);
        }
        let pieces = commit::pieces(&subject.scratch, &subject.geometry)?;
        let Subject { scratch, superblock, actions, new_cycle, .. } = subject;
        Ok(Self { faults: texts, fault_count, actions, scratch, superblock, pieces, new_cycle })
    }

    /// Whether the volume is sound as it is.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.pieces.is_empty() && self.new_cycle.is_none()
    }

    /// Blocks that are to change.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.pieces.len()
    }

    /// The volume as the repair leaves it, to look at.
    #[must_use]
    pub fn repaired(&self) -> Arc<dyn BlockDevice> {
        self.scratch.device()
    }

    /// Whether the changes fit the journal of the volume, so that a cut leaves all of them or none.
    #[must_use]
    pub fn fits_journal(&self) -> bool {
        self.new_cycle.is_none()
            && !commit::is_unreadable(&self.scratch, &self.pieces)
            && commit::fits(&self.superblock, &self.pieces)
    }

    /// Changes the device: all that is to change, or nothing, wherever it is cut. What sectors held before is
    /// kept in the file `undo`, if that is given, for [`UndoFile::take_back`](crate::UndoFile::take_back). With it
    /// changes need not fit the journal: a repair that is cut can be taken back by it.
    ///
    /// # Errors
    /// The changes do not fit the journal, and there is no undo file; one of its name exists; the device is open
    /// for change, or failed.
    pub fn commit(&self, undo: Option<&Path>) -> Result<(), RepairError> {
        if self.is_sound() {
            return Ok(());
        }
        let fits = self.fits_journal();
        let below = self.scratch.below();
        let Some(undo) = undo else {
            if !fits {
                let bytes = commit::size(&self.superblock, &self.pieces);
                return Err(RepairError::NeedsUndo { bytes });
            }
            return Ok(install(below, &self.superblock, &self.images()?)?);
        };
        let images = if fits { self.images()? } else { Vec::new() };
        let ranges = if fits {
            // What a trial in memory writes is what will be written.
            let trial = Arc::new(Overlay::new(Arc::clone(self.scratch.legible())));
            let device: Arc<dyn BlockDevice> = Arc::clone(&trial) as Arc<dyn BlockDevice>;
            install(&device, &self.superblock, &images)?;
            trial.changed()
        } else {
            commit::ranges(&self.scratch.differences(&(0..0))?)
        };
        undo::keep(self.scratch.legible(), &ranges, undo)?;
        if fits {
            install(below, &self.superblock, &images)?;
        } else {
            self.write_to(below)?;
        }
        undo::finish(undo)
    }

    fn images(&self) -> Result<Vec<BlockImage>, RepairError> {
        let image = |piece| commit::image(&self.scratch, &self.superblock.geometry(), piece);
        self.pieces.iter().map(image).collect()
    }

    /// Makes a copy of the device the repaired volume: writes what differs, in no order that a cut would
    /// leave sound.
    ///
    /// # Errors
    /// A device failed.
    pub fn write_to(&self, copy: &Arc<dyn BlockDevice>) -> Result<(), RepairError> {
        let device = &Reserved::new(Arc::clone(copy)).map_err(undercroft_xfs::Error::from)?;
        for range in commit::ranges(&self.scratch.differences(&(0..0))?) {
            let len = (range.end - range.start) as usize * 512;
            let bytes = self.scratch.read(Sector(range.start), len)?;
            write_all_at(device.as_ref(), Sector(range.start), &bytes)?;
        }
        Ok(flush(device.as_ref())?)
    }
}

/// A round of structures: superblock, groups, inodes and their maps. Returns what has to be put into inodes
/// that are empty now.
fn structures(
    subject: &mut Subject,
    faults: &Faults,
    owners: &mut Owners,
) -> Result<Vec<(InodeNumber, Refill)>, RepairError> {
    // Before trees are made anew: what they said is evidence.
    for ag in &faults.groups {
        owners.remember(subject, *ag);
    }
    let mut chunks = Chunks::read(subject, faults, owners)?;
    if faults.journal {
        positions::settle(subject, &chunks)?;
    }
    let mut structure = Structure::default();
    structure.read(subject, faults, owners, &mut chunks)?;
    structure.contest(subject, faults, owners, &mut chunks)?;
    let mut groups = faults.groups.clone();
    groups.append(&mut structure.groups);
    structure.make_room(subject, &chunks)?;
    let refills = Writer::new(subject, &chunks, &mut groups).write(&mut structure)?;
    let missing = groups.iter().copied().filter(|ag| !structure.claims.has(*ag)).collect();
    structure.collect(subject, &chunks, &missing)?;
    let groups: Vec<AgNumber> = groups.into_iter().collect();
    groups.iter().for_each(|ag| owners.remember(subject, *ag));
    threads::each(
        groups.len(),
        || (),
        |(), index| {
            let kept = group::Kept::default();
            group::rebuild(subject, &chunks, groups[index], &structure.claims, &kept)
        },
    )?;
    for ag in groups {
        subject.note(Place::Group(ag), "the headers and trees of the group are made anew");
    }
    superblock::settle(&subject.scratch, &subject.superblock, faults, &mut subject.actions)?;
    subject.reload()?;
    Ok(refills)
}

/// A round of names, on structures that are sound.
fn names(subject: &mut Subject, refills: Vec<(InodeNumber, Refill)>) -> Result<(), RepairError> {
    let (faults, mut owners) = (Faults::default(), Owners::default());
    let chunks = Chunks::read(subject, &faults, &mut owners)?;
    let rooted = subject.rooted();
    names::mend(subject, &chunks, &Work { refills, rooted })?;
    subject.reload()
}
