//! Images from trees: a directory, an archive or a container image becomes a volume.
//!
//! A build runs in one order, with any number of threads: the source delivers its entries in a
//! fixed order, each becomes one transaction of the file system's bulk mode, and file data goes to
//! the device as it comes. The size that fits and the identity of the volume are not known before
//! the source was read. They come from a survey, a first pass over the entries without their data.
//!
//! The image appears under its name only when it is whole.

mod empty;
mod error;
mod estimate;
mod gaps;
mod identity;
mod kernels;
mod lay_out;
mod options;
mod populate;
mod replaced;
mod share;
mod survey;
mod target;
#[cfg(test)]
mod tests;
mod verify;

pub use empty::{Empty, EmptyOptions, make_empty};
pub use error::PackError;
pub use kernels::OldKernel;
pub(crate) use lay_out::{LaidOut, lay_out};
pub use options::{Free, ImageFormat, PackOptions, Reflink, SizeChoice};
pub use populate::{Progress, file_type};
pub use survey::Survey;
pub use target::to_qcow2;

use crate::disk::{DiskError, DiskPlan, DiskSummary, Layout};
use crate::own_image::WithoutImage;
use kernels::Kernels;
use populate::Populator;
use std::sync::Arc;
use target::Target;
use undercroft_block::stack::DeviceReport;
use undercroft_block::{BlockDevice, flush};
use undercroft_source::oci::ImageReport;
use undercroft_source::{Opened, Source, Warnings};
use undercroft_xfs::format::Superblock;
use undercroft_xfs::mkfs::{self, MkfsOptions};
use uuid::Uuid;

/// The volume that was built.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Summary {
    /// Regular files.
    pub files: u64,
    /// Directories, the root included.
    pub directories: u64,
    /// Symbolic links.
    pub symlinks: u64,
    /// Devices, FIFOs and sockets.
    pub specials: u64,
    /// Further names of files.
    pub hard_links: u64,
    /// Bytes of file data, holes not counted.
    pub bytes: u64,
    /// Bytes of file data whose blocks the image shares with the source.
    pub shared_bytes: u64,
    /// Entries with a time that the volume cannot hold; they got the nearest that it can.
    pub clamped_times: u64,
    /// Length of the volume.
    pub image_bytes: u64,
    /// Bytes free in the volume.
    pub free_bytes: u64,
    /// Of those, the bytes that only the volume's trees may take, as they grow.
    pub reserved_bytes: u64,
    /// Of the free ones, the bytes that files can take where a kernel has mounted the volume: without
    /// the reserved ones and those that it keeps back itself.
    pub available_bytes: u64,
    /// The disk around the volume, if one was made.
    pub disk: Option<DiskSummary>,
    /// The warnings of the source.
    pub warnings: Warnings,
    /// The newest kernel in the source, if it does not mount the volume.
    pub old_kernel: Option<OldKernel>,
    /// The container image that the source was, if it was one.
    pub image: Option<ImageReport>,
    /// What passed through the devices: the whole one first, then those it is stacked on.
    pub devices: Vec<DeviceReport>,
}

impl Summary {
    /// Inodes of all kinds.
    fn inodes(&self) -> u64 {
        self.files + self.directories + self.symlinks + self.specials
    }
}

