//! Reading attributes.

use super::entry::{Attribute, EntryState};
use super::leaves::{find, tree};
use super::remote;
use super::shape::{Shape, shape};
use crate::da::DaFork;
use crate::error::Error;
use crate::format::{AttrLeafLayout, AttrShortform, AttrValue, Namespace};
use crate::units::FileBlock;

/// Value of the attribute of this name; `None` if there is none.
///
/// # Errors
///
/// Damage, or a device error. [`Namespace::Parent`] has no names of its own: see
/// [`parent`](super::parent).
pub(crate) fn get<F: DaFork + ?Sized>(
    fork: &mut F,
    namespace: Namespace,
    name: &[u8],
) -> Result<Option<Vec<u8>>, Error> {
    let wanted = Attribute { namespace, name, value: &[] };
    match shape(fork)? {
        Shape::Empty => Ok(None),
        Shape::Local => Ok(list(fork)?
            .entries()
            .find(|entry| wanted.is(entry.namespace, entry.name, entry.value))
            .map(|entry| entry.value.to_vec())),
        Shape::Blocks => {
            let Some((path, index)) = find(fork, &wanted, EntryState::Complete)? else {
                return Ok(None);
            };
            let layout = AttrLeafLayout::new(fork.geometry());
            let leaf = path.leaf().read();
            match layout.entry(&leaf, index).value {
                AttrValue::Local(value) => Ok(Some(value.to_vec())),
                AttrValue::Remote { block, len } => {
                    drop(leaf);
                    remote::read(fork, block, len).map(Some)
                }
            }
        }
    }
}

/// Calls `visit` with every attribute, parent pointers included, in no order that means anything.
///
/// # Errors
///
/// Damage, a device error, or the first error of `visit`.
pub(crate) fn for_each<F: DaFork + ?Sized>(
    fork: &mut F,
    visit: &mut dyn FnMut(&Attribute<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    match shape(fork)? {
        Shape::Empty => return Ok(()),
        Shape::Local => {
            return list(fork)?.entries().try_for_each(|entry| {
                let (namespace, name, value) = (entry.namespace, entry.name, entry.value);
                visit(&Attribute { namespace, name, value })
            });
        }
        Shape::Blocks => {}
    }
    let (tree, layout) = (tree(fork.geometry()), AttrLeafLayout::new(fork.geometry()));
    let mut path = tree.descend(fork, 0)?;
    loop {
        // Values elsewhere are read once the leaf is closed.
        let mut elsewhere = Vec::new();
        {
            let leaf = path.leaf().read();
            for entry in layout.entries(&leaf).filter(|entry| !entry.incomplete()) {
                let (namespace, name) = (entry.namespace(), entry.name);
                match entry.value {
                    AttrValue::Remote { block, len } => {
                        elsewhere.push((namespace, name.to_vec(), block, len));
                    }
                    AttrValue::Local(value) => visit(&Attribute { namespace, name, value })?,
                }
            }
        }
        for (namespace, name, block, len) in elsewhere {
            let value = remote::read(fork, block, len)?;
            visit(&Attribute { namespace, name: &name, value: &value })?;
        }
        if !tree.next_leaf(fork, &mut path)? {
            return Ok(());
        }
    }
}

/// The verified short form list of a local fork.
pub(super) fn list<F: DaFork + ?Sized>(fork: &F) -> Result<AttrShortform<'_>, Error> {
    let Some(bytes) = fork.local() else { return Ok(AttrShortform::EMPTY) };
    AttrShortform::parse(bytes).map_err(|what| fork.corrupt(FileBlock(0), what))
}
