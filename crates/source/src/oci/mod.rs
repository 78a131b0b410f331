//! A container image as a source: what its layers make together.
//!
//! The image lies on this machine, as a directory with an OCI image layout, as an archive of one, or
//! as `docker save` writes it; nothing is fetched. `choose` finds the image that is meant, `survey`
//! reads its layers (`unpacked`, `layer`) and stacks them (`stack`) to one tree, and the second pass
//! walks the tree and takes data from the layers (`crate::sorted`). Hidden data is not read.
//!
//! The meaning of layers and the reasons are in docs/decisions/oci.md.

mod choose;
mod digest;
mod documents;
mod error;
mod layer;
mod layer_source;
mod platform;
mod recognise;
mod saved;
mod sha256;
mod spec;
mod stack;
mod store;
mod stream;
mod survey;
mod unpacked;
mod verification;

pub use digest::Digest;
pub use error::{ImageError, ImageProblem, Role};
pub use layer_source::{LayerEntry, LayerSource, Mark};
pub use platform::Platform;
pub(crate) use recognise::{Form, is_unpacked_archive, recognise};
pub use spec::{ImageFormat, ImageOptions, ImageSpec};
pub(crate) use stream::PlainStream;

use crate::ahead::{Ahead, Filling};
use crate::entry::{Entry, MAX_XATTR_NAME, MAX_XATTR_VALUE, Xattr, sort_by_name};
use crate::region::Region;
use crate::sorted::{Body, Gather, LinkCounts, ROOT, ReadFault, Tree, Walk, link_counts};
use crate::{Data, Options, Source, SourceError, Warnings};
use choose::{Blob, Chosen};
use documents::Config;
use std::io;
use std::path::Path;
use std::sync::Arc;
use store::Store;
use survey::Survey;
use verification::Verification;

/// What a source tells of its container image.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImageReport {
    /// Where it is.
    pub spec: ImageSpec,
    /// It was named by its path alone, and recognised.
    pub is_recognised: bool,
    /// The platform that it is for.
    pub platform: Platform,
    /// Number of layers.
    pub layers: usize,
    /// Its config, as it is.
    pub config: Vec<u8>,
}

/// A container image.
pub struct ImageSource {
    /// As errors name it.
    name: String,
    options: Options,
    has_labels: bool,
    report: ImageReport,
    config: Config,
    blobs: Vec<Blob>,
    /// What a survey found.
    stacked: Option<Arc<Stacked>>,
    /// Until its result was asked for.
    verification: Option<Verification>,
    warnings: Warnings,
    state: State,
}

enum State {
    Fresh,
    Scanned,
    Reading(Ahead<ReadFault>),
    Ended,
}

/// All layers as one tree.
struct Stacked {
    tree: Tree,
    layers: Vec<Region>,
    counts: LinkCounts,
}

impl ImageSource {
    /// The image that `spec` names.
    ///
    /// # Errors
    /// There is no such image, or it is not whole. Layers are not read yet.
    pub fn open(
        spec: &ImageSpec,
        image: &ImageOptions,
        options: &Options,
    ) -> Result<Self, SourceError> {
        Self::new(spec, false, image, options)
    }

    /// The image at a path that was recognised as one, in the first of these formats in which it is whole.
    pub(crate) fn recognised(
        path: &Path,
        (format, otherwise): (ImageFormat, Option<ImageFormat>),
        image: &ImageOptions,
        options: &Options,
    ) -> Result<Self, SourceError> {
        let open = |format| {
            let spec = ImageSpec { format, path: path.into(), reference: None };
            Self::new(&spec, true, image, options)
        };
        open(format).or_else(|error| match otherwise {
            // The first format is the one that was meant.
            Some(format) => open(format).map_err(|_| error),
            None => Err(error),
        })
    }

    fn new(
        spec: &ImageSpec,
        is_recognised: bool,
        image: &ImageOptions,
        options: &Options,
    ) -> Result<Self, SourceError> {
        let name = spec.to_string();
        let failed = |problem| Box::new(ImageError { image: name.clone(), problem });
        let reference = spec.reference.as_deref();
        let store = match spec.format {
            ImageFormat::Oci => {
                let there = std::fs::metadata(&spec.path).and_then(|metadata| match metadata {
                    directory if directory.is_dir() => Ok(()),
                    _ => Err(io::ErrorKind::NotADirectory.into()),
                });
                there.map_err(|source| SourceError::Open { path: spec.path.clone(), source })?;
                Store::Directory(spec.path.clone())
            }
            ImageFormat::OciArchive | ImageFormat::DockerArchive => {
                Store::archive(&spec.path, options)?
            }
        };
        let chosen = match spec.format {
            ImageFormat::DockerArchive => saved::choose(&store, reference, image),
            format => choose::from_layout(&store, format, reference, image),
        };
        let Chosen { config_bytes, config, layers: blobs } = chosen.map_err(failed)?;
        let report = ImageReport {
            spec: spec.clone(),
            is_recognised,
            platform: config.platform(),
            layers: blobs.len(),
            config: config_bytes,
        };
        Ok(Self {
            name,
            options: options.clone(),
            has_labels: image.labels,
            report,
            config,
            blobs,
            stacked: None,
            verification: None,
            warnings: Warnings::default(),
            state: State::Fresh,
        })
    }

