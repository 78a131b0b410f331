//! One thing that is wrong with a volume, as data.

use crate::units::{AgBlock, AgNumber, FileBlock, InodeNumber};
use std::fmt;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing, and no contradiction: what a crash leaves behind, a journal to be replayed. The
    /// volume is clean.
    Warning,
    /// The volume contradicts the format or itself.
    Error,
}

/// Where something is wrong. The order is that of a report: volume, groups, inodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Location {
    /// The volume as a whole: its superblock or its log.
    Volume,
    /// The headers of a group.
    Group(AgNumber),
    /// A block of a group.
    Block(AgNumber, AgBlock),
    /// An inode.
    Inode(InodeNumber),
    /// A block of the data fork of an inode.
    DataBlock(InodeNumber, FileBlock),
    /// A block of the attribute fork of an inode.
    AttributeBlock(InodeNumber, FileBlock),
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Volume => f.write_str("volume"),
            Self::Group(group) => write!(f, "allocation group {group}"),
            Self::Block(group, block) => write!(f, "allocation group {group}, block {block}"),
            Self::Inode(inode) => write!(f, "inode {inode}"),
            Self::DataBlock(inode, block) => write!(f, "inode {inode}, file block {block}"),
            Self::AttributeBlock(inode, block) => {
                write!(f, "inode {inode}, attribute block {block}")
            }
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// How much it matters.
    pub severity: Severity,
    /// Where it is.
    pub location: Location,
    /// Name of the structure, as in docs/format.
    pub structure: &'static str,
    /// Name of the field; empty if it is about the structure as a whole, or if the text names it.
    pub field: &'static str,
    /// The defect, in plain words.
    pub what: String,
}

impl Finding {
    /// An error in a structure.
    #[must_use]
    pub fn error(structure: &'static str, location: Location, what: impl Into<String>) -> Self {
        Self { severity: Severity::Error, location, structure, field: "", what: what.into() }
    }

    /// Something that is worth knowing, on a volume that is clean.
    #[must_use]
    pub fn warning(structure: &'static str, location: Location, what: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(structure, location, what) }
    }

    /// A field that should have another value.
    #[must_use]
    pub fn differs(
        structure: &'static str,
        location: Location,
        field: &'static str,
        found: impl fmt::Display,
        expected: impl fmt::Display,
    ) -> Self {
        let what = format!("is {found}, expected {expected}");
        Self { field, ..Self::error(structure, location, what) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.location, self.structure)?;
        if !self.field.is_empty() {
            write!(f, " {}", self.field)?;
        }
        write!(f, ": {}", self.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_names_place_structure_field_and_values() {
        let location = Location::Block(AgNumber(2), AgBlock(7));
        let finding = Finding::differs("bnobt", location, "level", 3, 0);
        let text = "allocation group 2, block 7: bnobt level: is 3, expected 0";
        assert_eq!(finding.to_string(), text);
        let warning = Finding::warning("inode", Location::Inode(InodeNumber(9)), "odd");
        assert_eq!(warning.to_string(), "inode 9: inode: odd");
        assert!(warning.severity < finding.severity);
    }

    #[test]
    fn places_sort_from_the_volume_to_inodes() {
        let group = Location::Group(AgNumber(9));
        assert!(Location::Volume < group && group < Location::Inode(InodeNumber(0)));
    }
}
