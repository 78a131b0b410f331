//! A tree on the command line.

use crate::image::ImageArgs;
use anyhow::{Context, Result};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use undercroft_block::stack::Description;
use undercroft_image::unpack::VolumeSource;
use undercroft_source::{Exclude, Options, Source, SourceSpec, open};

/// What the superblock of a volume begins with.
const VOLUME: &[u8] = b"XFSB";
/// What ends the first sector of a disk with partitions.
const DISK: &[u8] = &[0x55, 0xaa];
/// What the headers of archives have at 257.
const ARCHIVE: &[u8] = b"ustar";

/// A tree that is open.
pub(super) struct Operand {
    source: Box<dyn Source>,
}

impl Operand {
    /// Opens a tree: a volume where there is one, else a source. `partition` is for volumes.
    pub(super) fn open(text: &OsStr, partition: Option<u32>, exclude: &Exclude) -> Result<Self> {
        let path = Path::new(text);
        let spec = SourceSpec::from(PathBuf::from(text));
        let is_volume = match &spec {
            SourceSpec::Path(path) => holds_volume(path, partition.is_some())
                .with_context(|| format!("cannot open {}", path.display()))?,
            _ => false,
        };
        let source: Box<dyn Source> = if is_volume {
            let image = if path.exists() {
                Description::from(path)
            } else {
                Description::from_argument(text)?
            };
            let image = ImageArgs::whole(image).in_partition(partition);
            Box::new(VolumeSource::new(&image.open()?))
        } else {
            let options = Options { sorted: true, exclude: exclude.clone(), ..Options::default() };
            open(&spec, &options)?
        };
        Ok(Self { source })
    }

    pub(super) fn source(&mut self) -> &mut dyn Source {
        self.source.as_mut()
    }
}

/// Whether a path is one of a device with a volume, or of a disk; a name of no file describes a
/// stacked device.
fn holds_volume(path: &Path, in_partition: bool) -> std::io::Result<bool> {
    let Ok(metadata) = path.metadata() else {
        let text = path.as_os_str().as_encoded_bytes();
        return Ok(text.starts_with(b"@") || text.contains(&b'('));
    };
    let kind = metadata.file_type();
    if kind.is_block_device() || !kind.is_file() {
        return Ok(kind.is_block_device());
    }
    let mut start = Vec::new();
    File::open(path)?.take(512).read_to_end(&mut start)?;
    let has = |at: usize, bytes: &[u8]| start.get(at..).is_some_and(|rest| rest.starts_with(bytes));
    Ok(in_partition || has(0, VOLUME) || has(510, DISK) && !has(257, ARCHIVE))
}
