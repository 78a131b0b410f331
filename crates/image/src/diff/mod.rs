//! The differences of two trees, whatever holds them: a volume, a directory, an archive, a container
//! image.
//!
//! Both are [sources](undercroft_source::Source) whose entries are sorted, so the comparison is one
//! pass over each side by side, and each difference is told when it is found, in the order of the
//! paths. Contents are compared byte by byte while both are read. Memory is that of the sources, and
//! some 300 bytes for each file with several names.
//!
//! Compared is what a volume would have: of access lists the parts that the mode does not say, each
//! once; no properties of volumes. A root directory that one side does not describe is no difference.
//! Holes read as zeros, and where they are counts only on request.
//!
//! ```
//! use std::ops::ControlFlow;
//! use undercroft_image::diff::{DiffOptions, Event, diff};
//! use undercroft_source::{Options, SourceOptions, SourceSpec, open};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let options = SourceOptions::from(Options { sorted: true, ..Options::default() });
//! let open = |path: &str| open(&SourceSpec::Path(path.into()), &options);
//! let (mut left, mut right) = (open("src")?, open("src/diff")?);
//! let mut paths = Vec::new();
//! let sides = (left.source.as_mut(), right.source.as_mut());
//! let summary = diff(sides.0, sides.1, &DiffOptions::default(), &mut |event| {
//!     if let Event::Difference(difference) = event {
//!         paths.push(difference.path.to_string());
//!     }
//!     ControlFlow::Continue(())
//! })?;
//! assert!(!summary.is_same() && paths.contains(&"diff".to_owned()));
//! # Ok(())
//! # }
//! ```

mod attributes;
mod contents;
mod difference;
mod digest;
mod join;
mod normal;
mod side;

pub use difference::{Change, Difference, Found};
pub(crate) use join::Join;
pub(crate) use side::Side;

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use thiserror::Error;
use undercroft_source::{EntryPath, Exclude, Source, SourceError};

/// What of an entry is compared. Its name and its kind are in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Aspect {
    /// Permission bits.
    Mode,
    /// User and group.
    Owner,
    /// Time of modification.
    Mtime,
    /// Length of a file.
    Size,
    /// Bytes of a file.
    Content,
    /// Target of a symbolic link.
    Target,
    /// Number of a device.
    Device,
    /// Extended attributes, access lists among them.
    Xattrs,
    /// Which names are one file, of those that both sides have.
    Links,
    /// Where a file has holes.
    Holes,
}

impl Aspect {
    /// All, in the order in which differences are told.
    pub const ALL: [Self; 10] = [
        Self::Mode,
        Self::Owner,
        Self::Mtime,
        Self::Size,
        Self::Content,
        Self::Target,
        Self::Device,
        Self::Xattrs,
        Self::Links,
        Self::Holes,
    ];
}

/// What is compared.
#[derive(Clone, Debug)]
pub struct DiffOptions {
    aspects: BTreeSet<Aspect>,
    exclude: Exclude,
}

impl Default for DiffOptions {
    /// Everything but holes.
    fn default() -> Self {
        let aspects = Aspect::ALL.into_iter().filter(|one| *one != Aspect::Holes).collect();
        Self { aspects, exclude: Exclude::default() }
    }
}

impl DiffOptions {
    /// Compares this, too.
    #[must_use]
    pub fn with(mut self, aspect: Aspect) -> Self {
        self.aspects.insert(aspect);
        self
    }

    /// Leaves this out.
    #[must_use]
    pub fn without(mut self, aspect: Aspect) -> Self {
        self.aspects.remove(&aspect);
        self
    }

    /// Leaves out what matches, in both trees.
    #[must_use]
    pub fn excluding(mut self, exclude: Exclude) -> Self {
        self.exclude = exclude;
        self
    }

    fn wants(&self, aspect: Aspect) -> bool {
        self.aspects.contains(&aspect)
    }
}

/// What happens on the way.
#[derive(Debug)]
pub enum Event<'a> {
    /// A path that differs.
    Difference(&'a Difference),
    /// This much is compared.
    Progress(Summary),
}

/// Counts of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Names that both have.
    pub common: u64,
    /// Of those, names that differ.
    pub changed: u64,
    /// Names that only the left side has.
    pub only_left: u64,
    /// Names that only the right side has.
    pub only_right: u64,
    /// Bytes that were read, of both.
    pub bytes: u64,
}

impl Summary {
    /// Whether nothing differs.
    #[must_use]
    pub fn is_same(&self) -> bool {
        self.changed + self.only_left + self.only_right == 0
    }
}

/// Why two trees cannot be compared.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DiffError {
    /// The left side cannot be read.
    #[error("the first tree cannot be read")]
    Left(#[source] SourceError),
    /// The right side cannot be read.
    #[error("the second tree cannot be read")]
    Right(#[source] SourceError),
    /// The entries of a source do not come in order.
    #[error("{0} comes out of its order; sources must be opened as sorted")]
    Order(EntryPath),
}

/// Compares two trees. `report` is called for each difference, and now and then; it ends the
/// comparison by [`ControlFlow::Break`].
///
/// # Errors
/// A side cannot be read, or does not come sorted.
pub fn diff(
    left: &mut dyn Source,
    right: &mut dyn Source,
    options: &DiffOptions,
    report: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
) -> Result<Summary, DiffError> {
    let left = Side::new(left, DiffError::Left, &|_| ());
    let right = Side::new(right, DiffError::Right, &|_| ());
    Join::new(left, right, options).run(report)
}
