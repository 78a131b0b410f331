//! A disk that is checked and can be made.

use super::copy::Copier;
use super::fat::{FatPlan, is_fat};
use super::identity::Identity;
use super::layout::{self, Layout, Place};
use super::partition::{Content, Partition};
use super::{DiskError, DiskOptions, DiskSummary, PartitionSummary, swap};
use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use undercroft_block::partition::{GPT_ENTRIES, Guid, NewGpt, NewPartition};
use undercroft_block::{BlockDevice, SECTOR_SIZE, Sector, Window, write_all_at, write_zeroes_at};
use uuid::Uuid;

/// A disk that is checked and can be made.
#[derive(Debug)]
pub(crate) struct DiskPlan {
    partitions: Vec<Planned>,
    /// The place of the volume's partition in the list.
    volume: usize,
    /// Length of the disk, if it has one already.
    size: Option<u64>,
    /// Bytes of a block of the disk.
    block_size: u64,
}

#[derive(Debug)]
struct Planned {
    partition: Partition,
    contents: Contents,
    /// Bytes that it needs; 0 for the volume.
    bytes: u64,
}

/// What is put into a partition.
#[derive(Debug)]
enum Contents {
    Volume,
    Copy { file: File, path: PathBuf, length: u64 },
    Fat(FatPlan),
    Swap,
    Zeros,
}

impl DiskPlan {
    /// Looks at the sources of all partitions. `fixed` is the length of the disk if it has one, and
    /// `block_size` that of its blocks.
    pub(crate) fn new(
        options: &DiskOptions,
        fixed: Option<u64>,
        block_size: u64,
    ) -> Result<Self, DiskError> {
        let partitions = &options.partitions;
        if partitions.len() > GPT_ENTRIES {
            return Err(DiskError::TooMany(partitions.len()));
        }
        let is_volume = |partition: &Partition| partition.content == Content::Volume;
        let volumes = partitions.iter().filter(|partition| is_volume(partition)).count();
        let volume = partitions.iter().position(is_volume).filter(|_| volumes == 1);
        let volume = volume.ok_or(DiskError::Volumes(volumes))?;
        check_roots(partitions)?;
        let planned = partitions.iter().zip(1..).map(|(partition, number)| {
            Planned::new(partition, number, block_size).map(|(contents, bytes)| Planned {
                partition: partition.clone(),
                contents,
                bytes,
            })
        });
        let partitions = planned.collect::<Result<Vec<_>, _>>()?;
        if let (Some(size), Some(fixed)) = (options.size, fixed) {
            return Err(DiskError::SizeOfDevice { size, fixed });
        }
        let size = options.size.or(fixed);
        let plan = Self { partitions, volume, size, block_size };
        // Those beside the volume have to fit in any case.
        plan.layout(0)?;
        Ok(plan)
    }

    /// Bytes that the volume can have, if those of the disk are given.
    pub(crate) fn volume_room(&self) -> Option<u64> {
        let others = self.partitions.iter().enumerate().filter(|(index, _)| *index != self.volume);
        // Their sum is no longer than the disk.
        let others = others.filter_map(|(_, planned)| layout::rounded(planned.bytes));
        let others = others.fold(0u64, u64::saturating_add);
        Some(layout::room(self.size?, self.block_size).saturating_sub(others))
    }

    /// The places of all partitions beside a volume of `volume` bytes.
    pub(crate) fn layout(&self, volume: u64) -> Result<Layout, DiskError> {
        let lengths: Vec<_> = self
            .partitions
            .iter()
            .map(|planned| match planned.contents {
                Contents::Volume => (planned.partition.name().to_owned(), volume),
                _ => (planned.partition.name().to_owned(), planned.bytes),
            })
            .collect();
        layout::place(&lengths, self.size, self.block_size)
    }

    /// The window of `disk` in which the volume is built. Whatever table the disk has had is gone
    /// then.
    pub(crate) fn volume_window(
        &self,
        disk: &Arc<dyn BlockDevice>,
        layout: &Layout,
    ) -> Result<Arc<dyn BlockDevice>, DiskError> {
        let end = disk.capacity().0;
        let unit = layout::UNIT / SECTOR_SIZE;
        write_zeroes_at(&**disk, Sector::ZERO, layout::UNIT)?;
        let tail = end - unit.min(end);
        write_zeroes_at(&**disk, Sector(tail), (end - tail) * SECTOR_SIZE)?;
        let window = window(disk, layout.places[self.volume]);
        Ok(Arc::new(window))
    }

    /// Writes everything but the volume, the table last.
    pub(crate) fn write(
        &self,
        disk: &Arc<dyn BlockDevice>,
        layout: &Layout,
        volume: Uuid,
        report: &mut dyn FnMut(u64),
    ) -> Result<DiskSummary, DiskError> {
        let mut copier = Copier::new(Identity::of_volume(volume), report);
        for (index, (planned, place)) in self.partitions.iter().zip(&layout.places).enumerate() {
            let Partition { kind, .. } = &planned.partition;
            let identity = &mut copier.identity;
            identity.add(kind.id().as_bytes());
            identity.add(planned.partition.name().as_bytes());
            identity.number(place.start);
            identity.number(place.length);
            if index != self.volume {
                let window = window(disk, *place);
                write_zeroes_at(&window, Sector::ZERO, place.length)?;
                planned.write(&window, *place, &mut copier)?;
            }
        }
        let id = copier.identity.id("table", 0);
        let partitions = self.summaries(layout, &copier.identity);
        let table = partitions.iter().map(|partition| NewPartition {
            kind: guid(partition.kind.id()),
            id: guid(partition.id),
            start: Sector(partition.start / SECTOR_SIZE),
            length: Sector(partition.length / SECTOR_SIZE),
            attributes: 0,
            name: partition.name.clone(),
        });
        let partitions_of_table = table.collect();
        let table =
            NewGpt { id: guid(id), block_size: self.block_size, partitions: partitions_of_table };
        table.write(&**disk)?;
        Ok(DiskSummary { id, bytes: layout.bytes, partitions })
    }

