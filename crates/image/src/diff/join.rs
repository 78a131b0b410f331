//! Two sorted trees side by side.

use super::contents::{Fault, first_difference};
use super::difference::{Change, Difference, Found, kind_word};
use super::{Aspect, DiffError, DiffOptions, Event, Side, Summary, attributes};
use std::cmp::Ordering;
use std::ops::ControlFlow;
use undercroft_source::{Entry, EntryPath, Kind};

/// Names between two reports of progress.
const REPORT_EVERY: u64 = 256;

/// The comparison of two trees.
pub(crate) struct Join<'s> {
    left: Side<'s>,
    right: Side<'s>,
    options: &'s DiffOptions,
    summary: Summary,
}

impl<'s> Join<'s> {
    pub(crate) fn new(left: Side<'s>, right: Side<'s>, options: &'s DiffOptions) -> Self {
        Self { left, right, options, summary: Summary::default() }
    }

    /// Compares all entries.
    pub(crate) fn run(
        mut self,
        report: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
    ) -> Result<Summary, DiffError> {
        self.left.advance(&self.options.exclude)?;
        self.right.advance(&self.options.exclude)?;
        let mut names: u64 = 0;
        while let Some(order) = self.order() {
            let found = match order {
                Ordering::Less => only(&mut self.left, self.options)?.map(|(path, kind)| {
                    self.summary.only_left += 1;
                    (path, kind.map(Found::OnlyLeft))
                }),
                Ordering::Greater => only(&mut self.right, self.options)?.map(|(path, kind)| {
                    self.summary.only_right += 1;
                    (path, kind.map(Found::OnlyRight))
                }),
                Ordering::Equal => self.both()?,
            };
            if let Some((path, Some(found))) = found {
                let difference = Difference { path, found };
                if report(Event::Difference(&difference)).is_break() {
                    break;
                }
            }
            if order.is_le() {
                self.left.advance(&self.options.exclude)?;
            }
            if order.is_ge() {
                self.right.advance(&self.options.exclude)?;
            }
            names += 1;
            self.summary.bytes = self.left.bytes + self.right.bytes;
            if names.is_multiple_of(REPORT_EVERY)
                && report(Event::Progress(self.summary)).is_break()
            {
                break;
            }
        }
        Ok(self.summary)
    }

    /// Which side has the next name; `None` at the end of both.
    fn order(&self) -> Option<Ordering> {
        match (&self.left.head, &self.right.head) {
            (None, None) => None,
            (Some(_), None) => Some(Ordering::Less),
            (None, Some(_)) => Some(Ordering::Greater),
            (Some(left), Some(right)) if left.path == right.path => Some(Ordering::Equal),
            (Some(left), Some(right)) => Some(left.path.components().cmp(right.path.components())),
        }
    }

    /// Compares two entries of one name.
    fn both(&mut self) -> Result<Option<(EntryPath, Option<Found>)>, DiffError> {
        let Some(path) = self.left.head.as_ref().map(|head| head.path.clone()) else {
            return Ok(None);
        };
        self.summary.common += 1;
        let (left, right) = (self.left.first_common(&path), self.right.first_common(&path));
        let mut changes = if left == right && left != path {
            // These two files were compared under that name.
            self.left.linked().map(|linked| linked.changes.clone()).unwrap_or_default()
        } else {
            let changes = self.compare()?;
            if left == right
                && let Some(linked) = self.left.linked()
            {
                linked.changes.clone_from(&changes);
            }
            changes
        };
        if left != right && self.options.wants(Aspect::Links) {
            let other = |first: EntryPath| (first != path).then_some(first);
            changes.push(Change::Links(other(left), other(right)));
        }
        if let Some(Change::Kind(..)) = changes.iter().find(|one| matches!(one, Change::Kind(..))) {
            self.left.hidden = Some(path.clone());
            self.right.hidden = Some(path.clone());
        }
        let found = (!changes.is_empty()).then_some(Found::Changed(changes));
        self.summary.changed += u64::from(found.is_some());
        Ok(Some((path, found)))
    }

    fn compare(&mut self) -> Result<Vec<Change>, DiffError> {
        let (Some(left), Some(right)) = (self.left.entry(), self.right.entry()) else {
            return Ok(Vec::new());
        };
        let mut changes = attributes::changes(left, right, self.options);
        let sizes = size(left).zip(size(right));
        if !self.options.wants(Aspect::Content) {
            return Ok(changes);
        }
        let Some((left_size, right_size)) = sizes else {
            self.left.keep_digest()?;
            self.right.keep_digest()?;
            return Ok(changes);
        };
        let different = if self.left.has_contents() && self.right.has_contents() {
            let (mut left, mut right) = (self.left.contents(), self.right.contents());
            let found = first_difference((&mut left, left_size), (&mut right, right_size));
            let (left, right) = (left.finish(), right.finish());
            let found = found.map_err(|fault| match fault {
                Fault::Left(error) => self.left.error(error),
                Fault::Right(error) => self.right.error(error),
            })?;
            self.left.note(left.map_err(|error| self.left.error(error))?);
            self.right.note(right.map_err(|error| self.right.error(error))?);
            found.map(|at| Change::Content(Some(at)))
        } else {
            let same = self.left.digest()? == self.right.digest()? && left_size == right_size;
            (!same).then_some(Change::Content(None))
        };
        // In the order of the aspects: before targets, of which files have none, and attributes.
        let is_later = |one: &Change| matches!(one, Change::Xattr(..) | Change::Holes(_));
        let place = changes.iter().position(is_later).unwrap_or(changes.len());
        changes.splice(place..place, different);
        Ok(changes)
    }
}

/// Length of a regular file.
fn size(entry: &Entry) -> Option<u64> {
    match entry.kind {
        Kind::Regular { size, .. } => Some(size),
        _ => None,
    }
}

/// Takes a name that the other side does not have. Its kind, unless nothing is told of it.
fn only(
    side: &mut Side<'_>,
    options: &DiffOptions,
) -> Result<Option<(EntryPath, Option<&'static str>)>, DiffError> {
    if options.wants(Aspect::Content) {
        side.keep_digest()?;
    }
    let Some(path) = side.head.as_ref().map(|head| head.path.clone()) else { return Ok(None) };
    // Archives and layers need not describe it.
    if path.is_root() {
        return Ok(None);
    }
    if side.is_hidden() {
        return Ok(Some((path, None)));
    }
    let kind = side.entry().map(|entry| kind_word(&entry.kind));
    if kind == Some(kind_word(&Kind::Directory)) {
        side.hidden = Some(path.clone());
    }
    Ok(Some((path, kind)))
}