/// Builds an image. `progress` is called now and then.
///
/// # Errors
/// Everything that can be wrong with the source, the options and the target; the target is then as
/// it was, unless it is a block device, which holds no file system then.
pub fn build(
    options: &PackOptions,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Summary, PackError> {
    if options.verify {
        verify::check_source(options)?;
    }
    let opened = undercroft_source::open(&options.source, &options.source_options)?;
    build_from(opened, options, progress)
}

/// As [`build`], of a source that is open; that of the options does not count, and nothing is verified.
///
/// # Errors
/// As [`build`].
pub fn build_from(
    opened: Opened,
    options: &PackOptions,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Summary, PackError> {
    let mut target = Target::open(&options.image, options.force, options.format)?;
    let disk = options
        .disk
        .as_ref()
        .map(|disk| DiskPlan::new(disk, target.fixed_size(), target.block_size()));
    let disk = disk.transpose()?;
    let image = opened.image.clone();
    let mut source = WithoutImage::new(opened, &options.source, target.names());
    let mut format = target.format(&options.volume)?;
    if options.preset_of_kernel {
        let mut kernels = Kernels::default();
        source.scan(&mut |entry| kernels.add(entry))?;
        format.preset = kernels.preset().unwrap_or(format.preset);
    }
    let options = &PackOptions { volume: format, ..options.clone() };
    let room = disk.as_ref().map_or(target.fixed_size(), DiskPlan::volume_room);
    let wanted = match (&options.size, room) {
        (SizeChoice::Auto | SizeChoice::Free(_), Some(bytes)) => SizeChoice::Exact(bytes),
        (choice, _) => *choice,
    };
    if let SizeChoice::Free(Free::Percent(100..) | Free::Bytes(estimate::LARGEST..)) = options.size
    {
        return Err(PackError::FreeTooLarge);
    }
    let survey = match (wanted, options.uuid) {
        (SizeChoice::Exact(_), Some(_)) => None,
        _ => Some(Survey::of(&mut source, options)?),
    };
    let mut volume = volume_options(options, wanted, survey.as_ref())?;
    let may_grow = !matches!(wanted, SizeChoice::Exact(_));
    let mut place = Place { target: &mut target, disk: disk.as_ref() };
    let filled =
        fill(options, &mut volume, may_grow, &mut source, &mut place, survey.as_ref(), progress);
    let mut summary = filled.map_err(|error| {
        let needed = || needed_size(options, survey, volume.size);
        error.with_size(volume.size, &options.image, needed)
    })?;
    summary.image_bytes = volume.size;
    summary.image = image;
    let mut report = Progress { entries: summary.inodes(), ..Progress::default() };
    target.finish(options.durable, &mut |bytes| {
        report.bytes = bytes;
        progress(&report);
    })?;
    Ok(summary)
}

/// Where the volume goes.
struct Place<'a> {
    target: &'a mut Target,
    /// The disk around it.
    disk: Option<&'a DiskPlan>,
}

impl Place<'_> {
    /// The device of the target, and that of a volume of `bytes` bytes, which is a part of it.
    fn devices(&mut self, bytes: u64) -> Result<Devices, PackError> {
        let Some(disk) = self.disk else {
            let whole = self.target.device(bytes)?;
            return Ok(Devices { volume: Arc::clone(&whole), whole, layout: None });
        };
        let layout = disk.layout(bytes)?;
        let whole = self.target.device(layout.bytes)?;
        let volume = disk.volume_window(&whole, &layout);
        Ok(Devices { whole, volume, layout: Some(layout) })
    }

    /// Takes away the table that a disk has had.
    fn clear(&self, devices: &Devices) -> Result<(), PackError> {
        Ok(self.disk.map_or(Ok(()), |_| DiskPlan::clear(&*devices.whole))?)
    }

    /// Writes what stands beside the volume.
    fn complete(
        &self,
        devices: &Devices,
        volume: Uuid,
        durable: bool,
        report: &mut dyn FnMut(u64),
    ) -> Result<Option<DiskSummary>, PackError> {
        let (Some(disk), Some(layout)) = (self.disk, &devices.layout) else { return Ok(None) };
        let summary = disk.write(&devices.whole, layout, volume, report)?;
        if durable {
            flush(&*devices.whole).map_err(DiskError::from)?;
        }
        Ok(Some(summary))
    }
}

/// The devices of one attempt.
struct Devices {
    whole: Arc<dyn BlockDevice>,
    volume: Arc<dyn BlockDevice>,
    /// Where the partitions of a disk are.
    layout: Option<Layout>,
}

