//! The first pass over an image: layers are decompressed, their digests and headers read, by several
//! threads, and stacked.

use super::choose::Blob;
use super::error::{ImageError, ImageProblem, Role};
use super::layer::{self, Layer, LayerFault, LayerName};
use super::stack;
use super::unpacked::{self, Unpacked};
use super::verification::Claim;
use crate::region::Region;
use crate::sorted::Tree;
use crate::tar::TarError;
use crate::{Options, SourceError, Warnings};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// Most layers that are read at a time.
const MAX_THREADS: usize = 8;

/// What a survey found.
pub(super) struct Survey {
    pub(super) tree: Tree,
    /// The uncompressed layers, from the bottom up.
    pub(super) layers: Vec<Region>,
    /// Digests that are still to be compared.
    pub(super) claims: Vec<Claim>,
    pub(super) warnings: Warnings,
}

/// A layer that a thread has read.
type Read = Result<(Layer, Unpacked), LayerFault>;

/// Reads all layers of the image that is named `image` in errors.
pub(super) fn survey(
    image: &str,
    blobs: &[Blob],
    options: &Options,
) -> Result<Survey, SourceError> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let threads = processors.min(MAX_THREADS).min(blobs.len());
    let work = Work {
        image,
        blobs,
        options,
        next: AtomicUsize::new(0),
        failed: AtomicUsize::new(usize::MAX),
    };
    thread::scope(|scope| {
        let (sender, receiver) = channel();
        for _ in 0..threads {
            let (work, sender) = (&work, sender.clone());
            thread::Builder::new()
                .name("source-layer".into())
                .spawn_scoped(scope, move || work.run(&sender))
                .map_err(|error| {
                    // Those that run need not go on.
                    work.failed.store(0, Ordering::Relaxed);
                    SourceError::Thread(error)
                })?;
        }
        drop(sender);
        work.stack(&receiver)
    })
}

/// The work of the threads.
struct Work<'a> {
    image: &'a str,
    blobs: &'a [Blob],
    options: &'a Options,
    /// The layer that the next thread takes.
    next: AtomicUsize,
    /// The lowest layer that failed: those above it no longer matter.
    failed: AtomicUsize,
}

impl Work<'_> {
    fn run(&self, sender: &Sender<(usize, Read)>) {
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            if index >= self.blobs.len() || !self.matters(index) {
                return;
            }
            let read = self.read(index);
            if read.is_err() {
                self.failed.fetch_min(index, Ordering::Relaxed);
            }
            if sender.send((index, read)).is_err() {
                return;
            }
        }
    }

    fn matters(&self, index: usize) -> bool {
        index < self.failed.load(Ordering::Relaxed)
    }

    fn read(&self, index: usize) -> Read {
        let blob = &self.blobs[index];
        let (role, go_on) = (Role::Layer(index + 1), || self.matters(index));
        let archive = format!("{}: {role}, {}", self.image, blob.name);
        let number = u32::try_from(index).map_err(|_| ImageProblem::Entries(u32::MAX))?;
        let read = || {
            let unpacked = unpacked::unpack(&archive, role, blob, self.options, &go_on)?;
            // What is excluded is left out of the stacked tree.
            let options = Options { exclude: crate::Exclude::default(), ..self.options.clone() };
            let name = LayerName { archive: &archive, role, index: number };
            let layer = layer::read(&name, &unpacked.region, unpacked.is_stargz, &options, &go_on)?;
            Ok((layer, unpacked))
        };
        read().map_err(|fault| match fault {
            // Damage is the likeliest reason for what cannot be read.
            LayerFault::Source(SourceError::Fault(fault)) if fault.is::<TarError>() => {
                let damage = unpacked::damage(role, blob, &go_on);
                damage.map_or(LayerFault::Source(SourceError::Fault(fault)), LayerFault::Problem)
            }
            other => other,
        })
    }

    /// Stacks the layers in their order, as they come.
    fn stack(&self, receiver: &Receiver<(usize, Read)>) -> Result<Survey, SourceError> {
        let mut survey = Survey {
            tree: Tree::new(),
            layers: Vec::new(),
            claims: Vec::new(),
            warnings: Warnings::default(),
        };
        let mut waiting = BTreeMap::new();
        for (index, read) in receiver {
            waiting.insert(index, read);
            while let Some(read) = waiting.remove(&survey.layers.len()) {
                let stacked = read.and_then(|read| Ok(survey.add(read)?));
                if let Err(fault) = stacked {
                    self.failed.store(0, Ordering::Relaxed);
                    return Err(self.error(fault));
                }
            }
        }
        Ok(survey)
    }

    fn error(&self, fault: LayerFault) -> SourceError {
        match fault {
            LayerFault::Source(error) => error,
            LayerFault::Problem(problem) => {
                Box::new(ImageError { image: self.image.to_owned(), problem }).into()
            }
        }
    }
}

impl Survey {
    fn add(&mut self, (mut layer, unpacked): (Layer, Unpacked)) -> Result<(), ImageProblem> {
        self.layers.push(unpacked.region);
        self.claims.extend(unpacked.claims);
        let (all, new) = (&mut self.warnings, std::mem::take(&mut layer.warnings));
        all.no_end |= new.no_end;
        all.lone_zero_block = all.lone_zero_block.or(new.lone_zero_block);
        all.foreign_attributes += new.foreign_attributes;
        all.first_foreign = all.first_foreign.take().or(new.first_foreign);
        stack::put_on(&mut self.tree, layer, Role::Layer(self.layers.len()))
    }
}
