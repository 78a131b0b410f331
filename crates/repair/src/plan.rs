//! A repair from its beginning to its end: find, plan, write.

use std::path::Path;
use std::sync::Arc;

use undercroft_block::stack::Overlay;
use undercroft_block::{BlockDevice, Reserved, Sector, flush, write_all_at};
use undercroft_xfs::format::Superblock;
use undercroft_xfs::recovery::{BlockImage, images_size, install};
use undercroft_xfs::units::InodeNumber;

use crate::action::Action;
use crate::chunks::Chunks;
use crate::error::RepairError;
use crate::faults::Faults;
use crate::inode::contents::Refill;
use crate::names::{self, Work};
use crate::owners::Owners;
use crate::scratch::Scratch;
use crate::structure::Structure;
use crate::subject::Subject;
use crate::writer::Writer;
use crate::{commit, group, journal, positions, superblock, undo};

/// Rounds of a repair: each begins with the faults that the one before left.
const MOST_ROUNDS: usize = 8;

/// What a repair will do. Nothing was changed yet.
pub struct Plan {
    /// What a check found at first, one line each.
    pub faults: Vec<String>,
    /// What is done about it, in the order of its doing.
    pub actions: Vec<Action>,
    scratch: Scratch,
    superblock: Superblock,
    images: Vec<BlockImage>,
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
        let scratch = Scratch::new(device);
        let superblock = superblock::mend(&scratch, &mut actions)?;
        let (scratch, new_cycle) = journal::settle(scratch, &superblock, &mut actions)?;
        let mut subject = Subject::new(scratch, superblock, actions)?;
        subject.new_cycle = new_cycle;
        let mut owners = Owners::default();
        let mut faults = Faults::find(&subject.scratch)?;
        let texts = faults.findings.iter().map(ToString::to_string).collect();
        let (mut rounds, mut refills) = (0, Vec::new());
        while !(faults.is_empty() && refills.is_empty()) {
            if rounds == MOST_ROUNDS {
                let first = faults.findings.first().map_or_else(String::new, ToString::to_string);
                return Err(RepairError::NotSound { count: faults.findings.len(), first });
            }
            if faults.has_structure() {
                refills.append(&mut structures(&mut subject, &faults, &mut owners)?);
            } else {
                names(&mut subject, std::mem::take(&mut refills))?;
            }
            faults = Faults::find(&subject.scratch)?;
            rounds += 1;
        }
        let images = commit::images(&subject.scratch, &subject.geometry)?;
        let Subject { scratch, superblock, actions, new_cycle, .. } = subject;
        Ok(Self { faults: texts, actions, scratch, superblock, images, new_cycle })
    }

    /// Whether the volume is sound as it is.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.images.is_empty()
    }

    /// Blocks that are to change.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.images.len()
    }

    /// The volume as the repair leaves it, to look at.
    #[must_use]
    pub fn repaired(&self) -> Arc<dyn BlockDevice> {
        self.scratch.device()
    }

    /// Whether the changes fit the journal of the volume, so that a cut leaves all of them or none.
    #[must_use]
    pub fn fits_journal(&self) -> bool {
        self.new_cycle.is_none() && commit::fits(&self.superblock, &self.images)
    }

    /// Changes the device: all that is to change, or nothing, wherever it is cut. What sectors held before is
    /// kept in the file `undo`, if that is given, for [`UndoFile::take_back`](crate::UndoFile::take_back). With it
    /// changes need not fit the journal: a repair that is cut can be taken back by it.
    ///
    /// # Errors
    /// The changes do not fit the journal, and there is no undo file; one of its name exists; the device is open
    /// for change, or failed.
    pub fn commit(&self, undo: Option<&Path>) -> Result<(), RepairError> {
        if self.images.is_empty() {
            return Ok(());
        }
        let fits = self.fits_journal();
        let below = self.scratch.below();
        let Some(undo) = undo else {
            if !fits {
                let bytes = images_size(&self.superblock, &self.images);
                return Err(RepairError::NeedsUndo { bytes });
            }
            return Ok(install(below, &self.superblock, &self.images)?);
        };
        let ranges = if fits {
            // What a trial in memory writes is what will be written.
            let trial = Arc::new(Overlay::new(Arc::clone(below)));
            let device: Arc<dyn BlockDevice> = Arc::clone(&trial) as Arc<dyn BlockDevice>;
            install(&device, &self.superblock, &self.images)?;
            trial.changed()
        } else {
            commit::ranges(&self.scratch.differences(&(0..0))?)
        };
        undo::keep(below, &ranges, undo)?;
        if fits {
            install(below, &self.superblock, &self.images)?;
        } else {
            self.write_to(below)?;
        }
        undo::finish(undo)
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
    let refills = Writer::new(subject, &chunks, &mut groups).write(&mut structure)?;
    for ag in groups {
        let files = structure.claims.groups[ag.0 as usize].clone();
        group::rebuild(subject, &chunks, ag, &files)?;
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
