//! One of two trees that are compared.

use super::DiffError;
use super::contents::Contents;
use super::difference::Change;
use super::digest::Digest;
use super::normal::normalize;
use rustc_hash::FxHashMap;
use undercroft_source::{Entry, EntryPath, Exclude, Kind, Links, Source, SourceError};

/// A tree as it comes.
pub(crate) struct Side<'s> {
    source: &'s mut dyn Source,
    failed: fn(SourceError) -> DiffError,
    adjust: &'s dyn Fn(&mut Entry),
    /// The entry that came last, whose contents are still to come.
    pub(super) head: Option<Entry>,
    /// Files that may have several names, by the first.
    linked: FxHashMap<EntryPath, Linked>,
    /// A directory below which nothing is told.
    pub(super) hidden: Option<EntryPath>,
    /// Bytes of data that were read.
    pub(super) bytes: u64,
}

/// A file that may have several names.
pub(super) struct Linked {
    entry: Entry,
    digest: Option<Digest>,
    /// The first of its names that the other tree has, too.
    first_common: Option<EntryPath>,
    /// What differed under that name, if one file of the other tree has both.
    pub(super) changes: Vec<Change>,
}

impl<'s> Side<'s> {
    /// A sorted source. `failed` makes an error of one of it, and `adjust` sees all its entries.
    pub(crate) fn new(
        source: &'s mut dyn Source,
        failed: fn(SourceError) -> DiffError,
        adjust: &'s dyn Fn(&mut Entry),
    ) -> Self {
        let linked = FxHashMap::default();
        Self { source, failed, adjust, head: None, linked, hidden: None, bytes: 0 }
    }

    /// Goes to the next entry that is not left out.
    pub(super) fn advance(&mut self, exclude: &Exclude) -> Result<(), DiffError> {
        self.next()?;
        while self.head.as_ref().is_some_and(|head| exclude.matches_within(head.path.as_bytes())) {
            // Other names of the file may stay.
            self.keep_digest()?;
            self.next()?;
        }
        Ok(())
    }

    fn next(&mut self) -> Result<(), DiffError> {
        let before = self.head.take();
        let Some(mut entry) = self.source.next_entry().map_err(self.failed)? else {
            return Ok(());
        };
        if before.is_some_and(|before| before.path.components().ge(entry.path.components())) {
            return Err(DiffError::Order(entry.path));
        }
        (self.adjust)(&mut entry);
        normalize(&mut entry);
        match &entry.kind {
            Kind::HardLink(first) if !self.linked.contains_key(first) => {
                return Err(DiffError::Order(entry.path));
            }
            Kind::HardLink(_) | Kind::Directory => {}
            _ if entry.links == Links::Several => {
                let (path, entry) = (entry.path.clone(), entry.clone());
                let linked =
                    Linked { entry, digest: None, first_common: None, changes: Vec::new() };
                self.linked.insert(path, linked);
            }
            _ => {}
        }
        self.head = Some(entry);
        Ok(())
    }

    /// Whether the contents of the file come with the head, which is not a further name of it.
    pub(super) fn has_contents(&self) -> bool {
        self.head.as_ref().is_some_and(|head| matches!(head.kind, Kind::Regular { .. }))
    }

    /// The file that the head is a name of, if it may have several.
    pub(super) fn linked(&mut self) -> Option<&mut Linked> {
        let head = self.head.as_ref()?;
        match &head.kind {
            Kind::HardLink(first) => self.linked.get_mut(first),
            _ if head.links == Links::Several => self.linked.get_mut(&head.path),
            _ => None,
        }
    }

    /// The entry of the file that the head is a name of.
    pub(super) fn entry(&self) -> Option<&Entry> {
        let head = self.head.as_ref()?;
        match &head.kind {
            Kind::HardLink(first) => self.linked.get(first).map(|linked| &linked.entry),
            _ => Some(head),
        }
    }

    /// The first name of the head's file that the other tree has, too; it has the head's.
    pub(super) fn first_common(&mut self, path: &EntryPath) -> EntryPath {
        let Some(linked) = self.linked() else { return path.clone() };
        linked.first_common.get_or_insert_with(|| path.clone()).clone()
    }

    /// The contents of the head; the digest is computed if further names may want it.
    pub(super) fn contents(&mut self) -> Contents<'_> {
        let several = self.head.as_ref().is_some_and(|head| head.links == Links::Several);
        Contents::new(self.source, several)
    }

    /// Notes what was learnt when contents were read.
    pub(super) fn note(&mut self, (digest, bytes): (Option<Digest>, u64)) {
        self.bytes += bytes;
        if let (Some(linked), Some(_)) = (self.linked(), digest) {
            linked.digest = digest;
        }
    }

    /// The digest of the head's file, a regular one; its contents are read if they come with it.
    pub(super) fn digest(&mut self) -> Result<Option<Digest>, DiffError> {
        if !self.has_contents() {
            return Ok(self.linked().and_then(|linked| linked.digest));
        }
        let (digest, bytes) = Contents::new(self.source, true).finish().map_err(self.failed)?;
        self.note((digest, bytes));
        Ok(digest)
    }

    /// Has the digest computed of a file that may come again under another name.
    pub(super) fn keep_digest(&mut self) -> Result<(), DiffError> {
        let several = self.head.as_ref().is_some_and(|head| head.links == Links::Several);
        if several && self.has_contents() {
            self.digest()?;
        }
        Ok(())
    }

    /// An error of the source.
    pub(super) fn error(&self, error: SourceError) -> DiffError {
        (self.failed)(error)
    }

    /// Whether nothing is told of the head, since it is below a directory of which it was said.
    pub(super) fn is_hidden(&self) -> bool {
        let (Some(hidden), Some(head)) = (&self.hidden, &self.head) else { return false };
        let rest = head.path.as_bytes().strip_prefix(hidden.as_bytes());
        rest.is_some_and(|rest| rest.first() == Some(&b'/'))
    }
}