    fn summaries(&self, layout: &Layout, identity: &Identity) -> Vec<PartitionSummary> {
        let all = self.partitions.iter().zip(&layout.places).enumerate();
        all.map(|(index, (Planned { partition, .. }, place))| PartitionSummary {
            kind: partition.kind.clone(),
            name: partition.name().to_owned(),
            id: partition.id.unwrap_or_else(|| identity.id("partition", index as u64)),
            start: place.start,
            length: place.length,
            is_volume: index == self.volume,
        })
        .collect()
    }
}

impl Planned {
    /// What a partition will hold, and the bytes that it takes.
    fn new(
        partition: &Partition,
        number: usize,
        block_size: u64,
    ) -> Result<(Contents, u64), DiskError> {
        let kind = &partition.kind;
        match &partition.content {
            Content::Volume if partition.size.is_some() => Err(DiskError::SizeOfVolume(number)),
            Content::Volume => Ok((Contents::Volume, 0)),
            Content::Empty(bytes) => {
                let size = partition.size.unwrap_or(*bytes);
                match size {
                    0 => Err(DiskError::Empty(number)),
                    _ if !kind.is_swap() => Ok((Contents::Zeros, size)),
                    _ if size < swap::LEAST => Err(DiskError::SwapTooSmall { number, size }),
                    _ => Ok((Contents::Swap, size)),
                }
            }
            Content::Path(path) => {
                let (file, length) = open(path, kind.is_fat()).map_err(|error| match error {
                    DiskError::WrongSource { path, what: DIRECTORY } => {
                        DiskError::Directory { path, number, kind: kind.clone() }
                    }
                    error => error,
                })?;
                let Some(file) = file else {
                    let plan = FatPlan::new(path, kind.name(), number, partition.size, block_size)?;
                    let bytes = plan.bytes();
                    return Ok((Contents::Fat(plan), bytes));
                };
                if kind.is_fat() && !is_fat(&file, length) {
                    let (path, kind) = (path.clone(), kind.clone());
                    return Err(DiskError::NotFat { path, number, kind });
                }
                let size = partition.size.unwrap_or(length);
                if size < length {
                    let path = path.clone();
                    return Err(DiskError::TooSmall { path, length, number, size });
                }
                if size == 0 {
                    return Err(DiskError::Empty(number));
                }
                Ok((Contents::Copy { file, path: path.clone(), length }, size))
            }
        }
    }

    /// Fills the partition, which reads as zeros.
    fn write(
        &self,
        window: &Window,
        place: Place,
        copier: &mut Copier<'_>,
    ) -> Result<(), DiskError> {
        match &self.contents {
            Contents::Volume | Contents::Zeros => Ok(()),
            Contents::Copy { file, path, length } => copier.copy((file, path), *length, window, 0),
            Contents::Fat(plan) => plan.write(window, place.start, copier),
            Contents::Swap => {
                let header = swap::header(self.bytes, copier.identity.id("swap", place.start));
                copier.identity.add(&header);
                Ok(write_all_at(window, Sector::ZERO, &header)?)
            }
        }
    }
}

/// Two partitions of one root type are most likely a mistake. Type UUIDs are taken as they are.
fn check_roots(partitions: &[Partition]) -> Result<(), DiskError> {
    for (second, partition) in partitions.iter().enumerate() {
        let same = |other: &Partition| other.kind == partition.kind;
        let first = partitions[..second].iter().position(same);
        if let Some(first) = first.filter(|_| partition.kind.is_root()) {
            let kind = partition.kind.clone();
            return Err(DiskError::TwoRoots { first: first + 1, second: second + 1, kind });
        }
    }
    Ok(())
}

const DIRECTORY: &str = "a directory";

/// Opens what a partition is made from: a file with its length, or a directory, if that will do.
fn open(path: &Path, directory: bool) -> Result<(Option<File>, u64), DiskError> {
    let failed = |action| move |source| DiskError::Source { action, path: path.to_owned(), source };
    // To open a pipe is to wait for its other end; what it is, is told below.
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(nonblocking);
    let mut file = options.open(path).map_err(failed("open"))?;
    let metadata = file.metadata().map_err(failed("look at"))?;
    let kind = metadata.file_type();
    if kind.is_dir() && directory {
        return Ok((None, 0));
    }
    if !kind.is_file() && !kind.is_block_device() {
        let what = if kind.is_dir() { DIRECTORY } else { "a special file" };
        return Err(DiskError::WrongSource { path: path.to_owned(), what });
    }
    // The end of a block device is its length, which its metadata does not tell.
    let length = file.seek(SeekFrom::End(0)).map_err(failed("find the length of"))?;
    Ok((Some(file), length))
}

fn window(disk: &Arc<dyn BlockDevice>, place: Place) -> Window {
    let (start, length) = (Sector(place.start / SECTOR_SIZE), Sector(place.length / SECTOR_SIZE));
    let window = Window::new(Arc::clone(disk), start, length);
    window.expect("the disk has the length of the layout, in which all places lie")
}

fn guid(id: Uuid) -> Guid {
    Guid(id.to_bytes_le())
}
