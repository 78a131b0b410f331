//! Layers stacked on one another: what overlayfs shows over them.

use super::error::{ImageProblem, Role};
use super::layer::Layer;
use crate::EntryPath;
use crate::sorted::{Body, Child, Node, NodeId, ROOT, Tree};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// There are more nodes than numbers for them.
const FULL: ImageProblem = ImageProblem::Entries(NodeId::MAX);

/// Nodes below that names of a layer link to, by the directory of the layer and the name in it.
type LinksBelow = FxHashMap<(NodeId, Box<[u8]>), NodeId>;

type Result<T> = std::result::Result<T, ImageProblem>;

/// Puts a layer on the layers below it.
pub(super) fn put_on(below: &mut Tree, layer: Layer, role: Role) -> Result<()> {
    let links = resolve(below, &layer, role)?;
    let upper = layer.tree.into_nodes().into_iter().map(Slot::Here).collect();
    // Directories that are in both, as pairs; an explicit list, for trees may be deep.
    let mut stacking = Stacking { below, upper, links, pairs: vec![(ROOT, ROOT)] };
    while let Some((lower, above)) = stacking.pairs.pop() {
        stacking.merge(lower, above)?;
    }
    Ok(())
}

/// A node of the layer on its way.
enum Slot {
    Here(Node),
    /// Its number below: further names may follow.
    Moved(NodeId),
}

struct Stacking<'a> {
    below: &'a mut Tree,
    upper: Vec<Slot>,
    links: LinksBelow,
    /// Directories below and of the layer that are still to be merged.
    pairs: Vec<(NodeId, NodeId)>,
}

impl Stacking<'_> {
    /// Puts the directory `above` of the layer on the directory `lower`.
    fn merge(&mut self, lower: NodeId, above: NodeId) -> Result<()> {
        // A directory has one name, so it comes once.
        let slot = std::mem::replace(&mut self.upper[above as usize], Slot::Moved(lower));
        let Slot::Here(Node { metadata, xattrs, body: Body::Directory(directory) }) = slot else {
            return Ok(());
        };
        let node = self.below.node_mut(lower);
        if !directory.is_implicit {
            node.metadata = metadata;
            node.xattrs = xattrs;
        }
        if let Body::Directory(lower) = &mut node.body {
            lower.is_implicit &= directory.is_implicit;
            if directory.is_opaque {
                lower.children.clear();
            }
        }
        for (name, child) in directory.children {
            match child {
                Child::Whiteout => {
                    self.children(lower).remove(&name);
                }
                Child::Below(_) => {
                    let key = (above, name);
                    if let Some(id) = self.links.get(&key).copied() {
                        self.children(lower).insert(key.1, Child::Node(id));
                    }
                }
                Child::Node(id) => self.name(lower, name, id)?,
            }
        }
        Ok(())
    }

    /// Gives a node of the layer its name below.
    fn name(&mut self, lower: NodeId, name: Box<[u8]>, id: NodeId) -> Result<()> {
        let target = match &self.upper[id as usize] {
            Slot::Moved(target) => *target,
            Slot::Here(Node { metadata, xattrs, body: Body::Directory(_) }) => {
                let there = match self.below.child(lower, &name) {
                    Some(Child::Node(there)) => self.below.directory(*there).map(|_| *there),
                    _ => None,
                };
                let target = match there {
                    Some(there) => there,
                    // Its attributes count although it may have no entry: there are none below.
                    None => {
                        let body = Node::empty_directory(false).body;
                        let (metadata, xattrs) = (*metadata, xattrs.clone());
                        self.add(Node { metadata, xattrs, body })?
                    }
                };
                self.pairs.push((target, id));
                target
            }
            Slot::Here(_) => {
                let target = self.below.next_id().ok_or(FULL)?;
                let slot = std::mem::replace(&mut self.upper[id as usize], Slot::Moved(target));
                match slot {
                    Slot::Here(node) => self.add(node)?,
                    Slot::Moved(target) => target,
                }
            }
        };
        self.children(lower).insert(name, Child::Node(target));
        Ok(())
    }

    fn add(&mut self, node: Node) -> Result<NodeId> {
        self.below.add(node).ok_or(FULL)
    }

    fn children(&mut self, id: NodeId) -> &mut BTreeMap<Box<[u8]>, Child> {
        let directory = self.below.directory_mut(id);
        &mut directory.expect("pairs are of directories, and nodes keep their kinds").children
    }
}

/// Finds the files below that the layer has links to, as the layer's marks leave them.
fn resolve(below: &Tree, layer: &Layer, role: Role) -> Result<LinksBelow> {
    let mut links = LinksBelow::default();
    for (directory, name) in &layer.below {
        // Later entries may have taken the name.
        let Some(Child::Below(target)) = layer.tree.child(*directory, name) else { continue };
        let id = find(below, &layer.tree, target).map_err(|reason| ImageProblem::Link {
            role,
            path: name.to_vec(),
            target: target.as_bytes().to_vec(),
            reason,
        })?;
        links.insert((*directory, name.clone()), id);
    }
    Ok(links)
}

/// The file of a path below that the layer does not hide by marks. What the layer replaces counts
/// as it was: the link came first, or it would be one to the layer's own file.
fn find(below: &Tree, layer: &Tree, path: &EntryPath) -> std::result::Result<NodeId, &'static str> {
    const MISSING: &str = "neither the layer has before it, nor any layer below";
    const HIDDEN: &str = "the layer hides";
    let (mut at, mut above) = (ROOT, Some(ROOT));
    for name in path.components() {
        let mark = above.and_then(|above| layer.directory(above));
        let is_hidden = mark.is_some_and(|directory| directory.is_opaque)
            || mark.is_some_and(|directory| directory.children.get(name) == Some(&Child::Whiteout));
        let next = match below.child(at, name) {
            Some(Child::Node(next)) => *next,
            _ => return Err(MISSING),
        };
        if is_hidden {
            return Err(HIDDEN);
        }
        above = match mark.and_then(|directory| directory.children.get(name)) {
            Some(Child::Node(id)) => Some(*id),
            _ => None,
        };
        at = next;
    }
    if below.directory(at).is_some() { Err("is a directory") } else { Ok(at) }
}