/// Fills a volume of the size in `volume`. A size that turns out too small, for the content or for what
/// is to be free, grows, if it may, and the source is read from its start again.
fn fill(
    options: &PackOptions,
    volume: &mut MkfsOptions,
    may_grow: bool,
    source: &mut dyn Source,
    place: &mut Place<'_>,
    survey: Option<&Survey>,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Summary, PackError> {
    loop {
        let superblock = mkfs::plan(volume)?;
        let devices = place.devices(volume.size)?;
        share::arrange(source, &*devices.volume, options.reflink)?;
        place.clear(&devices)?;
        match populate(options, source, superblock, &devices.volume, survey, progress) {
            Ok(mut summary) => {
                let left = summary.available_bytes;
                if let SizeChoice::Free(free) = options.size
                    && left < free.of(volume.size)
                {
                    if !may_grow {
                        return Err(PackError::LittleFree { wanted: free.of(volume.size), left });
                    }
                    volume.size = estimate::freer(volume.size, free, left);
                    source.restart()?;
                    continue;
                }
                if options.verify {
                    let names = place.target.names();
                    verify::verify(options, names, &devices.volume, progress)
                        .inspect_err(|_| place.target.spoil(&devices.volume))?;
                }
                let (entries, bytes) = (summary.inodes(), summary.bytes);
                let mut report = |more| {
                    progress(&Progress { entries, bytes: bytes + more, ..Progress::default() });
                };
                let (uuid, durable) = (volume.uuid, options.durable);
                summary.disk = place.complete(&devices, uuid, durable, &mut report)?;
                summary.devices = DeviceReport::of_stack(&*devices.whole);
                return Ok(summary);
            }
            Err(error) if error.is_full() && may_grow => {
                volume.size = estimate::more(volume.size);
                source.restart()?;
            }
            Err(error) => return Err(error),
        }
    }
}

/// The size that a build of the least size takes, now that `tried` is not enough. The source is read
/// again if there was no survey.
fn needed_size(options: &PackOptions, survey: Option<Survey>, tried: u64) -> Option<u64> {
    let again = || {
        let kind = options.source.path()?.metadata().ok()?.file_type();
        // A pipe was read to its end.
        let mut source = (kind.is_dir() || kind.is_file())
            .then(|| undercroft_source::open(&options.source, &options.source_options))?
            .ok()?
            .source;
        Survey::of(source.as_mut(), options).ok()
    };
    let mut size = estimate::expected(&survey.or_else(again)?, &options.volume).ok()?;
    while size <= tried {
        size = estimate::more(size);
    }
    Some(size)
}

/// The options of the volume with the results of the survey.
fn volume_options(
    options: &PackOptions,
    wanted: SizeChoice,
    survey: Option<&Survey>,
) -> Result<MkfsOptions, PackError> {
    let mut volume = options.volume.clone();
    if let Some(uuid) = options.uuid.or_else(|| survey.map(Survey::identity)) {
        volume.uuid = uuid;
    }
    volume.size = match (wanted, survey) {
        (SizeChoice::Exact(bytes), _) => bytes,
        (SizeChoice::Minimum, Some(survey)) => estimate::expected(survey, &volume)?,
        (SizeChoice::Auto, Some(survey)) => estimate::comfortable(survey, &volume)?,
        (SizeChoice::Free(free), Some(survey)) => estimate::with_free(survey, &volume, free)?,
        // Only an exact size goes without a survey.
        (SizeChoice::Minimum | SizeChoice::Auto | SizeChoice::Free(_), None) => {
            mkfs::minimum_size(&volume)?
        }
    };
    Ok(volume)
}

fn populate(
    options: &PackOptions,
    source: &mut dyn Source,
    superblock: Superblock,
    device: &Arc<dyn BlockDevice>,
    survey: Option<&Survey>,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Summary, PackError> {
    let root = populate::root_inode(options);
    let volume = mkfs::begin(device, superblock, &root).map_err(PackError::volume)?;
    let mut populator = Populator::new(&volume, options, survey, progress)?;
    populator.run(source)?;
    let mut summary = populator.finish()?;
    summary.warnings = source.warnings();
    let superblock = mkfs::finish(&volume, options.durable).map_err(PackError::volume)?;
    if let Some(allowed) = options.volume.inode_max_percent.filter(|allowed| *allowed > 0)
        && superblock.inode_max_percent != allowed
    {
        return Err(PackError::Inodes { allowed, inodes: superblock.inodes, needed: None });
    }
    summary.free_bytes = superblock.free_blocks << superblock.block_log;
    let reserved = volume.reserved_blocks().map_err(PackError::volume)?;
    summary.reserved_bytes = reserved << superblock.block_log;
    summary.available_bytes =
        estimate::available(volume.geometry(), summary.free_bytes, summary.reserved_bytes);
    Ok(summary)
}
