//! Changing attributes.

use super::entry::{Attribute, EntryState};
use super::leaves::{find, insert, tree};
use super::remote;
use super::shape::{Shape, add, place_value, shape, shrink, store};
use crate::da::{DaForkMut, Path, identity};
use crate::error::Error;
use crate::format::{
    AttrLeafLayout, AttrShortform, AttrValue, BufferKind, ShortformEntry, da_block,
};
use crate::units::FileBlock;

/// The condition of a set: that the attribute exists, or that it does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetMode {
    /// It must be new.
    Create,
    /// It must exist.
    Replace,
    /// Either will do.
    Either,
}

/// Stores an attribute.
///
/// # Errors
///
/// A name or value that the format cannot hold, [`Error::Exists`] or [`Error::NoAttribute`] by
/// `mode`, no space, damage.
pub(crate) fn set<F: DaForkMut + ?Sized>(
    fork: &mut F,
    attribute: &Attribute<'_>,
    mode: SetMode,
) -> Result<(), Error> {
    attribute.verify()?;
    match shape(fork)? {
        Shape::Empty => {
            check_mode(attribute, mode, false)?;
            store(fork, &[*attribute])
        }
        Shape::Local => {
            let list = fork.local().unwrap_or_default().to_vec();
            let (found, mut all) = others(fork, &list, attribute)?;
            check_mode(attribute, mode, found)?;
            all.push(*attribute);
            store(fork, &all)
        }
        Shape::Blocks => {
            let found = find(fork, attribute, EntryState::Complete)?;
            check_mode(attribute, mode, found.is_some())?;
            match found {
                None => add(fork, attribute),
                Some((path, index)) => replace(fork, path, index, attribute),
            }
        }
    }
}

/// Removes an attribute and returns whether it was there. The value counts only for parent
/// pointers.
///
/// # Errors
///
/// Damage, a device error.
pub(crate) fn remove<F: DaForkMut + ?Sized>(
    fork: &mut F,
    attribute: &Attribute<'_>,
) -> Result<bool, Error> {
    match shape(fork)? {
        Shape::Empty => Ok(false),
        Shape::Local => {
            let list = fork.local().unwrap_or_default().to_vec();
            let (found, rest) = others(fork, &list, attribute)?;
            if found {
                store(fork, &rest)?;
            }
            Ok(found)
        }
        Shape::Blocks => remove_entry(fork, attribute, EntryState::Complete),
    }
}

/// Removes an attribute, or the incomplete entry that a removal has left which was cut off: the kernel
/// makes an entry of a tree incomplete first.
///
/// # Errors
///
/// As [`remove`].
pub(crate) fn finish_removal<F: DaForkMut + ?Sized>(
    fork: &mut F,
    attribute: &Attribute<'_>,
) -> Result<(), Error> {
    if !remove(fork, attribute)? && shape(fork)? == Shape::Blocks {
        remove_entry(fork, attribute, EntryState::Incomplete)?;
    }
    Ok(())
}

/// Removes the entry of this state that is `attribute`, in a fork with blocks, and returns whether it
/// was there.
fn remove_entry<F: DaForkMut + ?Sized>(
    fork: &mut F,
    attribute: &Attribute<'_>,
    state: EntryState,
) -> Result<bool, Error> {
    let Some((path, index)) = find(fork, attribute, state)? else { return Ok(false) };
    let tree = tree(fork.geometry());
    take_out(fork, &path, index)?;
    tree.fix_hashes(fork, &path);
    tree.join(fork, path)?;
    shrink(fork)?;
    Ok(true)
}

