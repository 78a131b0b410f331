//! A description of a tree as a source: a text that names files and their attributes.
//!
//! Three languages: mtree(5) (`mtree`), composefs-dump(5) (`composefs`) and the prototype file of
//! `mkfs.xfs -p` (`prototype`). Their lines become one tree in memory (`tree`), which is delivered in
//! the order of a directory (`walk`). Contents are read from files by the threads that read
//! directories (`crate::files`, which compare sizes and digests that a description tells): below a
//! directory that is named beside (`contents`), never through a symbolic link in it.
//!
//! What each language means is in docs/decisions/descriptions.md.

mod accounts;
mod arena;
mod composefs;
mod contents;
mod error;
mod escape;
mod file;
mod ignored;
mod lines;
mod mtree;
mod packed_file;
mod path;
mod prototype;
mod spec;
mod tree;
mod walk;

pub use crate::digest::Algorithm;
pub use crate::files::ContentsProblem;
pub use error::{DescriptionError, DescriptionProblem};
pub(crate) use escape::{escape, vis};
pub(crate) use mtree::NAMES_TAG;
pub use spec::{DescriptionFormat, DescriptionOptions, DescriptionSpec};

use crate::entry::{MAX_SYMLINK_TARGET, MAX_XATTR_NAME, MAX_XATTR_VALUE, sort_by_name};
use crate::files::{Batches, Passes};
use crate::{
    Data, Device, Entry, Lending, LentFile, Options, Source, SourceError, Warnings, Xattr,
};
use contents::Contents;
use error::cut;
use ignored::Ignored;
use lines::Lines;
use std::io::BufRead;
use std::sync::Arc;
use tree::Tree;
use walk::Walk;

/// A description.
pub struct DescriptionSource {
    /// As errors name it.
    name: Arc<str>,
    format: DescriptionFormat,
    description: DescriptionOptions,
    options: Options,
    /// Before the first pass.
    lines: Option<Lines>,
    tree: Option<Arc<Tree>>,
    warnings: Vec<String>,
    passes: Passes,
}

impl DescriptionSource {
    /// The description that `spec` names.
    ///
    /// # Errors
    /// [`SourceError::Open`] when it, or the directory with the contents, cannot be opened.
    pub fn open(
        spec: &DescriptionSpec,
        description: &DescriptionOptions,
        options: &Options,
    ) -> Result<Self, SourceError> {
        if let Some(path) = &description.contents {
            Contents::open(path)?;
        }
        let name = spec.to_string();
        Ok(Self::over(spec.format, Lines::open(spec)?, name, description, options))
    }

    /// The description in a stream.
    pub fn from_reader(
        format: DescriptionFormat,
        reader: impl BufRead + Send + 'static,
        description: &DescriptionOptions,
        options: &Options,
    ) -> Self {
        let name = format.prefix().trim_end_matches(':').to_owned();
        Self::over(format, Lines::new(name.clone(), reader), name, description, options)
    }

    fn over(
        format: DescriptionFormat,
        lines: Lines,
        name: String,
        description: &DescriptionOptions,
        options: &Options,
    ) -> Self {
        Self {
            name: name.into(),
            format,
            description: description.clone(),
            options: options.clone(),
            lines: Some(lines),
            tree: None,
            warnings: Vec::new(),
            passes: Passes::new(options),
        }
    }

    /// Reads the description, unless that is done.
    fn read(&mut self) -> Result<(), SourceError> {
        let Some(mut lines) = self.lines.take() else { return Ok(()) };
        let mut ignored = Ignored::default();
        let mut contents = contents(&self.description)?;
        let draft = match self.format {
            DescriptionFormat::Mtree => mtree::read(&mut lines, contents.as_mut(), &mut ignored)?,
            DescriptionFormat::Composefs => composefs::read(&mut lines, contents.is_some())?,
            DescriptionFormat::Prototype => prototype::read(&mut lines, &self.description)?,
        };
        if let (true, Some((line, sentence))) = (self.options.strict, ignored.first()) {
            return Err(DescriptionProblem::Strict(sentence).at(&self.name, line).into());
        }
        self.warnings = ignored.sentences();
        self.tree = Some(Arc::new(draft.finish(&self.name, &self.options.exclude)?));
        Ok(())
    }
}

