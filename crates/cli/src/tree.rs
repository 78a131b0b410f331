//! A tree that a command reads, whatever has it: a volume, or any source of a build.

use crate::image::{ImageArgs, ImageName, Part};
use anyhow::{Context, Result, anyhow};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use undercroft_block::stack::{Description, NetworkLeaf};
use undercroft_image::unpack::VolumeSource;
use undercroft_source::{FOREIGN_HEAD, Source, SourceOptions, SourceSpec, recognise};

/// Opens a tree: a volume where there is one, else a source. `part` is for volumes.
pub(crate) fn open(text: &OsStr, part: Part, options: &SourceOptions) -> Result<Box<dyn Source>> {
    if ImageName::is_salvaged(text) {
        let image = ImageName::of(text).map_err(|error| anyhow!(error))?;
        let volume = ImageArgs::part_of(image, part).open()?;
        return Ok(Box::new(VolumeSource::new(&volume)));
    }
    let spec = SourceSpec::from(PathBuf::from(text));
    let is_volume = match &spec {
        SourceSpec::Path(path) => is_device(path, part != Part::default())
            .with_context(|| format!("cannot open {}", path.display()))?,
        _ => false,
    };
    if !is_volume {
        return Ok(undercroft_source::open(&spec, options)?.source);
    }
    let path = Path::new(text);
    let image =
        if path.exists() { Description::from(path) } else { Description::from_argument(text)? };
    let volume = ImageArgs::part_of(image, part).open()?;
    Ok(Box::new(VolumeSource::new(&volume)))
}

/// Whether a path is one of a device, or of an image of one, which is to have a volume; a name of no
/// file describes a network disk or a stacked device.
fn is_device(path: &Path, in_part: bool) -> io::Result<bool> {
    let Ok(metadata) = path.metadata() else {
        let text = path.as_os_str().as_encoded_bytes();
        let is_uri = path.to_str().and_then(NetworkLeaf::parse).is_some();
        return Ok(is_uri || text.starts_with(b"@") || text.contains(&b'('));
    };
    let kind = metadata.file_type();
    if kind.is_block_device() || !kind.is_file() {
        return Ok(kind.is_block_device());
    }
    let mut head = Vec::new();
    File::open(path)?.take(FOREIGN_HEAD as u64).read_to_end(&mut head)?;
    Ok(in_part || recognise(&head).is_some_and(|found| found.is_storage()))
}
