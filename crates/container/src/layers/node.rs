//! The tree of devices in a disk.

use super::choice::Choice;
use std::fmt;
use std::sync::Arc;
use undercroft_block::BlockDevice;
use undercroft_block::partition::{Partition, Scheme};
use undercroft_source::{Foreign, ForeignKind};

/// The tree of devices in a disk.
#[derive(Debug, Default)]
pub struct Layers {
    pub(super) nodes: Vec<Node>,
    pub(super) notes: Vec<String>,
}

/// A device in a disk.
#[derive(Debug)]
pub struct Node {
    /// The number of the device that it is in, or of the first of several.
    pub parent: Option<usize>,
    /// What it is there.
    pub place: Place,
    /// Its length in bytes.
    pub bytes: u64,
    /// The device, or why there is none.
    pub device: Result<Arc<dyn BlockDevice>, String>,
    /// What begins on it, if that is known.
    pub contents: Option<Foreign>,
    /// How its partition table is written, if it has one.
    pub table: Option<Scheme>,
    /// Why nothing is made of what is on it.
    pub fault: Option<String>,
    /// Whether a key is what is missing.
    pub is_locked: bool,
}

/// What a device is in another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// All of it: what was opened.
    Whole,
    /// A partition.
    Partition(Partition),
    /// A logical volume of LVM.
    Logical {
        /// Its group.
        group: String,
        /// Its name in the group.
        name: String,
        /// Its identifier.
        id: String,
    },
    /// What is in a container of LUKS.
    Decrypted,
    /// An array of a Linux RAID.
    Array {
        /// Its name; empty if it has none.
        name: String,
        /// Its level, in words.
        level: String,
    },
}

impl Layers {
    /// The devices, each behind the one that it is in; what was opened comes first.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// What is odd, but keeps nothing from being read.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Whether something was not looked into for want of a key.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.nodes.iter().any(|node| node.is_locked)
    }

    /// From what was opened to a device, itself included.
    #[must_use]
    pub fn way(&self, node: usize) -> Vec<&Node> {
        let mut way: Vec<_> =
            std::iter::successors(self.nodes.get(node), |node| self.nodes.get(node.parent?))
                .collect();
        way.reverse();
        way
    }

    /// Whether something is made of what is on a device.
    pub(super) fn has_inside(&self, node: usize) -> bool {
        self.nodes.iter().any(|other| other.parent == Some(node))
    }
}

impl Node {
    /// Whether it begins as a volume of XFS does.
    #[must_use]
    pub fn is_volume(&self) -> bool {
        self.contents.as_ref().is_some_and(|found| found.kind == ForeignKind::Volume)
    }

    /// The options that name its place, without those of the devices that it is in.
    pub(super) fn is_named_by(&self, choice: &Choice) -> (bool, bool) {
        let label = self.contents.as_ref().and_then(|found| found.label.as_deref());
        let partition = match (&choice.partition, &self.place) {
            (Some(choice), Place::Partition(partition)) => choice.names(partition, label),
            _ => false,
        };
        let logical = match (&choice.logical, &self.place) {
            (Some(choice), Place::Logical { group, name, .. }) => {
                choice.split_once('/').is_some_and(|(of, is)| of == group && is == name)
            }
            _ => false,
        };
        (partition, logical)
    }
}

/// As it is named in messages, with the option that chooses it.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => f.write_str("the disk"),
            Self::Partition(partition) => match partition.name.as_str() {
                "" => write!(f, "partition {}", partition.number),
                name => write!(f, "partition {} \"{}\"", partition.number, name.escape_debug()),
            },
            Self::Logical { group, name, .. } => {
                write!(f, "logical volume {}/{}", group.escape_debug(), name.escape_debug())
            }
            Self::Decrypted => f.write_str("the LUKS container"),
            Self::Array { name, level } if name.is_empty() => write!(f, "an array ({level})"),
            Self::Array { name, level } => write!(f, "array {} ({level})", name.escape_debug()),
        }
    }
}
