//! From the description of a device to the volume in it.

use std::sync::Arc;

use pyo3::prelude::*;
use undercroft_block::stack::{Description, DiskFormat};
use undercroft_block::{BlockDevice, Sector, Window};
use undercroft_container::layers::{Choice, Depth, Layers, PartitionChoice};
use undercroft_container::luks::Keys;

use crate::error::Failure;

/// The place of the volume in a disk; without anything it is the only one. In Python a dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Place {
    pub(crate) partition: Option<String>,
    pub(crate) logical: Option<String>,
    pub(crate) offset: Option<u64>,
    pub(crate) keys: Vec<Vec<u8>>,
}

/// Hands on what takes long, and why, as a warning.
fn warn(what: &str) {
    Python::attach(|py| {
        let warned = py.import("warnings").and_then(|module| module.call_method1("warn", (what,)));
        // Warnings may be errors to a program, but there is no caller to raise them to.
        if let Err(error) = warned {
            error.write_unraisable(py, None);
        }
    });
}

/// Opens the device of a description.
pub(crate) fn open(
    image: &str,
    read_only: bool,
    raw: bool,
) -> Result<Arc<dyn BlockDevice>, Failure> {
    undercroft_container::register(warn);
    undercroft_nbd::client::register();
    let description: Description =
        image.parse().map_err(|error| Failure::Value(format!("{image}: {error}")))?;
    let format = if raw { DiskFormat::Raw } else { DiskFormat::Auto };
    Ok(description.with_format(format).open_with_limit(read_only, None, None)?)
}

/// The device that the volume fills.
pub(crate) fn volume_in(
    disk: Arc<dyn BlockDevice>,
    place: Place,
) -> Result<Arc<dyn BlockDevice>, Failure> {
    if let Some(offset) = place.offset {
        let start = Sector::from_bytes(offset)
            .ok_or_else(|| Failure::Value(format!("offset {offset} is no multiple of 512")))?;
        let window = Window::from_sector(disk, start)
            .ok_or_else(|| Failure::NoVolume(format!("offset {offset} is behind the end")))?;
        return Ok(Arc::new(window));
    }
    let partition = place.partition.map(PartitionChoice::from);
    let choice = Choice { partition, logical: place.logical };
    let mut keys = Keys::default();
    place.keys.into_iter().for_each(|key| keys.add(key));
    let layers = Layers::look(&disk, &choice, Depth::Volumes, &keys)?;
    match layers.select(&choice, false) {
        Ok(selected) => Ok(selected.device),
        Err(why) if layers.is_locked() => {
            Err(Failure::NoVolume(format!("{}: {why}, and a key is missing", disk.name())))
        }
        Err(why) => Err(Failure::NoVolume(format!("{}: {why}", disk.name()))),
    }
}
