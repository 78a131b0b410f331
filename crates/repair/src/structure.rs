//! The inodes of a volume, and what they claim: read, and put right one by one until no two claim one block.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashSet;
use undercroft_xfs::units::{AgNumber, InodeNumber};

use crate::action::Place;
use crate::chunks::{Chunks, INODES};
use crate::claims::{Claims, Taken};
use crate::error::RepairError;
use crate::faults::{Faults, Parts};
use crate::free_inode;
use crate::inode::map::Evidence;
use crate::inode::{self, Inode, Known};
use crate::lost::{self, Testimony};
use crate::owners::Owners;
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
        self.claims = Claims::new(subject.geometry.ag_count);
        let mut damaged: BTreeMap<InodeNumber, Parts> = BTreeMap::new();
        let mut doubted = Vec::new();
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
                        doubted.push(inode);
                    } else {
                        claims.into_iter().for_each(|(ag, record)| self.claims.add(ag, record));
                    }
                }
                None => {
                    damaged.insert(number, parts.unwrap_or(Parts::CORE));
                }
            }
        }
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

    /// Maps that reverse mappings contradict: those count unless they are wrong themselves, as what they say
    /// instead is free, or another's, or nothing.
    fn doubt(
        &mut self,
        subject: &Subject,
        owners: &mut Owners,
        doubted: Vec<Inode>,
        damaged: &mut BTreeMap<InodeNumber, Parts>,
    ) {
        let wanted: BTreeSet<InodeNumber> = doubted.iter().map(|inode| inode.number).collect();
        let (maps, _) = owners.maps(subject, &wanted);
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
                    let end = start.0 + extent.len;
                    let claims = &self.claims.groups[ag.0 as usize];
                    owners.has_free(subject, ag, start, extent.len)
                        || claims.iter().any(|it| it.start.0 < end && it.start.0 + it.len > start.0)
                });
            if is_refuted {
                self.claim(subject, &inode);
            } else {
                damaged.insert(number, Parts::CORE | Parts::DOUBTED);
            }
        }
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

/// The inodes of chunks with faults.
fn near(faults: &Faults) -> BTreeSet<InodeNumber> {
    let inodes = u64::from(INODES);
    let first = faults.inodes.keys().map(|number| number.0 / inodes * inodes);
    first.flat_map(|first| (first..first + inodes).map(InodeNumber)).collect()
}
