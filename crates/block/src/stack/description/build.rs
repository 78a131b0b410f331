//! From a description to a device.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::sync::Arc;
use std::time::Duration;

use super::leaf_options::LeafOptions;
use super::options::FileLeaf;
use super::tree::{Description, LeafDescription};
use crate::device::BlockDevice;
use crate::drivers::{FileDevice, FileOptions};
use crate::stack::{Delay, Linear, Mirror, MirrorEvent, StackError, Stripe, Together};

/// Called with the events of all mirrors in a device.
pub type StackObserver = Arc<dyn Fn(&MirrorEvent) + Send + Sync>;

/// Makes the device of a leaf.
pub type OpenLeaf<'o, E> =
    &'o mut dyn FnMut(LeafDescription<'_>) -> Result<Arc<dyn BlockDevice>, E>;

/// Opens a leaf of a device.
pub(super) fn open_leaf(
    leaf: LeafDescription<'_>,
    wanted: LeafOptions,
) -> Result<Arc<dyn BlockDevice>, StackError> {
    let file = match leaf {
        LeafDescription::File(file) => file,
        LeafDescription::Network(leaf) => return leaf.open(wanted),
    };
    if let Some(device) = file.open_container(wanted)? {
        file.check_length(&*device)?;
        return Ok(device);
    }
    let mut options = file.device_options(wanted.read_only);
    options.queue.time_limit = wanted.time_limit;
    let device = FileDevice::open_with(&file.path, &options)?;
    file.check_length(&device)?;
    Ok(Arc::new(device))
}

/// Checks that no leaf occurs twice, a file even under other names; one that does not exist is found
/// when it is opened.
pub(super) fn check_distinct(leaves: &[LeafDescription<'_>]) -> Result<(), StackError> {
    let mut seen = Vec::new();
    for (number, leaf) in leaves.iter().enumerate() {
        let file = match leaf {
            LeafDescription::File(file) => file,
            LeafDescription::Network(network) if leaves[..number].contains(leaf) => {
                return Err(StackError::Twice { path: network.uri.clone().into() });
            }
            LeafDescription::Network(_) => continue,
        };
        if let Some(identity) = file.identity() {
            if seen.contains(&identity) {
                return Err(StackError::Twice { path: file.path.clone() });
            }
            seen.push(identity);
        }
    }
    Ok(())
}

impl Description {
    /// Opens the leaves, which exist, and stacks the devices on them.
    ///
    /// # Errors
    /// A leaf cannot be opened, has not the length that the description says, or is there twice;
    /// or the leaves do not make a device.
    pub fn open(
        &self,
        read_only: bool,
        observer: Option<StackObserver>,
    ) -> Result<Arc<dyn BlockDevice>, StackError> {
        self.open_with_limit(read_only, None, observer)
    }

    /// As [`open`](Self::open), and requests have a
    /// [time limit](crate::QueueOptions::time_limit).
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with_limit(
        &self,
        read_only: bool,
        time_limit: Option<Duration>,
        observer: Option<StackObserver>,
    ) -> Result<Arc<dyn BlockDevice>, StackError> {
        self.check_distinct()?;
        let wanted = LeafOptions { read_only, time_limit };
        self.assemble(observer, &mut |leaf| open_leaf(leaf, wanted))
    }

    /// Checks that no leaf occurs twice, a file even under other names.
    ///
    /// # Errors
    /// [`StackError::Twice`].
    pub fn check_distinct(&self) -> Result<(), StackError> {
        check_distinct(&self.leaves())
    }

    /// Stacks devices on the ones that `open` returns for the leaves, called in the order of
    /// [`leaves`](Self::leaves).
    ///
    /// # Errors
    /// Those of `open`, and devices that cannot be stacked.
    pub fn assemble<E: From<StackError>>(
        &self,
        observer: Option<StackObserver>,
        open: OpenLeaf<'_, E>,
    ) -> Result<Arc<dyn BlockDevice>, E> {
        match self {
            Self::File(file) => return open(LeafDescription::File(file)),
            Self::Network(leaf) => return open(LeafDescription::Network(leaf)),
            Self::Delay { slowness, leg } => {
                return Ok(Arc::new(Delay::new(*slowness, leg.assemble(observer, open)?)));
            }
            Self::Linear(_) | Self::Stripe { .. } | Self::Mirror(_) | Self::Set { .. } => {}
        }
        let legs = self.legs().iter().map(|leg| leg.assemble(observer.clone(), open));
        let legs = legs.collect::<Result<Vec<_>, E>>()?;
        Ok(match self {
            Self::Stripe { chunk, .. } => Arc::new(Stripe::new(*chunk, legs)?),
            Self::Set { kind, .. } => Arc::new(Together::new(kind, legs)?),
            Self::Mirror(_) => {
                let mirror = Mirror::new(legs)?;
                if let Some(observer) = observer {
                    mirror.observe(move |event| observer(event));
                }
                Arc::new(mirror)
            }
            Self::Linear(_) | Self::File(_) | Self::Network(_) | Self::Delay { .. } => {
                Arc::new(Linear::new(legs)?)
            }
        })
    }
}

impl FileLeaf {
    /// How a device on this file works.
    #[must_use]
    pub fn device_options(&self, read_only: bool) -> FileOptions {
        let Self { engine, polled, .. } = *self;
        let direct = self.direct || polled;
        FileOptions { read_only, direct, engine, polled, ..FileOptions::default() }
    }

    fn check_length(&self, device: &dyn BlockDevice) -> Result<(), StackError> {
        let found = device.capacity().to_bytes().unwrap_or(u64::MAX);
        match self.size {
            Some(expected) if expected != found => {
                Err(StackError::Length { path: self.path.clone(), found, expected })
            }
            _ => Ok(()),
        }
    }

    /// The identity of the file, independent of its path.
    fn identity(&self) -> Option<(bool, u64, u64)> {
        let metadata = self.path.metadata().ok()?;
        if metadata.file_type().is_block_device() {
            Some((true, metadata.rdev(), 0))
        } else {
            Some((false, metadata.dev(), metadata.ino()))
        }
    }
}
