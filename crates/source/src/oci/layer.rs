//! A layer as a tree: what unpacking it by itself would make, with its marks.
//!
//! - `.wh.NAME` hides NAME in the layers below, and `.wh..wh..opq` all of its directory, wherever they
//!   stand; so does a character device 0:0, as in the upper directory of an overlay, and the
//!   attribute `trusted.overlay.opaque`. Below a file of the layer itself a mark hides nothing.
//! - Other `trusted.overlay.` attributes are dropped, since overlayfs shows none; those by which it
//!   finds contents elsewhere are refused.
//! - Other names with `.wh..wh.` are those of aufs. They are left out; what lies below them are files
//!   that other names of the layer link to.
//! - In an eStargz layer the table of contents and the landmarks are no part of the tree.

use super::error::{ImageProblem, Role};
use crate::entry::{Device, Entry, Kind, Xattr};
use crate::region::Region;
use crate::sorted::{Body, Child, Directory, Node, NodeId, ROOT, Tree};
use crate::tar::{Content, Member, TarReader, WHITEOUT};
use crate::{EntryPath, Options, SourceError, Warnings};
use std::collections::btree_map;

/// The name that makes its directory opaque.
const OPAQUE: &[u8] = b".wh..wh..opq";
/// What names begin with that aufs keeps for itself.
const AUFS: &[u8] = b".wh..wh.";
/// Attributes of overlayfs.
const OVERLAY: &[u8] = b"trusted.overlay.";
/// Those that say where contents are.
const ELSEWHERE: [&[u8]; 2] = [b"redirect", b"metacopy"];
/// Entries of eStargz at the root that are no part of the tree.
const STARGZ: [&[u8]; 3] = [b"stargz.index.json", b".prefetch.landmark", b".no.prefetch.landmark"];

/// Whether a path ends in the name of a mark.
pub(super) fn is_mark(path: &EntryPath) -> bool {
    path.split_last().is_some_and(|(_, name)| name.starts_with(WHITEOUT) && !is_of_aufs(name))
}

/// Whether aufs keeps a name for itself.
fn is_of_aufs(name: &[u8]) -> bool {
    name.starts_with(AUFS) && name != OPAQUE
}

/// Whether an attribute is one of overlayfs.
pub(super) fn is_of_overlay(name: &[u8]) -> bool {
    name.starts_with(OVERLAY)
}

/// How an archive names its layer in errors, and where its data is.
pub(super) struct LayerName<'a> {
    /// For errors of the archive.
    pub(super) archive: &'a str,
    /// For errors of the image.
    pub(super) role: Role,
    /// Counted from 0.
    pub(super) index: u32,
}

/// A layer that was read.
pub(super) struct Layer {
    pub(super) tree: Tree,
    /// Names that are links to files below, by their directories. Some may have been replaced.
    pub(super) below: Vec<(NodeId, Box<[u8]>)>,
    /// Names of aufs, which are not in the tree.
    pub(super) aufs: Vec<EntryPath>,
    pub(super) warnings: Warnings,
}

/// Why a layer cannot be read.
pub(super) enum LayerFault {
    Source(SourceError),
    Problem(ImageProblem),
}

impl From<ImageProblem> for LayerFault {
    fn from(problem: ImageProblem) -> Self {
        Self::Problem(problem)
    }
}

impl<E: Into<SourceError>> From<E> for LayerFault {
    fn from(error: E) -> Self {
        Self::Source(error.into())
    }
}

/// Reads the headers of a layer. `go_on` is asked at each entry.
pub(super) fn read(
    name: &LayerName<'_>,
    region: &Region,
    is_stargz: bool,
    options: &Options,
    go_on: &dyn Fn() -> bool,
) -> Result<Layer, LayerFault> {
    let (tree, warnings) = (Tree::new(), Warnings::default());
    let layer = Layer { tree, below: Vec::new(), aufs: Vec::new(), warnings };
    let mut reading =
        Reading { layer, role: name.role, index: name.index, last: (Vec::new(), ROOT) };
    let mut reader =
        TarReader::headers_of(name.archive, region.clone(), options).content(Content::Layer);
    while let Some(member) = reader.next_member()?.filter(|_| go_on()) {
        reading.take(member)?;
    }
    reading.layer.warnings = reader.warnings().clone();
    reading.leave_out_aufs();
    if is_stargz && let Some(root) = reading.layer.tree.directory_mut(ROOT) {
        for name in STARGZ {
            root.children.remove(name);
        }
    }
    Ok(reading.layer)
}

/// A name of a mark.
enum Mark<'a> {
    Opaque,
    Whiteout(&'a [u8]),
}

struct Reading {
    layer: Layer,
    role: Role,
    index: u32,
    /// The directory of the last entry: the next is most often there too.
    last: (Vec<u8>, NodeId),
}

