//! The fields of a block of a tree about itself, checked on every read and write.

use crate::{FieldDefect, HeaderLayout, MAX_TREE_HEIGHT, Rule, TreeKind, block_capacity};

/// Checks what a block of `tree` says about itself: magic number, level and number of entries.
/// Checksum, address and volume are the same for all metadata and are not looked at here.
///
/// # Errors
/// The field that is wrong.
pub fn verify_tree_block(
    tree: TreeKind,
    layout: HeaderLayout,
    bytes: &[u8],
) -> Result<(), FieldDefect> {
    let (len, header) = (bytes.len() as u64, layout.header_len() as u64);
    FieldDefect::unless(len >= header, "block size", len, Rule::AtLeast(header))?;
    let Some(expected) = layout.magic_of(tree) else {
        return FieldDefect::unless(false, "tree", 0_u64, Rule::Text("absent on v4 volumes"));
    };
    let magic = HeaderLayout::magic(bytes);
    FieldDefect::unless(magic == expected, "magic", magic, Rule::Equal(expected.into()))?;
    let (level, highest) = (HeaderLayout::level(bytes), u16::from(MAX_TREE_HEIGHT) - 1);
    FieldDefect::unless(level <= highest, "level", level, Rule::AtMost(highest.into()))?;
    let (leaf_max, node_max) = block_capacity(tree, layout, bytes.len());
    let max = if level == 0 { leaf_max } else { node_max } as u64;
    let count = HeaderLayout::numrecs(bytes);
    FieldDefect::unless(u64::from(count) <= max, "numrecs", count, Rule::AtMost(max))?;
    // A tree without records is one empty leaf.
    let may_be_empty = level == 0 && layout.is_alone(bytes);
    FieldDefect::unless(count > 0 || may_be_empty, "numrecs", count, Rule::AtLeast(1))
}
