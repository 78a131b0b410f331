//! A repair from its beginning to its end: find, plan, write.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use rustc_hash::FxHashSet;
use undercroft_block::stack::Overlay;
use undercroft_block::{BlockDevice, Reserved, Sector, flush, write_all_at};
use undercroft_xfs::format::Superblock;
use undercroft_xfs::recovery::{BlockImage, install};
use undercroft_xfs::units::{AgNumber, InodeNumber};

use crate::action::{Action, Place};
use crate::apply::Writer;
use crate::chunks::Chunks;
use crate::claims::{Claims, Taken};
use crate::error::RepairError;
use crate::faults::{Faults, Parts};
use crate::inode::contents::Refill;
use crate::inode::map::Evidence;
use crate::inode::{Inode, Known};
use crate::lost::{self, Testimony};
use crate::names::{self, Work};
use crate::owners::Owners;
use crate::scratch::Scratch;
use crate::subject::Subject;
use crate::{apply, commit, group, inode, journal, positions, superblock, undo};

/// Rounds of a repair: each begins with the faults that the one before left.
const MOST_ROUNDS: usize = 8;

/// Rounds in which claims are compared until no two are left on one block.
const MOST_CONTESTS: usize = 16;

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
        self.new_cycle.is_none() && commit::fits(&self.superblock, &self.images).1
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
        let (bytes, _) = commit::fits(&self.superblock, &self.images);
        let fits = self.fits_journal();
        let below = self.scratch.below();
        let Some(undo) = undo else {
            if !fits {
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
    let rooted = apply::rooted(subject);
    names::mend(subject, &chunks, &Work { refills, rooted })?;
    subject.reload()
}

/// The inodes of a volume and what they claim.
#[derive(Default)]
pub(crate) struct Structure {
    pub(crate) claims: Claims,
    /// Inodes that change.
    pub(crate) inodes: BTreeMap<InodeNumber, Inode>,
    /// Groups whose trees follow what changes.
    pub(crate) groups: BTreeSet<AgNumber>,
    /// What is known of inodes that are gone.
    testimony: Testimony,
    /// Inodes that share blocks and do not say so.
    pub(crate) shared: FxHashSet<InodeNumber>,
}

impl Structure {
    /// Reads all inodes in use, and puts those with faults right.
    fn read(
        &mut self,
        subject: &mut Subject,
        faults: &Faults,
        owners: &mut Owners,
        chunks: &mut Chunks,
    ) -> Result<(), RepairError> {
        self.claims = Claims::new(subject.geometry.ag_count);
        let mut damaged: BTreeMap<InodeNumber, Parts> = BTreeMap::new();
        for number in chunks.numbers(&subject.geometry) {
            let parts = faults.inodes.get(&number).copied();
            let bytes = subject.read_inode(number)?;
            let sound = Inode::sound(subject, number, &bytes).filter(|_| parts.is_none());
            match sound {
                Some(inode) => {
                    let claims = inode.claims(subject);
                    let is_doubted = claims.iter().any(|(ag, record)| {
                        faults.groups.contains(ag) && owners.doubts(subject, *ag, record)
                    });
                    if is_doubted {
                        damaged.insert(number, Parts::CORE | Parts::DOUBTED);
                    } else {
                        claims.into_iter().for_each(|(ag, record)| self.claims.add(ag, record));
                    }
                }
                None => {
                    damaged.insert(number, parts.unwrap_or(Parts::CORE));
                }
            }
        }
        let lost = self.lost(subject, faults, chunks, &damaged)?;
        damaged.retain(|number, _| !lost.contains(number));
        // Inodes that are free by their chunk, and not by what they say.
        for number in faults.inodes.keys() {
            let is_free = chunks.exists(&subject.geometry, *number)
                && !chunks.in_use(&subject.geometry, *number);
            if is_free {
                apply::free_inode(subject, *number, chunks, &mut damaged, &mut self.groups)?;
            }
        }
        self.mend(subject, owners, chunks, &damaged, &Taken::new())?;
        self.remake(subject, owners, chunks, &lost)
    }

    /// Inodes in use of which nothing is left in their places; those that free ones became.
    fn lost(
        &mut self,
        subject: &mut Subject,
        faults: &Faults,
        chunks: &mut Chunks,
        damaged: &BTreeMap<InodeNumber, Parts>,
    ) -> Result<BTreeSet<InodeNumber>, RepairError> {
        let mut lost = BTreeSet::new();
        for number in damaged.keys() {
            let bytes = subject.read_inode(*number)?;
            let is_left = inode::core::is_left_of(&bytes, *number, &subject.geometry);
            if !is_left {
                lost.insert(*number);
            } else if apply::is_free(&bytes) {
                // It says itself that it is free.
                chunks.set(&subject.geometry, *number, false);
                self.groups.insert(subject.geometry.split_inode(*number).0);
                apply::write_free(subject, *number)?;
                let what = "it is free, and counts as in use: set right";
                subject.note(Place::Inode(*number), what);
            }
        }
        let root = subject.geometry.root_inode;
        let is_unknown = faults.inode_trees.iter().any(|ag| chunks.unreadable.contains(ag));
        if !lost.is_empty() || is_unknown || !chunks.in_use(&subject.geometry, root) {
            self.testimony = Testimony::gather(subject, chunks)?;
            let missing = self.testimony.missing(subject, chunks);
            // Where the tree of inodes is sound, others are free.
            let missing: Vec<_> = missing
                .into_iter()
                .filter(|number| {
                    let ag = subject.geometry.split_inode(*number).0;
                    chunks.unreadable.contains(&ag) || number.0 <= root.0 + 2
                })
                .collect();
            lost::add_chunks(subject, chunks, &missing);
            for number in &missing {
                let is_new = lost.insert(*number);
                if is_new {
                    chunks.set(&subject.geometry, *number, true);
                    self.groups.insert(subject.geometry.split_inode(*number).0);
                }
            }
            lost::clear(subject, chunks, &missing)?;
        }
        Ok(lost)
    }

    /// Makes lost inodes again, as far as something is known of them.
    fn remake(
        &mut self,
        subject: &mut Subject,
        owners: &mut Owners,
        chunks: &mut Chunks,
        lost: &BTreeSet<InodeNumber>,
    ) -> Result<(), RepairError> {
        for number in lost {
            match lost::remade(subject, &self.testimony, owners, *number)? {
                Some(mut inode) => {
                    self.claim(subject, &inode);
                    inode.refill.paths = self.testimony.paths(*number);
                    self.inodes.insert(*number, inode);
                }
                None => self.lose(subject, *number, chunks)?,
            }
        }
        Ok(())
    }

    fn claim(&mut self, subject: &Subject, inode: &Inode) {
        for (ag, record) in inode.claims(subject) {
            self.claims.add(ag, record);
        }
    }

    /// Puts inodes right. Those of which nothing is left are free from now on.
    fn mend(
        &mut self,
        subject: &mut Subject,
        owners: &mut Owners,
        chunks: &mut Chunks,
        damaged: &BTreeMap<InodeNumber, Parts>,
        taken: &Taken,
    ) -> Result<(), RepairError> {
        let wanted: BTreeSet<InodeNumber> = damaged.keys().copied().collect();
        let (maps, groups) = owners.maps(subject, &wanted);
        for (number, parts) in damaged {
            let bytes = subject.read_inode(*number)?;
            let evidence = |is_attr| {
                let extents = maps.get(&(*number, is_attr)).map_or(&[][..], |map| &map[..]);
                Some(Evidence { extents, groups: &groups }).filter(|_| !groups.is_empty())
            };
            let known = Known {
                parts: *parts,
                kind: None,
                data: evidence(false),
                attr: evidence(true),
                taken: taken.get(number).map_or(&[], |ranges| &ranges[..]),
            };
            if !chunks.in_use(&subject.geometry, *number) {
                continue;
            }
            let Some(inode) = Inode::mended(subject, *number, &bytes, known)? else {
                self.lose(subject, *number, chunks)?;
                continue;
            };
            self.claim(subject, &inode);
            self.inodes.insert(*number, inode);
        }
        Ok(())
    }

    fn lose(
        &mut self,
        subject: &mut Subject,
        number: InodeNumber,
        chunks: &mut Chunks,
    ) -> Result<(), RepairError> {
        let what = "nothing of the inode is left: it is free from now on";
        subject.note_loss(Place::Inode(number), what, "the inode");
        chunks.set(&subject.geometry, number, false);
        self.groups.insert(subject.geometry.split_inode(number).0);
        apply::write_free(subject, number)
    }

    /// Until no two claims on one block are left.
    fn contest(
        &mut self,
        subject: &mut Subject,
        faults: &Faults,
        owners: &mut Owners,
        chunks: &mut Chunks,
    ) -> Result<(), RepairError> {
        let mut all = Taken::new();
        for _ in 0..MOST_CONTESTS {
            let taken = self.claims.contested(subject, chunks, owners, &mut self.shared)?;
            if taken.is_empty() {
                return Ok(());
            }
            let mut damaged = BTreeMap::new();
            for (number, ranges) in taken {
                all.entry(number).or_default().extend(ranges);
                damaged.insert(number, faults.inodes.get(&number).copied().unwrap_or_default());
            }
            let numbers = damaged.keys().copied().collect();
            self.groups.append(&mut self.claims.remove(&numbers));
            self.mend(subject, owners, chunks, &damaged, &all)?;
        }
        Err(RepairError::NotSupported("claims on blocks contradict each other without end".into()))
    }
}
