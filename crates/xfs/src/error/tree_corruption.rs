//! The defect of a tree, and its place.

use crate::format::{FieldDefect, TreeKind};
use std::fmt;

/// A damaged block of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeCorruption {
    /// Which tree.
    pub tree: TreeKind,
    /// Its owner: allocation group, or inode of the fork.
    pub owner: u64,
    /// Block of the group or of the volume; `None` for the root inside an inode.
    pub block: Option<u64>,
    /// Level of the block as seen from the root, 0 is a leaf.
    pub level: usize,
    /// The field that is wrong.
    pub defect: FieldDefect,
}

impl fmt::Display for TreeCorruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let owner = if self.tree.long_pointers() { "inode" } else { "allocation group" };
        write!(f, "{} of {owner} {}: ", self.tree.name(), self.owner)?;
        match self.block {
            Some(block) => write!(f, "block {block}")?,
            None => f.write_str("root")?,
        }
        write!(f, ", level {}: {}; the volume needs repair", self.level, self.defect)
    }
}

impl std::error::Error for TreeCorruption {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Rule;

    #[test]
    fn the_message_names_tree_block_level_and_field() {
        let defect = FieldDefect { field: "numrecs", found: 600, rule: Rule::AtMost(505) };
        let mut corruption =
            TreeCorruption { tree: TreeKind::Bnobt, owner: 3, block: Some(17), level: 1, defect };
        assert_eq!(
            corruption.to_string(),
            "bnobt of allocation group 3: block 17, level 1: numrecs is 0x258, must be at most \
             0x1f9; the volume needs repair"
        );
        corruption.tree = TreeKind::Bmbt;
        corruption.block = None;
        assert!(corruption.to_string().starts_with("bmbt of inode 3: root, level 1: "));
    }
}
