//! A tree of entries in memory, of a layer or of all.
//!
//! Files are nodes and names point to them, so a file with several names stays one whatever happens
//! to any of the names. Data stays in the layers.

use crate::entry::{Device, Entry, Kind, Metadata, Timestamp, Xattr};
use crate::{DataRange, EntryPath};
use std::collections::BTreeMap;

/// A node by its place in the tree's list; the root is 0.
pub(crate) type NodeId = u32;

/// The root of every tree.
pub(crate) const ROOT: NodeId = 0;

/// A file or directory without its names.
pub(crate) struct Node {
    pub(crate) metadata: Metadata,
    pub(crate) xattrs: Box<[Xattr]>,
    pub(crate) body: Body,
}

/// What a node is.
pub(crate) enum Body {
    Directory(Box<Directory>),
    Regular(Contents),
    Symlink(Box<[u8]>),
    CharDevice(Device),
    BlockDevice(Device),
    Fifo,
    Socket,
}

/// A directory of a layer, or of all.
#[derive(Default)]
pub(crate) struct Directory {
    pub(crate) children: BTreeMap<Box<[u8]>, Child>,
    /// It hides what the layers below have in it. Only in the tree of a layer.
    pub(crate) is_opaque: bool,
    /// It has no entry of its own, only others that lie in it.
    pub(crate) is_implicit: bool,
}

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Child {
    Node(NodeId),
    /// Nothing, and what layers below have under the name is hidden. Only in the tree of a layer.
    Whiteout,
    /// The file that the layers below have under this path. Only in the tree of a layer.
    Below(Box<EntryPath>),
}

/// Where the contents of a regular file are.
pub(crate) struct Contents {
    pub(crate) size: u64,
    /// The data ranges; `None` if all of the file is one.
    pub(crate) ranges: Option<Box<[DataRange]>>,
    /// Which layer has them, counted from 0.
    pub(crate) layer: u32,
    /// Where in the layer the data ranges are, one after the other.
    pub(crate) position: u64,
}

impl Contents {
    /// The ranges that hold data.
    pub(crate) fn ranges(&self) -> Vec<DataRange> {
        let whole = || vec![DataRange { offset: 0, length: self.size }];
        match &self.ranges {
            Some(ranges) => ranges.to_vec(),
            None if self.size > 0 => whole(),
            None => Vec::new(),
        }
    }
}

/// Nodes, the root first.
pub(crate) struct Tree {
    nodes: Vec<Node>,
}

impl Tree {
    /// A tree whose root has no entry.
    pub(crate) fn new() -> Self {
        Self { nodes: vec![Node::empty_directory(false)] }
    }

    /// Number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id as usize]
    }

    pub(crate) fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id as usize]
    }

    /// The number that the next node gets, while there is one.
    pub(crate) fn next_id(&self) -> Option<NodeId> {
        NodeId::try_from(self.nodes.len()).ok()
    }

    /// Adds a node; `None` when there are more than numbers for them.
    pub(crate) fn add(&mut self, node: Node) -> Option<NodeId> {
        let id = self.next_id()?;
        self.nodes.push(node);
        Some(id)
    }

    pub(crate) fn into_nodes(self) -> Vec<Node> {
        self.nodes
    }

    /// The node, if it is a directory.
    pub(crate) fn directory(&self, id: NodeId) -> Option<&Directory> {
        match &self.node(id).body {
            Body::Directory(directory) => Some(directory),
            _ => None,
        }
    }

    pub(crate) fn directory_mut(&mut self, id: NodeId) -> Option<&mut Directory> {
        match &mut self.node_mut(id).body {
            Body::Directory(directory) => Some(directory),
            _ => None,
        }
    }

    /// The name in a directory.
    pub(crate) fn child(&self, directory: NodeId, name: &[u8]) -> Option<&Child> {
        self.directory(directory)?.children.get(name)
    }

    /// The directory at a path.
    pub(crate) fn resolve_directory(&self, path: &[u8]) -> Option<NodeId> {
        let mut at = ROOT;
        for name in path.split(|&byte| byte == b'/').filter(|name| !name.is_empty()) {
            let Some(Child::Node(next)) = self.child(at, name) else { return None };
            at = *next;
        }
        self.directory(at).map(|_| at)
    }
}

impl Node {
    /// A directory that has no entry yet.
    pub(crate) fn empty_directory(is_opaque: bool) -> Self {
        let mtime = Timestamp { seconds: 0, nanoseconds: 0 };
        let metadata = Metadata { mode: 0o755, uid: 0, gid: 0, mtime };
        let directory = Directory { is_opaque, is_implicit: true, ..Directory::default() };
        Self { metadata, xattrs: Box::default(), body: Body::Directory(Box::new(directory)) }
    }

    /// The node of an entry that is no hard link; its data is at `position` of a layer.
    pub(crate) fn of_entry(entry: Entry, layer: u32, position: u64) -> Option<Self> {
        let body = match entry.kind {
            Kind::Directory => Body::Directory(Box::default()),
            Kind::Regular { size, data } => {
                let is_whole = match data[..] {
                    [] => size == 0,
                    [range] => range.length == size,
                    _ => false,
                };
                let ranges = (!is_whole).then(|| data.into_boxed_slice());
                Body::Regular(Contents { size, ranges, layer, position })
            }
            Kind::Symlink(target) => Body::Symlink(target.into_boxed_slice()),
            Kind::CharDevice(device) => Body::CharDevice(device),
            Kind::BlockDevice(device) => Body::BlockDevice(device),
            Kind::Fifo => Body::Fifo,
            Kind::Socket => Body::Socket,
            Kind::HardLink(_) => return None,
        };
        Some(Self { metadata: entry.metadata, xattrs: entry.xattrs.into_boxed_slice(), body })
    }

    /// The kind of its entries.
    pub(crate) fn kind(&self) -> Kind {
        match &self.body {
            Body::Directory(_) => Kind::Directory,
            Body::Regular(contents) => {
                Kind::Regular { size: contents.size, data: contents.ranges() }
            }
            Body::Symlink(target) => Kind::Symlink(target.to_vec()),
            Body::CharDevice(device) => Kind::CharDevice(*device),
            Body::BlockDevice(device) => Kind::BlockDevice(*device),
            Body::Fifo => Kind::Fifo,
            Body::Socket => Kind::Socket,
        }
    }
}
