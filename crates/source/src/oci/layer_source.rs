//! One layer by itself, to be put on a tree that is elsewhere: its marks first, then its entries in
//! the order of the archive.

use super::error::{ImageError, ImageProblem, Role};
use super::layer::{self, Layer, LayerFault, LayerName};
use super::recognise;
use crate::entry::{Device, Entry, EntryPath, Kind};
use crate::sorted::{Body, Child, NodeId, ROOT, Tree};
use crate::tar::TarSource;
use crate::{Data, Options, Source, SourceError, Warnings};
use std::path::Path;

/// A name that a layer hides in what is below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    /// What is below has this name no more.
    Whiteout(EntryPath),
    /// What is below has nothing in this directory.
    Opaque(EntryPath),
}

/// An entry of a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerEntry {
    /// The entry. A hard link may name a file below.
    pub entry: Entry,
    /// A directory that has no entry of its own: one that is below keeps its attributes.
    pub is_implicit: bool,
}

/// A layer in a tar archive.
pub struct LayerSource {
    source: TarSource,
    tree: Tree,
    below: Vec<(NodeId, Box<[u8]>)>,
    aufs: Vec<EntryPath>,
    /// Whether its names are those of an image.
    is_image: bool,
}

impl LayerSource {
    /// Reads the headers of the layer in the archive at `path`, plain or compressed.
    ///
    /// # Errors
    /// It cannot be read, is no archive, or has names that a layer cannot have.
    pub fn open(path: &Path, options: &Options) -> Result<Self, SourceError> {
        let mut source = if path.as_os_str() == "-" {
            TarSource::standard_input(options)?
        } else {
            TarSource::open(path, options)?
        }
        .of_layer();
        let archive = path.display().to_string();
        let region = source.keep()?;
        let name = LayerName { archive: &archive, role: Role::Layer(1), index: 0 };
        let read = layer::read(&name, &region, false, options, &|| true);
        let Layer { tree, below, aufs, .. } = read.map_err(|fault| match fault {
            LayerFault::Source(error) => error,
            LayerFault::Problem(problem) => {
                Box::new(ImageError { image: archive.clone(), problem }).into()
            }
        })?;
        let is_image = recognise::of_region(&region, options).is_some();
        source.set_scanned(region);
        Ok(Self { source, tree, below, aufs, is_image })
    }

    /// Refuses an archive that looks like a whole image: its files are hardly meant.
    ///
    /// # Errors
    /// It looks like one.
    pub fn expect_layer(&self) -> Result<(), SourceError> {
        if !self.is_image {
            return Ok(());
        }
        let image = self.source.name().to_owned();
        Err(Box::new(ImageError { image, problem: ImageProblem::NotALayer }).into())
    }

    /// All that the layer hides.
    pub fn marks(&self) -> Vec<Mark> {
        let mut marks = Vec::new();
        self.each_directory(&mut |path, id| {
            let Some(directory) = self.tree.directory(id) else { return };
            if directory.is_opaque {
                marks.push(Mark::Opaque(path.clone()));
            }
            for (name, child) in &directory.children {
                if *child == Child::Whiteout {
                    marks.push(Mark::Whiteout(path.join(name)));
                }
            }
        });
        marks
    }

    /// The files below that hard links of the layer name, and whether the layer hides them.
    pub fn links_below(&self) -> Vec<(EntryPath, bool)> {
        let targets = self.below.iter().filter_map(|(directory, name)| {
            match self.tree.child(*directory, name) {
                Some(Child::Below(target)) => Some(&**target),
                _ => None,
            }
        });
        targets.map(|target| (target.clone(), self.hides(target))).collect()
    }

    /// Names that are no part of the tree, with all below them: entries of aufs, to whose files hard links
    /// of the layer may be. They come among the entries, and are to be taken away behind the last.
    pub fn leftovers(&self) -> &[EntryPath] {
        &self.aufs
    }

    /// Bytes of data that the layer has, and its inodes.
    pub fn content(&self) -> (u64, u64) {
        let sizes = (0..self.tree.len()).filter_map(|id| {
            match &self.tree.node(NodeId::try_from(id).ok()?).body {
                Body::Regular(contents) => {
                    Some(contents.ranges().iter().map(|range| range.length).sum::<u64>())
                }
                _ => None,
            }
        });
        (sizes.sum(), self.tree.len() as u64)
    }

    /// The next entry that is no mark.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn next_entry(&mut self) -> Result<Option<LayerEntry>, SourceError> {
        loop {
            let Some(mut entry) = self.source.next_entry()? else { return Ok(None) };
            let is_device = entry.kind == Kind::CharDevice(Device { major: 0, minor: 0 });
            if is_device || layer::is_mark(&entry.path) {
                continue;
            }
            entry.xattrs.retain(|xattr| !layer::is_of_overlay(&xattr.name));
            let is_implicit = entry.kind == Kind::Directory
                && self.tree.resolve_directory(entry.path.as_bytes()).is_some_and(|id| {
                    self.tree.directory(id).is_some_and(|directory| directory.is_implicit)
                });
            return Ok(Some(LayerEntry { entry, is_implicit }));
        }
    }

    /// The next data of the entry that came last.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn next_data(&mut self) -> Result<Option<Data>, SourceError> {
        self.source.next_data()
    }

    /// The warnings of the archive, when it came to its end.
    pub fn warnings(&self) -> Warnings {
        self.source.warnings()
    }

    /// Whether a mark of the layer hides a path below.
    fn hides(&self, path: &EntryPath) -> bool {
        let mut at = Some(ROOT);
        for name in path.components() {
            let Some(directory) = at.and_then(|at| self.tree.directory(at)) else { return false };
            let child = directory.children.get(name);
            if directory.is_opaque || child == Some(&Child::Whiteout) {
                return true;
            }
            at = match child {
                Some(Child::Node(id)) => Some(*id),
                _ => None,
            };
        }
        false
    }

    /// Calls `visit` with each directory, parents first.
    fn each_directory(&self, visit: &mut dyn FnMut(&EntryPath, NodeId)) {
        let mut left = vec![(EntryPath::root(), ROOT)];
        while let Some((path, id)) = left.pop() {
            visit(&path, id);
            let Some(directory) = self.tree.directory(id) else { continue };
            for (name, child) in directory.children.iter().rev() {
                if let Child::Node(child) = child
                    && self.tree.directory(*child).is_some()
                {
                    left.push((path.join(name), *child));
                }
            }
        }
    }
}