    /// What it tells of itself.
    pub fn report(&self) -> &ImageReport {
        &self.report
    }

    fn problem(&self, problem: ImageProblem) -> SourceError {
        Box::new(ImageError { image: self.name.clone(), problem }).into()
    }

    /// The first pass.
    fn survey(&mut self) -> Result<Arc<Stacked>, SourceError> {
        let Survey { mut tree, layers, claims, warnings } =
            survey::survey(&self.name, &self.blobs, &self.options)?;
        if self.has_labels {
            label(&mut tree, &self.config).map_err(|problem| self.problem(problem))?;
        }
        let counts = link_counts(&tree, &self.options.exclude);
        self.warnings = warnings;
        self.verification = Some(Verification::start(claims).map_err(SourceError::Thread)?);
        let stacked = Arc::new(Stacked { tree, layers, counts });
        self.stacked = Some(Arc::clone(&stacked));
        Ok(stacked)
    }

    /// Starts the second pass.
    fn read(&self, stacked: Arc<Stacked>) -> Result<Ahead<ReadFault>, SourceError> {
        let exclude = self.options.exclude.clone();
        let warnings = self.warnings.clone();
        let read = move |filling: &mut Filling<ReadFault>| {
            let Stacked { tree, layers, counts } = &*stacked;
            Gather::new(layers).run(tree, Walk::new(tree, &exclude, counts), filling)?;
            Ok(warnings)
        };
        Ahead::start(read).map_err(SourceError::Thread)
    }

    fn read_fault(&self, fault: ReadFault) -> SourceError {
        let ReadFault { layer, source } = fault;
        let source = match source.kind() {
            io::ErrorKind::UnexpectedEof => {
                io::Error::other("the file became shorter while it was read")
            }
            _ => source,
        };
        let layer = layer as usize;
        let name = self.blobs.get(layer).map_or_else(String::new, |blob| blob.name.clone());
        self.problem(ImageProblem::Read { role: Role::Layer(layer + 1), name, source })
    }
}

/// Gives the root the labels of the config as attributes.
fn label(tree: &mut Tree, config: &Config) -> Result<(), ImageProblem> {
    let root = tree.node_mut(ROOT);
    let mut xattrs = std::mem::take(&mut root.xattrs).into_vec();
    for (name, value) in config.labels() {
        let full = [b"user.", name.as_bytes()].concat();
        let fits = full.len() <= MAX_XATTR_NAME && value.len() <= MAX_XATTR_VALUE;
        if !fits || name.is_empty() || name.contains('\0') {
            return Err(ImageProblem::Label { name: name.chars().take(100).collect() });
        }
        xattrs.retain(|xattr| xattr.name != full);
        xattrs.push(Xattr { name: full, value: value.as_bytes().to_vec() });
    }
    sort_by_name(&mut xattrs);
    if let (Body::Directory(directory), false) = (&mut root.body, xattrs.is_empty()) {
        directory.is_implicit = false;
    }
    root.xattrs = xattrs.into_boxed_slice();
    Ok(())
}

impl Source for ImageSource {
    fn scan(&mut self, visit: &mut dyn FnMut(&Entry)) -> Result<(), SourceError> {
        if !matches!(self.state, State::Fresh) {
            return Err(SourceError::ScanTooLate);
        }
        self.state = State::Ended;
        let stacked = self.survey()?;
        let mut walk = Walk::new(&stacked.tree, &self.options.exclude, &stacked.counts);
        while let Some((entry, _)) = walk.next() {
            visit(&entry);
        }
        self.state = State::Scanned;
        Ok(())
    }

    fn next_entry(&mut self) -> Result<Option<Entry>, SourceError> {
        let mut reading = match std::mem::replace(&mut self.state, State::Ended) {
            State::Fresh => {
                let stacked = self.survey()?;
                self.read(stacked)?
            }
            State::Scanned => match &self.stacked {
                Some(stacked) => self.read(Arc::clone(stacked))?,
                None => return Err(SourceError::NotScanned),
            },
            State::Reading(reading) => reading,
            State::Ended => return Ok(None),
        };
        let entry = reading.next_entry().map_err(|fault| self.read_fault(fault))?;
        if entry.is_some() {
            self.state = State::Reading(reading);
        } else if let Some(verification) = self.verification.take() {
            verification.finish().map_err(|problem| self.problem(problem))?;
        }
        Ok(entry)
    }

    fn next_data(&mut self) -> Result<Option<Data>, SourceError> {
        let State::Reading(reading) = &mut self.state else { return Ok(None) };
        let result = reading.next_data();
        if result.is_err() {
            self.state = State::Ended;
        }
        result.map_err(|fault| self.read_fault(fault))
    }

    fn restart(&mut self) -> Result<(), SourceError> {
        if self.stacked.is_none() {
            return Err(SourceError::NotScanned);
        }
        self.state = State::Scanned;
        Ok(())
    }

    fn warnings(&self) -> Warnings {
        self.warnings.clone()
    }
}
