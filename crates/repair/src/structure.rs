//! The inodes of a volume, and what they claim: read, and put right one by one until no two claim one block.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashSet;
use undercroft_xfs::units::{AgNumber, InodeNumber};

use crate::action::Place;
use crate::blocks::Blocks;
use crate::chunks::{Chunks, INODES};
use crate::claims::{self, Claims, Taken};
use crate::error::RepairError;
use crate::faults::{Faults, Parts};
use crate::free::Free;
use crate::free_inode;
use crate::inode::map::Evidence;
use crate::inode::sound::Sound;
use crate::inode::{self, Inode, Known};
use crate::lost::{self, Testimony};
use crate::owners::Owners;
use crate::pass::{self, Found};
use crate::subject::Subject;

/// Rounds in which claims are compared until no two are left on one block.
const MOST_CONTESTS: usize = 16;

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
    pub(crate) fn read(
        &mut self,
        subject: &mut Subject,
        faults: &Faults,
        owners: &mut Owners,
        chunks: &mut Chunks,
    ) -> Result<(), RepairError> {
        // The groups that will be made anew, as far as that is known now.
        let mut wanted = faults.groups.clone();
        wanted.extend(faults.inodes.keys().map(|number| subject.geometry.split_inode(*number).0));
        let (volume, known) = (&*subject, &*owners);
        let parts = pass::over(
            volume,
            chunks,
            || Part::new(&wanted),
            |part, found| {
                if found.in_use {
                    part.inode(volume, faults, known, found);
                }
                Ok(())
            },
        )?;
        self.claims = Claims::on(&wanted);
        let mut damaged: BTreeMap<InodeNumber, Parts> = BTreeMap::new();
        let mut doubted = Vec::new();
        for mut part in parts {
            self.claims.append(part.claims);
            damaged.append(&mut part.damaged);
            doubted.append(&mut part.doubted);
        }
        doubted.sort_unstable_by_key(|sound| sound.number);
        self.doubt(subject, owners, doubted, &mut damaged);
        let lost = self.lost(subject, faults, chunks, &damaged)?;
        damaged.retain(|number, _| !lost.contains(number));
        // Inodes that are free by their chunk, and not by what they say.
        for number in faults.inodes.keys() {
            let is_free = chunks.exists(&subject.geometry, *number)
                && !chunks.in_use(&subject.geometry, *number);
            if is_free {
                free_inode::settle(subject, *number, chunks, &mut damaged, &mut self.groups)?;
            }
        }
        for number in near(faults) {
            let geometry = &subject.geometry;
            if chunks.exists(geometry, number) && !chunks.in_use(geometry, number) {
                free_inode::tidy(subject, number)?;
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
            } else if free_inode::is_free(&bytes) {
                // It says itself that it is free.
                chunks.set(&subject.geometry, *number, false);
                self.groups.insert(subject.geometry.split_inode(*number).0);
                free_inode::write_free(subject, *number)?;
                let what = "it is free, and counts as in use: set right";
                subject.note(Place::Inode(*number), what);
            }
        }
        let root = subject.geometry.root_inode;
        let is_unknown = faults.inode_trees.iter().any(|ag| chunks.unreadable.contains(ag));
        if !lost.is_empty() || is_unknown || !chunks.in_use(&subject.geometry, root) {
            self.testimony = Testimony::gather(subject, chunks, faults, &lost)?;
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

    /// Keeps the claims on more groups.
    pub(crate) fn collect(
        &mut self,
        subject: &Subject,
        chunks: &Chunks,
        groups: &BTreeSet<AgNumber>,
    ) -> Result<(), RepairError> {
        if !groups.is_empty() {
            self.claims.append(Claims::collect(subject, chunks, groups, &self.inodes)?);
        }
        Ok(())
    }

    /// Keeps the claims on all groups if new maps need blocks that are not free in those kept so far.
    pub(crate) fn make_room(
        &mut self,
        subject: &Subject,
        chunks: &Chunks,
    ) -> Result<(), RepairError> {
        let geometry = &subject.geometry;
        let needed: usize = self.inodes.values().map(|inode| inode.tree_blocks(geometry)).sum();
        if needed == 0 {
            return Ok(());
        }
        let free = |ag| {
            let mut all = claims::fixed(subject, chunks, ag);
            all.extend(self.claims.of(ag));
            Free::of(geometry.ag_length(ag), &all).blocks()
        };
        if self.claims.groups().map(free).sum::<u64>() < 2 * needed as u64 {
            let all = (0..geometry.ag_count).map(AgNumber);
            let missing = all.filter(|ag| !self.claims.has(*ag)).collect();
            self.collect(subject, chunks, &missing)?;
        }
        Ok(())
    }

    /// Makes lost inodes again, as far as something is known of them.
    fn remake(
        &mut self,
        subject: &mut Subject,
        owners: &mut Owners,
        chunks: &mut Chunks,
        lost: &BTreeSet<InodeNumber>,
    ) -> Result<(), RepairError> {
        let (maps, _) = owners.maps(subject, lost);
        for number in lost {
            match lost::remade(subject, &self.testimony, &maps, *number)? {
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

    /// Maps that reverse mappings contradict: those count unless they are wrong themselves, as what they say
    /// instead is free, or another's, or nothing.
    fn doubt(
        &mut self,
        subject: &Subject,
        owners: &mut Owners,
        doubted: Vec<Sound>,
        damaged: &mut BTreeMap<InodeNumber, Parts>,
    ) {
        if doubted.is_empty() {
            return;
        }
        let wanted: BTreeSet<InodeNumber> = doubted.iter().map(|inode| inode.number).collect();
        let (maps, _) = owners.maps(subject, &wanted);
        let claimed = Blocks::new(&subject.geometry);
        for ag in self.claims.groups() {
            for claim in self.claims.of(ag) {
                claimed.add(subject.geometry.fs_block(ag, claim.start), claim.len);
            }
        }
        for inode in doubted {
            let number = inode.number;
            let own: Vec<_> = inode.data.extents.iter().chain(&inode.attr.extents).collect();
            let told = [false, true].map(|is_attr| maps.get(&(number, is_attr)));
            let others = told.into_iter().flatten().flatten().filter(|extent| {
                !own.iter().any(|own| {
                    own.start <= extent.start
                        && extent.start.0 + u64::from(extent.len)
                            <= own.start.0 + u64::from(own.len)
                })
            });
            let mut others = others.peekable();
            let is_empty = others.peek().is_none();
            let is_refuted = is_empty
                || others.any(|extent| {
                    let (ag, start) = subject.geometry.split_block(extent.start);
                    owners.remember(subject, ag);
                    owners.has_free(ag, start, extent.len)
                        || claimed.has(subject.geometry.fs_block(ag, start), extent.len)
                });
            if is_refuted {
                inode.claims(subject, &mut |ag, record| {
                    claimed.add(subject.geometry.fs_block(ag, record.start), record.len);
                    self.claims.add(ag, &record);
                });
            } else {
                damaged.insert(number, Parts::CORE | Parts::DOUBTED);
            }
        }
    }

    fn claim(&mut self, subject: &Subject, inode: &Inode) {
        inode.claims(subject, &mut |ag, record| self.claims.add(ag, &record));
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
        free_inode::write_free(subject, number)
    }

    /// Keeps the claims on all groups in which inodes that change have blocks.
    fn meet(&mut self, subject: &Subject, chunks: &Chunks) -> Result<(), RepairError> {
        let mut groups = BTreeSet::new();
        for inode in self.inodes.values() {
            inode.claims(subject, &mut |ag, _| {
                groups.insert(ag);
            });
        }
        groups.retain(|ag| !self.claims.has(*ag));
        self.collect(subject, chunks, &groups)
    }

    /// Until no two claims on one block are left.
    pub(crate) fn contest(
        &mut self,
        subject: &mut Subject,
        faults: &Faults,
        owners: &mut Owners,
        chunks: &mut Chunks,
    ) -> Result<(), RepairError> {
        let mut all = Taken::new();
        for _ in 0..MOST_CONTESTS {
            self.meet(subject, chunks)?;
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

/// What one thread found.
struct Part {
    claims: Claims,
    damaged: BTreeMap<InodeNumber, Parts>,
    doubted: Vec<Sound>,
}

impl Part {
    fn new(wanted: &BTreeSet<AgNumber>) -> Self {
        Self { claims: Claims::on(wanted), damaged: BTreeMap::new(), doubted: Vec::new() }
    }

    /// An inode in use: what it claims, or that it is damaged or doubted.
    fn inode(&mut self, subject: &Subject, faults: &Faults, owners: &Owners, found: &Found<'_>) {
        let parts = faults.inodes.get(&found.number).copied();
        let sound = Sound::read(subject, found.number, found.bytes).filter(|_| parts.is_none());
        let Some(sound) = sound else {
            self.damaged.insert(found.number, parts.unwrap_or(Parts::CORE));
            return;
        };
        let mut is_doubted = false;
        sound.claims(subject, &mut |ag, record| {
            is_doubted |= faults.groups.contains(&ag) && owners.doubts(ag, &record);
        });
        if is_doubted {
            self.doubted.push(sound);
        } else {
            sound.claims(subject, &mut |ag, record| self.claims.add(ag, &record));
        }
    }
}

/// The inodes of chunks with faults.
fn near(faults: &Faults) -> BTreeSet<InodeNumber> {
    let inodes = u64::from(INODES);
    let first = faults.inodes.keys().map(|number| number.0 / inodes * inodes);
    first.flat_map(|first| (first..first + inodes).map(InodeNumber)).collect()
}
