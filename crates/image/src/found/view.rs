//! Files that were found as a volume that can be looked at: names and attributes are in a file of its own,
//! the data stays where it lies.

use std::path::PathBuf;
use std::sync::Arc;

use undercroft_block::stack::{Description, Patch, Patchwork, StackError};
use undercroft_block::{BlockDevice, FileDevice, FileOptions, OpenError, SECTOR_SIZE, Sector};
use undercroft_recover::Contents;
use undercroft_source::{Kind, SourceSpec};
use undercroft_xfs::Geometry;
use undercroft_xfs::ops::FileMap;
use uuid::Uuid;

use super::FoundSource;
use crate::pack::{LaidOut, PackError, PackOptions, Progress, lay_out};

/// Why files that were found cannot be shown as a volume.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ViewError {
    /// There is no room for the names and attributes.
    #[error("cannot make a file for names and attributes in {}", directory.display())]
    File {
        /// The directory for temporary files.
        directory: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The file for them cannot be used.
    #[error("cannot use a file for names and attributes in {}", directory.display())]
    Device {
        /// The directory for temporary files.
        directory: PathBuf,
        /// Why not.
        source: OpenError,
    },
    /// No volume can be made of them.
    #[error(transparent)]
    Pack(#[from] PackError),
    /// The devices do not go together.
    #[error(transparent)]
    Stack(#[from] StackError),
}

/// A volume with the entries of `source`, to be read. Its names and attributes are in a file without a name in
/// the directory for temporary files; its data is read from where it was found, when it is asked for. Its
/// UUID is that of the volume which the files are from; its inodes have numbers of their own.
///
/// # Errors
/// No temporary file can be made or filled.
pub fn found_volume(
    source: &mut FoundSource,
    uuid: Uuid,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Arc<dyn BlockDevice>, ViewError> {
    // Neither is opened.
    let nowhere = Description::from(std::path::Path::new("a view"));
    let options =
        PackOptions { uuid: Some(uuid), ..PackOptions::new(SourceSpec::StandardInput, nowhere) };
    let LaidOut { device, maps, geometry } = lay_out(source, &options, &mut temporary, progress)?;
    let patches = patches(source, &maps, &geometry);
    let other = Arc::clone(source.disk.present());
    Ok(Arc::new(Patchwork::new(device, other, patches)?))
}

/// A device on a file without a name.
fn temporary(bytes: u64) -> Result<Arc<dyn BlockDevice>, ViewError> {
    let directory = std::env::temp_dir();
    let made =
        tempfile::tempfile_in(&directory).and_then(|file| file.set_len(bytes).map(|()| file));
    let file = match made {
        Ok(file) => file,
        Err(source) => return Err(ViewError::File { directory, source }),
    };
    let name = format!("a file in {}", directory.display());
    match FileDevice::from_file(file, &name, &FileOptions::default()) {
        Ok(device) => Ok(Arc::new(device)),
        Err(source) => Err(ViewError::Device { directory, source }),
    }
}

/// The sectors of data, and the places for them in the volume, by its sizes.
fn patches(source: &FoundSource, maps: &[FileMap], geometry: &Geometry) -> Vec<Patch> {
    let with_data = source.planned.iter().filter_map(|planned| match &planned.entry.kind {
        Kind::Regular { data, .. } if !data.is_empty() => planned.file,
        _ => None,
    });
    let mut patches = Vec::new();
    for (index, map) in with_data.zip(maps) {
        let mut extents = map.iter().peekable();
        for (bytes, from) in Contents::new(&source.disk, &source.files[index]).places() {
            // Parts of a file begin with blocks, and end with one or with the file.
            let (first, end) = (bytes.start / SECTOR_SIZE, bytes.end.div_ceil(SECTOR_SIZE));
            let mut at = first;
            while at < end
                && let Some(extent) = extents.peek()
            {
                let log = geometry.block_log - 9;
                let (start, behind) = (extent.offset.0 << log, extent.end().0 << log);
                if behind <= at {
                    extents.next();
                    continue;
                }
                // All data has a place.
                let count = end.min(behind) - at;
                let sector = geometry.sector(extent.start).0 + (at - start);
                let from = Sector(from.0 + (at - first));
                patches.push(Patch { sector: Sector(sector), count, from });
                at += count;
            }
        }
    }
    patches
}
