//! The image on its way: files without names until it is whole, or devices that are written in
//! place, and the device that is stacked on them.

mod contents;
mod file;
mod link;
mod naming;
mod qcow2;
#[cfg(test)]
mod tests;

use super::{ImageFormat, PackError};
use file::{TargetFile, TargetKind};
pub use qcow2::to_qcow2;
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use undercroft_block::stack::{Allotment, Description, LeafDescription, MirrorEvent, StackError};
use undercroft_block::{BlockDevice, SECTOR_SIZE, Sector, flush, write_all_at};
use undercroft_xfs::mkfs::MkfsOptions;

/// Where an image goes.
#[derive(Debug)]
pub(super) struct Target {
    image: Description,
    /// In the order of [`Description::leaves`].
    files: Vec<TargetFile>,
    /// Legs that mirrors dropped while the image was written.
    dropped: Arc<Mutex<Vec<String>>>,
    /// The bytes of the image, where its file will hold them in another format.
    raw: Option<File>,
}

impl Target {
    /// Opens a target for an image.
    ///
    /// # Errors
    /// A file of it exists, or a device holds something, and `force` is not set; it is in use, occurs
    /// twice, or cannot be written; or it cannot have the format.
    pub(super) fn open(
        image: &Description,
        force: bool,
        format: ImageFormat,
    ) -> Result<Self, PackError> {
        // The second claim of a file would find it in use, by ourselves.
        image.check_distinct()?;
        let mut files: Vec<TargetFile> = Vec::new();
        for leaf in image.leaves() {
            let file = TargetFile::open(leaf, force)?;
            if files.iter().any(|other| other.identity == file.identity) {
                return Err(StackError::Twice { path: file.path }.into());
            }
            if let LeafDescription::File(leaf) = leaf
                && let (Some(found), Some(expected)) = (file.fixed_size(), leaf.size)
                && found != expected
            {
                return Err(StackError::Length { path: file.path, found, expected }.into());
            }
            files.push(file);
        }
        let raw = match format {
            ImageFormat::Raw => None,
            ImageFormat::Qcow2 => match (&files[..], image) {
                ([file], Description::File(_)) if file.fixed_size().is_none() => {
                    Some(file::scratch(&file.path)?)
                }
                _ => return Err(PackError::FormatOfTarget(image.to_string())),
            },
        };
        Ok(Self { image: image.clone(), files, dropped: Arc::default(), raw })
    }

    /// The format of a volume that fits the blocks of the target: its sectors are no shorter.
    ///
    /// # Errors
    /// No volume with blocks like these fits.
    pub(super) fn format(&self, wanted: &MkfsOptions) -> Result<MkfsOptions, PackError> {
        let device = self.block_size();
        let sector_size = u32::try_from(device).unwrap_or(u32::MAX).max(wanted.sector_size);
        if device > wanted.block_size.into() {
            let (image, block) = (self.image.to_string(), wanted.block_size);
            return Err(PackError::ShortBlocks { image, device, block });
        }
        Ok(MkfsOptions { sector_size, ..wanted.clone() })
    }

    /// Bytes of a block of the target: those of its devices.
    pub(super) fn block_size(&self) -> u64 {
        self.files.iter().map(TargetFile::block_size).max().unwrap_or(SECTOR_SIZE)
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
            file.device(leaf, length, self.raw.as_ref())
        })
    }

    /// Takes a volume away again that stays on devices: what it is known by becomes zeros.
    pub(super) fn spoil(&self, volume: &Arc<dyn BlockDevice>) {
        let is_device = |file: &TargetFile| matches!(file.place, TargetKind::Device(_));
        if self.files.iter().any(is_device) {
            // The error to report is the one that led here.
            let _ = write_all_at(&**volume, Sector(0), &[0; SECTOR_SIZE as usize])
                .and_then(|()| flush(&**volume));
        }
    }

    /// Gives the whole image its name. `progress` is told how many bytes are in another format.
    ///
    /// # Errors
    /// A leg of a mirror does not hold all of it, or a name cannot be given; no file has one then.
    pub(super) fn finish(
        self,
        durable: bool,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), PackError> {
        let dropped = self.dropped.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(event) = dropped.first() {
            return Err(PackError::LegDropped(event.clone()));
        }
        drop(dropped);
        if let (Some(raw), [file]) = (&self.raw, &self.files[..]) {
            file.convert(raw, durable, progress)?;
        }
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