impl Reading {
    fn take(&mut self, member: Member) -> Result<(), ImageProblem> {
        let Member { mut entry, is_implicit, data } = member;
        let is_opaque = self.overlay_attributes(&mut entry)?;
        let path = entry.path.clone();
        let Some((parent, name)) = path.split_last() else {
            return self.directory(ROOT, entry, is_opaque, is_implicit);
        };
        let parent = self.parent(parent, path.as_bytes())?;
        if is_of_aufs(name) {
            self.layer.aufs.push(path.clone());
        }
        match self.mark(name, path.as_bytes(), is_implicit)? {
            Some(Mark::Opaque) => {
                self.children(parent).is_opaque = true;
                return Ok(());
            }
            Some(Mark::Whiteout(name)) => {
                self.whiteout(parent, name);
                return Ok(());
            }
            None => {}
        }
        match &entry.kind {
            Kind::CharDevice(Device { major: 0, minor: 0 }) => self.whiteout(parent, name),
            Kind::HardLink(target) => {
                let child = self.link(target);
                if matches!(child, Child::Below(_)) {
                    self.layer.below.push((parent, name.into()));
                }
                self.children(parent).children.insert(name.into(), child);
            }
            Kind::Directory => {
                let id = match self.layer.tree.child(parent, name) {
                    Some(Child::Node(id)) if self.layer.tree.directory(*id).is_some() => *id,
                    before => {
                        let was_hidden = matches!(before, Some(Child::Whiteout));
                        let id = self.add(Node::empty_directory(was_hidden))?;
                        self.children(parent).children.insert(name.into(), Child::Node(id));
                        id
                    }
                };
                self.directory(id, entry, is_opaque, is_implicit)?;
            }
            _ => {
                // All kinds but hard links make nodes.
                if let Some(node) = Node::of_entry(entry, self.index, data) {
                    let id = self.add(node)?;
                    self.children(parent).children.insert(name.into(), Child::Node(id));
                }
            }
        }
        Ok(())
    }

    /// Takes the names of aufs away, to whose files other names link.
    fn leave_out_aufs(&mut self) {
        let tree = &mut self.layer.tree;
        for path in &self.layer.aufs {
            if let Some((parent, name)) = path.split_last()
                && let Some(parent) = tree.resolve_directory(parent)
                && let Some(directory) = tree.directory_mut(parent)
            {
                directory.children.remove(name);
            }
        }
    }

    fn add(&mut self, node: Node) -> Result<NodeId, ImageProblem> {
        self.layer.tree.add(node).ok_or(ImageProblem::Entries(NodeId::MAX))
    }

    /// A directory that the reader of the archive said comes before its contents; it is none if it
    /// is named like a whiteout.
    fn parent(&mut self, parent: &[u8], path: &[u8]) -> Result<NodeId, ImageProblem> {
        if self.last.0 != parent {
            let found = self.layer.tree.resolve_directory(parent);
            let found = found.ok_or_else(|| ImageProblem::BelowWhiteout {
                role: self.role,
                path: path.to_vec(),
            })?;
            self.last = (parent.to_vec(), found);
        }
        Ok(self.last.1)
    }

    fn children(&mut self, id: NodeId) -> &mut Directory {
        self.layer.tree.directory_mut(id).expect("parents are directories, and stay so in a layer")
    }

    /// What a name marks, if it is the name of a mark.
    fn mark<'a>(
        &self,
        name: &'a [u8],
        path: &[u8],
        is_implicit: bool,
    ) -> Result<Option<Mark<'a>>, ImageProblem> {
        let (role, path) = (self.role, path.to_vec());
        let Some(hidden) = name.strip_prefix(WHITEOUT) else { return Ok(None) };
        if is_of_aufs(name) {
            return Ok(None);
        }
        if is_implicit {
            return Err(ImageProblem::BelowWhiteout { role, path });
        }
        match hidden {
            _ if name == OPAQUE => Ok(Some(Mark::Opaque)),
            b"" | b"." | b".." => Err(ImageProblem::Whiteout { role, path }),
            hidden => Ok(Some(Mark::Whiteout(hidden))),
        }
    }

    fn whiteout(&mut self, parent: NodeId, name: &[u8]) {
        match self.children(parent).children.entry(name.into()) {
            btree_map::Entry::Vacant(place) => {
                place.insert(Child::Whiteout);
            }
            btree_map::Entry::Occupied(place) => {
                // A directory of the layer itself stays, without what is below.
                if let Child::Node(id) = *place.get()
                    && let Some(directory) = self.layer.tree.directory_mut(id)
                {
                    directory.is_opaque = true;
                }
            }
        }
    }

    /// The file that a link names: of this layer as far as it has come, or else below.
    fn link(&self, target: &EntryPath) -> Child {
        let below = || Child::Below(Box::new(target.clone()));
        let tree = &self.layer.tree;
        let found = target
            .split_last()
            .and_then(|(parent, name)| tree.child(tree.resolve_directory(parent)?, name).cloned());
        match found {
            Some(Child::Node(id)) if tree.directory(id).is_none() => Child::Node(id),
            Some(Child::Below(path)) => Child::Below(path),
            _ => below(),
        }
    }

    /// Gives a directory the attributes of its entry.
    fn directory(
        &mut self,
        id: NodeId,
        entry: Entry,
        is_opaque: bool,
        is_implicit: bool,
    ) -> Result<(), ImageProblem> {
        let node = self.layer.tree.node_mut(id);
        node.metadata = entry.metadata;
        node.xattrs = entry.xattrs.into_boxed_slice();
        if let Body::Directory(directory) = &mut node.body {
            directory.is_opaque |= is_opaque;
            directory.is_implicit = is_implicit;
        }
        Ok(())
    }

    /// Takes the attributes of overlayfs away; whether they made a directory opaque.
    fn overlay_attributes(&self, entry: &mut Entry) -> Result<bool, ImageProblem> {
        let mut is_opaque = false;
        for Xattr { name, value } in &entry.xattrs {
            match name.strip_prefix(OVERLAY) {
                Some(b"opaque") => is_opaque |= value == b"y",
                Some(elsewhere) if ELSEWHERE.contains(&elsewhere) => {
                    return Err(ImageProblem::OverlayAttribute {
                        role: self.role,
                        path: entry.path.as_bytes().to_vec(),
                        attribute: name.escape_ascii().to_string(),
                    });
                }
                _ => {}
            }
        }
        entry.xattrs.retain(|xattr| !is_of_overlay(&xattr.name));
        Ok(is_opaque)
    }
}