fn contents(description: &DescriptionOptions) -> Result<Option<Contents>, SourceError> {
    description.contents.as_deref().map(Contents::open).transpose()
}

/// The entries for a pass. A description that could not be read has no tree, and none.
fn walk(
    name: &Arc<str>,
    format: DescriptionFormat,
    tree: Option<&Arc<Tree>>,
    description: &DescriptionOptions,
) -> Result<Box<dyn Batches>, SourceError> {
    let tree = tree.cloned().ok_or(SourceError::NotScanned)?;
    Ok(Box::new(Walk::new(Arc::clone(name), format, tree, contents(description)?)))
}

impl Source for DescriptionSource {
    fn scan(&mut self, visit: &mut dyn FnMut(&Entry)) -> Result<(), SourceError> {
        self.read()?;
        let Self { name, format, tree, description, passes, .. } = self;
        passes.scan(|| walk(name, *format, tree.as_ref(), description), &mut |entry| visit(&entry))
    }

    fn next_entry(&mut self) -> Result<Option<Entry>, SourceError> {
        self.read()?;
        let Self { name, format, tree, description, passes, .. } = self;
        passes.next_entry(|| walk(name, *format, tree.as_ref(), description))
    }

    fn next_data(&mut self) -> Result<Option<Data>, SourceError> {
        self.passes.next_data()
    }

    fn lend_files(&mut self, lending: &Lending) -> bool {
        self.passes.lend_files(lending);
        true
    }

    fn lent_file(&mut self) -> Result<Option<LentFile>, SourceError> {
        self.passes.lent_file()
    }

    fn restart(&mut self) -> Result<(), SourceError> {
        self.passes.restart()
    }

    fn warnings(&self) -> Warnings {
        Warnings { description: self.warnings.clone(), ..Warnings::default() }
    }
}

/// A device by the number that systems with glibc have for it.
fn device_of_number(number: u64) -> Device {
    let major = (number >> 8 & 0xfff) | (number >> 32 & 0xffff_f000);
    let minor = (number & 0xff) | (number >> 12 & 0xffff_ff00);
    // Both have 32 bits by their masks.
    Device { major: major as u32, minor: minor as u32 }
}

/// A target that a symbolic link can have.
fn check_target(path: &[u8], target: Vec<u8>) -> Result<Vec<u8>, DescriptionProblem> {
    if target.is_empty() || target.len() > MAX_SYMLINK_TARGET || target.contains(&0) {
        let length = target.len();
        return Err(DescriptionProblem::SymlinkTarget { path: cut(path), length });
    }
    Ok(target)
}

/// Attributes sorted by name, each once and in a namespace.
fn check_xattrs(mut xattrs: Vec<Xattr>) -> Result<Box<[Xattr]>, DescriptionProblem> {
    const NAMESPACES: [&[u8]; 4] = [b"user.", b"trusted.", b"security.", b"system."];
    sort_by_name(&mut xattrs);
    for (index, Xattr { name, value }) in xattrs.iter().enumerate() {
        let is_known = |space: &&[u8]| name.len() > space.len() && name.starts_with(space);
        let reason = match () {
            () if !NAMESPACES.iter().any(is_known) => {
                "is in none of the namespaces user., trusted., security. and system."
            }
            () if name.contains(&0) => "has a zero byte in its name",
            () if name.len() > MAX_XATTR_NAME => "has a name of more than 255 bytes",
            () if value.len() > MAX_XATTR_VALUE => "has a value of more than 65536 bytes",
            () if index > 0 && xattrs[index - 1].name == *name => "is there twice",
            () => continue,
        };
        return Err(DescriptionProblem::Xattr { name: cut(name), reason });
    }
    Ok(xattrs.into_boxed_slice())
}