/// Stores several attributes: as a [`set`] of each, but an inode that has none, or few, gets its
/// form chosen and written once.
///
/// # Errors
///
/// As [`set`]; [`Error::Exists`] if an attribute is named twice.
pub(crate) fn set_all<F: DaForkMut + ?Sized>(
    fork: &mut F,
    attributes: &[Attribute<'_>],
) -> Result<(), Error> {
    verify_all(attributes)?;
    match shape(fork)? {
        Shape::Empty if attributes.is_empty() => Ok(()),
        Shape::Empty => store(fork, attributes),
        Shape::Local => {
            let list = fork.local().unwrap_or_default().to_vec();
            let mut all: Vec<_> = entries(fork, &list)?
                .filter(|old| !attributes.iter().any(|new| new.is_same(old)))
                .collect();
            all.extend(attributes);
            store(fork, &all)
        }
        Shape::Blocks => {
            attributes.iter().try_for_each(|attribute| set(fork, attribute, SetMode::Either))
        }
    }
}

/// Checks each attribute, and that none is named twice.
pub(crate) fn verify_all(attributes: &[Attribute<'_>]) -> Result<(), Error> {
    attributes.iter().try_for_each(Attribute::verify)?;
    let mut order: Vec<_> = attributes.iter().collect();
    order.sort_unstable_by_key(|a| (a.namespace, a.name, a.value));
    match order.windows(2).find(|pair| pair[0].is_same(pair[1])) {
        Some(pair) => Err(Error::Exists(format!("attribute {}", pair[0].display_name()))),
        None => Ok(()),
    }
}

/// Gives up all attributes of a fork with blocks: block 0 becomes a leaf without entries, so that
/// the others can be freed from the end on, in steps.
///
/// # Errors
///
/// Block 0 is a hole; a device error.
pub(crate) fn abandon<F: DaForkMut + ?Sized>(fork: &mut F) -> Result<(), Error> {
    let Some(buffer) = fork.read(FileBlock(0), BufferKind::DaAny)? else {
        return Err(fork.corrupt(FileBlock(0), "the root of the attributes is a hole".into()));
    };
    let (identity, crc) = (identity(fork, &buffer), fork.geometry().features.crc);
    let layout = AttrLeafLayout::new(fork.geometry());
    let mut guard = fork.edit(&buffer);
    guard.set_kind(BufferKind::AttrLeaf);
    let mut edit = guard.edit();
    edit.zero(0..edit.bytes().len());
    da_block::write_header(&mut edit, BufferKind::AttrLeaf, crc, &identity);
    layout.rebuild(&mut edit, []);
    Ok(())
}

/// The attributes of a short form list.
fn entries<'l, F: DaForkMut + ?Sized>(
    fork: &F,
    list: &'l [u8],
) -> Result<impl Iterator<Item = Attribute<'l>>, Error> {
    let list = AttrShortform::parse(list).map_err(|what| fork.corrupt(FileBlock(0), what))?;
    Ok(list.entries().map(|ShortformEntry { namespace, name, value }| Attribute {
        namespace,
        name,
        value,
    }))
}

/// Whether a short form list holds `attribute`, and its other attributes.
fn others<'l, F: DaForkMut + ?Sized>(
    fork: &F,
    list: &'l [u8],
    attribute: &Attribute<'_>,
) -> Result<(bool, Vec<Attribute<'l>>), Error> {
    let mut found = false;
    let others = entries(fork, list)?
        .filter(|old| {
            let same = attribute.is_same(old);
            found |= same;
            !same
        })
        .collect();
    Ok((found, others))
}

/// Puts the new value of an attribute in the place of entry `index` of the leaf of `path`.
fn replace<F: DaForkMut + ?Sized>(
    fork: &mut F,
    path: Path,
    index: usize,
    attribute: &Attribute<'_>,
) -> Result<(), Error> {
    // The new value goes to new blocks: until the transaction is on disk, the old one is in use.
    let value = place_value(fork, attribute)?;
    let item = attribute.item(fork.geometry(), value);
    take_out(fork, &path, index)?;
    // The keys above still lead here, and the hash is the same, so this is its leaf.
    insert(fork, path, item)?;
    shrink(fork)
}

/// Removes entry `index` of the leaf of `path`, and its value. Keys above stay as they are.
fn take_out<F: DaForkMut + ?Sized>(fork: &mut F, path: &Path, index: usize) -> Result<(), Error> {
    let layout = AttrLeafLayout::new(fork.geometry());
    let value = {
        let mut guard = fork.edit(path.leaf());
        let value = match layout.entry(&guard, index).value {
            AttrValue::Local(_) => None,
            AttrValue::Remote { block, len } => Some((block, len)),
        };
        layout.remove(&mut guard.edit(), index);
        value
    };
    value.map_or(Ok(()), |(block, len)| remote::free(fork, block, len))
}

fn check_mode(attribute: &Attribute<'_>, mode: SetMode, exists: bool) -> Result<(), Error> {
    match mode {
        SetMode::Create if exists => {
            Err(Error::Exists(format!("attribute {}", attribute.display_name())))
        }
        SetMode::Replace if !exists => {
            Err(Error::NoAttribute(format!("attribute {}", attribute.display_name())))
        }
        _ => Ok(()),
    }
}
