//! The form of an attribute fork, and the ways between forms
//! (docs/algorithms/attributes.md#forms-and-changes).

use super::entry::Attribute;
use super::leaves::{AttrLeaves, insert, tree};
use super::remote;
use crate::da::{DaFork, DaForkMut, LeafKind};
use crate::error::Error;
use crate::format::{
    AttrLeafLayout, AttrValue, BufferKind, SHORTFORM_COUNT_MAX, SHORTFORM_HEADER, ShortformBuilder,
    ShortformEntry, shortform_entry_size,
};
use crate::units::FileBlock;

/// How an attribute fork is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// No attributes, no blocks.
    Empty,
    /// A list in the inode.
    Local,
    /// A tree of one leaf or more.
    Blocks,
}

/// The present form of the fork.
pub(super) fn shape<F: DaFork + ?Sized>(fork: &mut F) -> Result<Shape, Error> {
    if fork.local().is_some() {
        return Ok(Shape::Local);
    }
    Ok(if fork.end()? == FileBlock(0) { Shape::Empty } else { Shape::Blocks })
}

/// Bytes of a list of these attributes; `None` if one of them, or their number, is too large.
pub(crate) fn local_size<'a>(attributes: impl IntoIterator<Item = Attribute<'a>>) -> Option<usize> {
    let (mut size, mut count) = (SHORTFORM_HEADER, 0);
    for attribute in attributes {
        size += shortform_entry_size(attribute.name.len(), attribute.value.len())?;
        count += 1;
    }
    (count <= SHORTFORM_COUNT_MAX).then_some(size)
}

/// Makes the fork hold exactly these attributes, in the inode if there is room, else in blocks.
/// The fork is local or empty; the attributes are verified and none of them is there twice.
pub(super) fn store<F: DaForkMut + ?Sized>(
    fork: &mut F,
    attributes: &[Attribute<'_>],
) -> Result<(), Error> {
    if attributes.is_empty() {
        return store_nothing(fork);
    }
    if let Some(size) = local_size(attributes.iter().copied())
        && fork.make_room(size)?
    {
        return fork.set_local(Some(build(size, attributes.iter().copied())));
    }
    fork.set_local(None)?;
    let tree = tree(fork.geometry());
    let leaves = AttrLeaves { layout: AttrLeafLayout::new(fork.geometry()) };
    let (block, buffer) = tree.new_block(fork, BufferKind::AttrLeaf)?;
    if block != FileBlock(0) {
        return Err(fork.corrupt(block, "an attribute fork without attributes has blocks".into()));
    }
    leaves.init(&mut fork.edit(&buffer).edit());
    for attribute in attributes {
        add(fork, attribute)?;
    }
    Ok(())
}

/// Adds an attribute that is not there to a fork with blocks.
pub(super) fn add<F: DaForkMut + ?Sized>(
    fork: &mut F,
    attribute: &Attribute<'_>,
) -> Result<(), Error> {
    let value = place_value(fork, attribute)?;
    let item = attribute.item(fork.geometry(), value);
    let path = tree(fork.geometry()).descend(fork, item.hash())?;
    insert(fork, path, item)
}

/// Stores a value that does not lie beside its name, and says where the value is.
pub(super) fn place_value<'a, F: DaForkMut + ?Sized>(
    fork: &mut F,
    attribute: &Attribute<'a>,
) -> Result<AttrValue<'a>, Error> {
    if attribute.is_local(AttrLeafLayout::new(fork.geometry())) {
        return Ok(AttrValue::Local(attribute.value));
    }
    let block = remote::write(fork, attribute.value)?;
    // Verified: at most 64 KiB.
    Ok(AttrValue::Remote { block, len: attribute.value.len() as u32 })
}

/// After a removal: takes the last leaf's attributes back into the inode if they fit, or gives up
/// the fork if there are none.
pub(super) fn shrink<F: DaForkMut + ?Sized>(fork: &mut F) -> Result<(), Error> {
    // Any other block is a node's child, or holds a value.
    if fork.end()? != FileBlock(1) {
        return Ok(());
    }
    let Some(buffer) = fork.read(FileBlock(0), BufferKind::DaAny)? else {
        return Err(fork.corrupt(FileBlock(0), "the root of the attributes is a hole".into()));
    };
    let layout = AttrLeafLayout::new(fork.geometry());
    let leaf = buffer.read();
    if leaf.kind() != BufferKind::AttrLeaf {
        return Ok(());
    }
    // An entry loses at most the rounding of its item on the way to the list.
    let least = layout.used(&leaf).saturating_sub(3 * layout.count(&leaf));
    if least > fork.geometry().literal_size() {
        return Ok(());
    }
    let mut attributes = Vec::with_capacity(layout.count(&leaf));
    for entry in layout.entries(&leaf).filter(|entry| !entry.incomplete()) {
        let AttrValue::Local(value) = entry.value else { return Ok(()) };
        attributes.push(Attribute { namespace: entry.namespace(), name: entry.name, value });
    }
    if attributes.is_empty() {
        drop(leaf);
        fork.unmap(FileBlock(0), 1)?;
        return store_nothing(fork);
    }
    let Some(size) = local_size(attributes.iter().copied()) else { return Ok(()) };
    if !fork.make_room(size)? {
        return Ok(());
    }
    let list = build(size, attributes);
    drop(leaf);
    fork.unmap(FileBlock(0), 1)?;
    fork.set_local(Some(list))
}

/// Makes a fork without blocks hold no attributes: a list of none where the fork must stay for
/// parent pointers, else an empty fork, which the inode may drop.
fn store_nothing<F: DaForkMut + ?Sized>(fork: &mut F) -> Result<(), Error> {
    let keep = fork.geometry().features.parent_pointers();
    fork.set_local(keep.then(|| ShortformBuilder::with_capacity(0).finish()))
}

fn build<'a>(size: usize, attributes: impl IntoIterator<Item = Attribute<'a>>) -> Vec<u8> {
    let mut list = ShortformBuilder::with_capacity(size);
    for Attribute { namespace, name, value } in attributes {
        list.push(&ShortformEntry { namespace, name, value });
    }
    list.finish()
}
