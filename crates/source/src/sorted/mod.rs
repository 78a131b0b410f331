//! A tar archive as a source whose entries are sorted, as those of a directory are.
//!
//! It is read as a layer is: the first pass takes the headers and makes a tree of them, which costs
//! some 200 bytes for each name; the second walks the tree and takes data by its place in the
//! archive. Marks of layers mean nothing: they are files.

mod gather;
mod tree;
mod walk;

pub(crate) use gather::{Gather, ReadFault};
pub(crate) use tree::{Body, Child, Directory, Node, NodeId, ROOT, Tree};
pub(crate) use walk::{LinkCounts, Walk, link_counts};

use crate::ahead::{Ahead, Filling};
use crate::region::Region;
use crate::tar::{Member, TarReader, TarSource};
use crate::{Data, Entry, Exclude, Kind, Options, Source, SourceError, Warnings};
use std::sync::Arc;

/// A tar archive, sorted.
pub(crate) struct SortedArchive {
    archive: String,
    options: Options,
    /// Until the first pass.
    unread: Option<TarSource>,
    surveyed: Option<Arc<Surveyed>>,
    state: State,
}

enum State {
    Fresh,
    Reading(Ahead<ReadFault>),
    Ended,
}

/// An archive whose headers were read.
struct Surveyed {
    region: Region,
    tree: Tree,
    counts: LinkCounts,
    warnings: Warnings,
}

impl SortedArchive {
    pub(crate) fn new(tar: TarSource, options: &Options) -> Self {
        let (archive, options) = (tar.name().to_owned(), options.clone());
        Self { archive, options, unread: Some(tar), surveyed: None, state: State::Fresh }
    }

    /// The first pass, once.
    fn survey(&mut self) -> Result<Arc<Surveyed>, SourceError> {
        if let Some(mut tar) = self.unread.take() {
            let region = tar.keep()?;
            let (tree, warnings) = read(&self.archive, &region, &self.options)?;
            let counts = link_counts(&tree, &self.options.exclude);
            self.surveyed = Some(Arc::new(Surveyed { region, tree, counts, warnings }));
        }
        self.surveyed.clone().ok_or(SourceError::NotScanned)
    }

    fn read(&mut self) -> Result<Ahead<ReadFault>, SourceError> {
        let surveyed = self.survey()?;
        let exclude = self.options.exclude.clone();
        let read = move |filling: &mut Filling<ReadFault>| {
            let Surveyed { region, tree, counts, warnings } = &*surveyed;
            let walk = Walk::new(tree, &exclude, counts);
            Gather::new(std::slice::from_ref(region)).run(tree, walk, filling)?;
            Ok(warnings.clone())
        };
        Ahead::start(read).map_err(SourceError::Thread)
    }

    fn failed(&self, fault: ReadFault) -> SourceError {
        SourceError::Open { path: self.archive.clone().into(), source: fault.source }
    }
}

/// Reads the headers of an archive. What is to be excluded is left out of the walk: other names may be
/// links to it.
fn read(
    archive: &str,
    region: &Region,
    options: &Options,
) -> Result<(Tree, Warnings), SourceError> {
    let options = Options { exclude: Exclude::default(), ..options.clone() };
    let mut reader = TarReader::headers_of(archive, region.clone(), &options);
    let mut tree = Tree::new();
    while let Some(Member { entry, is_implicit, data }) = reader.next_member()? {
        take(&mut tree, entry, is_implicit, data)?;
    }
    Ok((tree, reader.warnings().clone()))
}

/// Puts an entry in its place; one that came before under its path loses it.
fn take(tree: &mut Tree, entry: Entry, is_implicit: bool, data: u64) -> Result<(), SourceError> {
    let path = entry.path.clone();
    let Some((parent, name)) = path.split_last() else {
        update(tree, ROOT, entry, is_implicit);
        return Ok(());
    };
    const BEFORE: &str = "the reader delivers directories before their contents";
    let parent = tree.resolve_directory(parent).expect(BEFORE);
    let id = match (&entry.kind, tree.child(parent, name)) {
        (Kind::HardLink(target), _) => {
            let (home, name) = target.split_last().unwrap_or_default();
            let found = tree.resolve_directory(home).and_then(|home| tree.child(home, name));
            let Some(Child::Node(id)) = found else {
                unreachable!("the reader delivers files before their further names")
            };
            *id
        }
        (Kind::Directory, Some(Child::Node(id))) => {
            let id = *id;
            update(tree, id, entry, is_implicit);
            return Ok(());
        }
        (Kind::Directory, _) => {
            let id = add(tree, Node::empty_directory(false))?;
            update(tree, id, entry, is_implicit);
            id
        }
        _ => match Node::of_entry(entry, 0, data) {
            Some(node) => add(tree, node)?,
            None => unreachable!("only hard links make no node"),
        },
    };
    tree.directory_mut(parent).expect(BEFORE).children.insert(name.into(), Child::Node(id));
    Ok(())
}

fn add(tree: &mut Tree, node: Node) -> Result<NodeId, SourceError> {
    tree.add(node).ok_or(SourceError::Entries)
}

/// Gives a directory the attributes of its entry.
fn update(tree: &mut Tree, id: NodeId, entry: Entry, is_implicit: bool) {
    let node = tree.node_mut(id);
    (node.metadata, node.xattrs) = (entry.metadata, entry.xattrs.into_boxed_slice());
    if let Body::Directory(directory) = &mut node.body {
        directory.is_implicit = is_implicit;
    }
}

impl Source for SortedArchive {
    fn scan(&mut self, visit: &mut dyn FnMut(&Entry)) -> Result<(), SourceError> {
        if self.unread.is_none() {
            return Err(SourceError::ScanTooLate);
        }
        self.state = State::Ended;
        let surveyed = self.survey()?;
        let mut walk = Walk::new(&surveyed.tree, &self.options.exclude, &surveyed.counts);
        while let Some((entry, _)) = walk.next() {
            visit(&entry);
        }
        self.state = State::Fresh;
        Ok(())
    }

    fn next_entry(&mut self) -> Result<Option<Entry>, SourceError> {
        let mut reading = match std::mem::replace(&mut self.state, State::Ended) {
            State::Fresh => self.read()?,
            State::Reading(reading) => reading,
            State::Ended => return Ok(None),
        };
        let entry = reading.next_entry().map_err(|fault| self.failed(fault))?;
        if entry.is_some() {
            self.state = State::Reading(reading);
        }
        Ok(entry)
    }

    fn next_data(&mut self) -> Result<Option<Data>, SourceError> {
        let State::Reading(reading) = &mut self.state else { return Ok(None) };
        let data = reading.next_data();
        if data.is_err() {
            self.state = State::Ended;
        }
        data.map_err(|fault| self.failed(fault))
    }

    fn restart(&mut self) -> Result<(), SourceError> {
        if self.surveyed.is_none() {
            return Err(SourceError::NotScanned);
        }
        self.state = State::Fresh;
        Ok(())
    }

    fn warnings(&self) -> Warnings {
        self.surveyed.as_ref().map(|surveyed| surveyed.warnings.clone()).unwrap_or_default()
    }
}
