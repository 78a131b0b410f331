//! A directory under examination.

use super::forks::Fork;
use super::listing::Listing;
use super::subject::{Scan, Subject};
use crate::format::dir_layout::DirLayout;
use crate::units::FileBlock;

pub(super) const STRUCTURE: &str = "directory";

/// Damaged blocks after which the rest of one directory is left out.
pub(super) const DEFECTS_MAX: u32 = 64;

/// A directory under examination.
pub(super) struct Directory<'a, 's> {
    pub(super) scan: &'a Scan<'s>,
    pub(super) subject: &'a Subject<'a>,
    pub(super) fork: &'a Fork,
    pub(super) layout: DirLayout,
    pub(super) listing: Listing,
    /// Whether "." and ".." were met.
    pub(super) seen: [bool; 2],
}

impl Directory<'_, '_> {
    pub(super) fn error(&self, what: impl Into<String>) {
        self.scan.checker.error(STRUCTURE, self.subject.location(), what);
    }

    /// As [`error`](Self::error), of a name that is well-formed and leads nowhere.
    pub(super) fn error_of_names(&self, what: impl Into<String>) {
        self.scan.checker.error("names", self.subject.location(), what);
    }

    pub(super) fn error_at(&self, block: FileBlock, what: impl Into<String>) {
        self.scan.checker.error(STRUCTURE, self.fork.location(block), what);
    }

    /// Records that not all entries could be seen.
    pub(super) fn lose(&mut self) {
        self.listing.complete = false;
        self.scan.checker.set_incomplete();
    }
}
