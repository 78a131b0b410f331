//! A tree that a command reads, whatever has it: a volume, or any source of a build.

use crate::image::{ImageArgs, Part};
use anyhow::{Context, Result};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use undercroft_block::stack::{Description, NetworkLeaf};
use undercroft_image::unpack::VolumeSource;
use undercroft_source::{Options, Source, SourceSpec};

/// What the superblock of a volume begins with.
const VOLUME: &[u8] = b"XFSB";
/// What ends the first sector of a disk with partitions.
const DISK: &[u8] = &[0x55, 0xaa];
/// What the headers of archives have at 257.
const ARCHIVE: &[u8] = b"ustar";

/// Opens a tree: a volume where there is one, else a source. `part` is for volumes.
pub(crate) fn open(text: &OsStr, part: Part, options: &Options) -> Result<Box<dyn Source>> {
    let spec = SourceSpec::from(PathBuf::from(text));
    let is_volume = match &spec {
        SourceSpec::Path(path) => holds_volume(path, part != Part::default())
            .with_context(|| format!("cannot open {}", path.display()))?,
        _ => false,
    };
    if !is_volume {
        return Ok(undercroft_source::open(&spec, options)?);
    }
    let path = Path::new(text);
    let image =
        if path.exists() { Description::from(path) } else { Description::from_argument(text)? };
    let volume = ImageArgs::part_of(image, part).open()?;
    Ok(Box::new(VolumeSource::new(&volume)))
}

/// Whether a path is one of a device with a volume, or of a disk; a name of no file describes a
/// network disk or a stacked device.
fn holds_volume(path: &Path, in_part: bool) -> io::Result<bool> {
    let Ok(metadata) = path.metadata() else {
        let text = path.as_os_str().as_encoded_bytes();
        let is_uri = path.to_str().and_then(NetworkLeaf::parse).is_some();
        return Ok(is_uri || text.starts_with(b"@") || text.contains(&b'('));
    };
    let kind = metadata.file_type();
    if kind.is_block_device() || !kind.is_file() {
        return Ok(kind.is_block_device());
    }
    let mut start = Vec::new();
    File::open(path)?.take(512).read_to_end(&mut start)?;
    let has = |at: usize, bytes: &[u8]| start.get(at..).is_some_and(|rest| rest.starts_with(bytes));
    Ok(in_part || has(0, VOLUME) || has(510, DISK) && !has(257, ARCHIVE))
}
