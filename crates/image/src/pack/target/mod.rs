//! The image on its way: files without names until it is whole, or block devices, and the device
//! that is stacked on them.

mod file;
mod naming;
#[cfg(test)]
mod tests;

use super::PackError;
use file::{TargetFile, TargetKind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use undercroft_block::BlockDevice;
use undercroft_block::stack::{Allotment, Description, MirrorEvent, StackError};

/// Where an image goes.
#[derive(Debug)]
pub(super) struct Target {
    image: Description,
    /// In the order of [`Description::files`].
    files: Vec<TargetFile>,
    /// Legs that mirrors dropped while the image was written.
    dropped: Arc<Mutex<Vec<String>>>,
}

impl Target {
    /// Opens a target for an image.
    ///
    /// # Errors
    /// A file of it exists and `force` is not set, is in use, occurs twice, or cannot be written.
    pub(super) fn open(image: &Description, force: bool) -> Result<Self, PackError> {
        // The second claim of a file would find it in use, by ourselves.
        image.check_distinct()?;
        let mut files: Vec<TargetFile> = Vec::new();
        for leaf in image.files() {
            let file = TargetFile::open(leaf, force)?;
            if files.iter().any(|other| other.identity == file.identity) {
                return Err(StackError::Twice { path: file.path }.into());
            }
            if let (Some(found), Some(expected)) = (file.fixed_size(), leaf.size)
                && found != expected
            {
                return Err(StackError::Length { path: file.path, found, expected }.into());
            }
            files.push(file);
        }
        Ok(Self { image: image.clone(), files, dropped: Arc::default() })
    }

    /// Names under which the image, or a file that it replaces, can be seen.
    pub(super) fn names(&self) -> Vec<PathBuf> {
        let temporary = self.files.iter().filter_map(|file| match &file.place {
            TargetKind::Named { file, .. } => Some(file.path().to_owned()),
            TargetKind::Anonymous { .. } | TargetKind::Device(_) => None,
        });
        self.files.iter().map(|file| file.path.clone()).chain(temporary).collect()
    }

    fn allotment(&self) -> Allotment<'_> {
        let mut files = self.files.iter();
        Allotment::new(&self.image, |_| files.next()?.fixed_size())
    }

    /// Bytes that fit a target whose files have their lengths already.
    pub(super) fn fixed_size(&self) -> Option<u64> {
        self.allotment().capacity()
    }

    /// The target as a device of at least `bytes` bytes. Its files become empty first.
    ///
    /// # Errors
    /// A file that cannot grow is too short, or cannot be used.
    pub(super) fn device(&mut self, bytes: u64) -> Result<Arc<dyn BlockDevice>, PackError> {
        let lengths = self.allotment().lengths(bytes)?;
        self.dropped = Arc::default();
        let dropped = Arc::clone(&self.dropped);
        let observer = Arc::new(move |event: &MirrorEvent| {
            if let MirrorEvent::Dropped { .. } = event {
                // A thread that panicked with the lock has pushed a whole line or none.
                let mut dropped = dropped.lock().unwrap_or_else(PoisonError::into_inner);
                dropped.push(event.to_string());
            }
        });
        let mut files = self.files.iter().zip(lengths);
        self.image.assemble(Some(observer), &mut |leaf| {
            // There is one for each leaf, in the same order.
            let Some((file, length)) = files.next() else { return Err(StackError::NoLegs.into()) };
            file.device(leaf, length)
        })
    }

    /// Gives the whole image its name.
    ///
    /// # Errors
    /// A leg of a mirror does not hold all of it, or a name cannot be given; no file has one then.
    pub(super) fn finish(self, durable: bool) -> Result<(), PackError> {
        let dropped = self.dropped.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(event) = dropped.first() {
            return Err(PackError::LegDropped(event.clone()));
        }
        drop(dropped);
        let names: Vec<_> = self
            .files
            .iter()
            .filter(|file| !matches!(file.place, TargetKind::Device(_)))
            .map(|file| file.path.clone())
            .collect();
        naming::name_all(self.files)?;
        if durable {
            naming::sync_directories(&names)?;
        }
        Ok(())
    }
}

impl From<naming::Failed> for PackError {
    fn from(failed: naming::Failed) -> Self {
        let naming::Failed { action, path, source } = failed;
        Self::Target { action, image: path, source }
    }
}
