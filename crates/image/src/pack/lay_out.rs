//! A volume of a source without the data of its files: where that is to be, another device has it.

use super::populate::{self, Populator};
use super::survey::Survey;
use super::{PackError, PackOptions, Progress, estimate};
use std::sync::Arc;
use undercroft_block::BlockDevice;
use undercroft_source::Source;
use undercroft_xfs::Geometry;
use undercroft_xfs::mkfs::{self, MkfsOptions};
use undercroft_xfs::ops::FileMap;

/// A volume whose files have places for their data.
pub(crate) struct LaidOut {
    /// The device of the volume.
    pub(crate) device: Arc<dyn BlockDevice>,
    /// The places for the data of the files that have some, in the order of the source.
    pub(crate) maps: Vec<FileMap>,
    /// Sizes of the volume.
    pub(crate) geometry: Geometry,
}

/// Makes the volume of a source on a device that `device` makes of a length. What these say of the image, the
/// source and the size in `options` does not count.
///
/// # Errors
/// As [`build`](super::build), and what `device` fails with.
pub(crate) fn lay_out<E: From<PackError>>(
    source: &mut dyn Source,
    options: &PackOptions,
    device: &mut dyn FnMut(u64) -> Result<Arc<dyn BlockDevice>, E>,
    progress: &mut dyn FnMut(&Progress),
) -> Result<LaidOut, E> {
    let survey = Survey::of(source, options)?;
    let uuid = options.uuid.unwrap_or_else(|| survey.identity());
    let mut format = MkfsOptions { uuid, ..options.volume.clone() };
    format.size = estimate::comfortable(&survey, &format)?;
    loop {
        let device = device(format.size)?;
        let superblock = mkfs::plan(&format).map_err(PackError::from)?;
        let root = populate::root_inode(options);
        let volume = mkfs::begin(&device, superblock, &root).map_err(PackError::volume)?;
        let mut populator =
            Populator::new(&volume, options, Some(&survey), progress)?.without_data();
        match populator.run(source) {
            Ok(()) => {
                let maps = populator.take_maps();
                populator.finish()?;
                mkfs::finish(&volume, false).map_err(PackError::volume)?;
                let geometry = volume.geometry().clone();
                return Ok(LaidOut { device, maps, geometry });
            }
            Err(error) if error.is_full() => {
                format.size = estimate::more(format.size);
                source.restart().map_err(PackError::from)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
}
