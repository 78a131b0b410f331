//! A disk that is checked and can be made.

use super::contents::Planned;
use super::copy::Copier;
use super::identity::Identity;
use super::layout::{self, Layout, Place};
use super::partition::{Content, Partition};
use super::{DiskError, DiskOptions, DiskSummary, PartitionSummary};
use std::sync::Arc;
use undercroft_block::partition::{GPT_ENTRIES, GPT_NAME_MAX, Guid, NewGpt, NewPartition};
use undercroft_block::{BlockDevice, SECTOR_SIZE, Sector, Window, write_zeroes_at};
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
        check_names(partitions)?;
        let planned = partitions
            .iter()
            .zip(1..)
            .map(|(partition, number)| Planned::new(partition, number, block_size));
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
            .enumerate()
            .map(|(index, planned)| {
                let bytes = if index == self.volume { volume } else { planned.bytes };
                (planned.partition.name().to_owned(), bytes)
            })
            .collect();
        layout::place(&lengths, self.size, self.block_size)
    }

    /// The window of `disk` in which the volume is built.
    pub(crate) fn volume_window(
        &self,
        disk: &Arc<dyn BlockDevice>,
        layout: &Layout,
    ) -> Arc<dyn BlockDevice> {
        Arc::new(window(disk, layout.places[self.volume]))
    }

    /// Takes away whatever table the disk has had.
    pub(crate) fn clear(disk: &dyn BlockDevice) -> Result<(), DiskError> {
        let end = disk.capacity().0;
        let unit = layout::UNIT / SECTOR_SIZE;
        write_zeroes_at(disk, Sector::ZERO, layout::UNIT)?;
        let tail = end - unit.min(end);
        Ok(write_zeroes_at(disk, Sector(tail), (end - tail) * SECTOR_SIZE)?)
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

/// Names must fit, and identities differ.
fn check_names(partitions: &[Partition]) -> Result<(), DiskError> {
    for (index, partition) in partitions.iter().enumerate() {
        let (number, units) = (index + 1, partition.name().encode_utf16().count());
        if units > GPT_NAME_MAX {
            return Err(DiskError::LongName { number, units });
        }
        let same = |other: &Partition| other.id.is_some() && other.id == partition.id;
        if let Some(first) = partitions[..index].iter().position(same) {
            return Err(DiskError::SameId { first: first + 1, second: number });
        }
    }
    Ok(())
}

fn window(disk: &Arc<dyn BlockDevice>, place: Place) -> Window {
    let (start, length) = (Sector(place.start / SECTOR_SIZE), Sector(place.length / SECTOR_SIZE));
    let window = Window::new(Arc::clone(disk), start, length);
    window.expect("the disk has the length of the layout, in which all places lie")
}

fn guid(id: Uuid) -> Guid {
    Guid(id.to_bytes_le())
}
