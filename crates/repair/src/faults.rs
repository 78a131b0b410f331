//! The faults of a volume by their places: what a check found.

use std::collections::{BTreeMap, BTreeSet};

use bitflags::bitflags;
use undercroft_xfs::check::{CheckOptions, Finding, Location, Severity, check};
use undercroft_xfs::units::{AgNumber, InodeNumber};

use crate::error::RepairError;
use crate::scratch::Scratch;

/// Findings of a round; more are the work of the next.
const MOST_FINDINGS: u64 = 1 << 18;

/// Findings that are kept in words.
const MOST_TEXTS: usize = 10_000;

bitflags! {
    /// The parts of an inode that have faults.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(crate) struct Parts: u8 {
        /// Its core, or the map of a fork.
        const CORE = 1;
        /// What its data fork holds: the entries of a directory, the target of a link.
        const DATA = 2;
        /// What its attribute fork holds.
        const ATTRIBUTES = 4;
        /// Blocks of its map.
        const MAP = 8;
        /// Where its blocks are: what says whose they are says otherwise.
        const DOUBTED = 16;
    }
}

/// What a check found, by places.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// Those in words that came first.
    pub(crate) texts: Vec<String>,
    /// How many there are.
    pub(crate) count: u64,
    /// Groups of which something does not agree with something else.
    pub(crate) groups: BTreeSet<AgNumber>,
    /// Those of them whose inodes are not all known.
    pub(crate) inode_trees: BTreeSet<AgNumber>,
    pub(crate) inodes: BTreeMap<InodeNumber, Parts>,
    /// The superblock, a copy or a counter.
    pub(crate) superblock: bool,
    /// Groups whose copy of it is damaged.
    pub(crate) copies: BTreeSet<AgNumber>,
    /// The journal, or positions in it.
    pub(crate) journal: bool,
    /// Quota files.
    pub(crate) quota: bool,
}

impl Faults {
    pub(crate) fn find(scratch: &Scratch) -> Result<Self, RepairError> {
        let mut faults = Self::default();
        let options = CheckOptions { findings_max: MOST_FINDINGS, ..CheckOptions::default() };
        check(scratch.device(), &options, &mut |finding| faults.add(&finding))?;
        Ok(faults)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether there may be more faults than were told.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.count >= MOST_FINDINGS
    }

    /// Whether there is more than names that do not agree.
    pub(crate) fn has_structure(&self) -> bool {
        self.superblock
            || self.journal
            || self.quota
            || !(self.groups.is_empty() && self.inodes.is_empty() && self.copies.is_empty())
    }

    fn add(&mut self, finding: &Finding) {
        // Attributes that a crash left half-written are no contradiction, and xfs_repair takes them away.
        let is_half_attribute = finding.structure == "attributes";
        if finding.severity != Severity::Error && !is_half_attribute {
            return;
        }
        match (finding.location, finding.structure) {
            (Location::Group(ag), "superblock" | "secondary superblock") => {
                self.copies.insert(ag);
                self.superblock = true;
            }
            (_, "superblock" | "secondary superblock") => self.superblock = true,
            (_, "quota file") => self.quota = true,
            (Location::Volume, "log") => self.journal = true,
            (Location::Volume, _) => self.superblock = true,
            (Location::Group(ag) | Location::Block(ag, _), structure) => {
                self.groups.insert(ag);
                if matches!(structure, "AGI" | "inobt" | "finobt" | "inode chunk") {
                    self.inode_trees.insert(ag);
                }
            }
            // Names and links are mended all together.
            (Location::Inode(_), "names" | "parent pointers") => {}
            (Location::Inode(_), "inode") if finding.field == "nlink" => {}
            (Location::Inode(inode), structure) => {
                let parts = match structure {
                    "directory" | "symbolic link" => Parts::DATA,
                    "attributes" | "remote attribute value" => Parts::ATTRIBUTES,
                    "bmbt" | "data fork" | "attribute fork" => Parts::CORE | Parts::MAP,
                    _ => Parts::CORE,
                };
                *self.inodes.entry(inode).or_default() |= parts;
            }
            (Location::DataBlock(inode, _), _) => {
                *self.inodes.entry(inode).or_default() |= Parts::DATA;
            }
            (Location::AttributeBlock(inode, _), _) => {
                *self.inodes.entry(inode).or_default() |= Parts::ATTRIBUTES;
            }
            _ => {}
        }
        self.count += 1;
        if self.texts.len() < MOST_TEXTS {
            self.texts.push(finding.to_string());
        }
    }
}
