//! A tree that a command reads, whatever has it: a volume, or any source of a build.

use crate::image::{ImageArgs, Part};
use crate::output_file::is_volume_or_disk;
use anyhow::Result;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use undercroft_block::stack::Description;
use undercroft_image::unpack::VolumeSource;
use undercroft_source::{Options, Source, SourceSpec};

/// Opens the tree that `name` names. It is a volume if a part of an image is meant, if it is a device
/// stacked on several, or if it begins as volumes and disks do.
pub(crate) fn open(name: &OsString, part: Part, options: &Options) -> Result<Box<dyn Source>> {
    let spec = SourceSpec::from(PathBuf::from(name));
    let SourceSpec::Path(path) = &spec else {
        return Ok(undercroft_source::open(&spec, options)?);
    };
    let stack = Description::from_argument(name).ok().filter(|image| image.as_path().is_none());
    if part == Part::default() && stack.is_none() && !is_image(path) {
        return Ok(undercroft_source::open(&spec, options)?);
    }
    let image = match stack {
        Some(image) => image,
        None => Description::from_argument(name)?,
    };
    let volume = ImageArgs::part_of(image, part).open()?;
    Ok(Box::new(VolumeSource::new(&volume)))
}

/// Whether there is a disk, or a file with a volume or a partition table.
fn is_image(path: &Path) -> bool {
    let Ok(metadata) = path.metadata() else { return false };
    if !metadata.is_file() {
        return metadata.file_type().is_block_device();
    }
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(1024).read_to_end(&mut head));
    read.is_ok() && is_volume_or_disk(&head)
}
