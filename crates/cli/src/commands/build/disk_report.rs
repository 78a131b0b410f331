//! A disk that was made, as `build` tells of it.

use crate::text;
use anyhow::Result;
use serde::Serialize;
use std::io::Write;
use undercroft_image::disk::{DiskSummary, PartitionSummary};
use uuid::Uuid;

/// The disk around the volume as JSON.
#[derive(Serialize)]
pub(crate) struct DiskReport {
    uuid: Uuid,
    bytes: u64,
    partitions: Vec<PartitionReport>,
}

/// A partition as JSON.
#[derive(Serialize)]
struct PartitionReport {
    number: usize,
    r#type: String,
    type_uuid: Uuid,
    name: String,
    uuid: Uuid,
    start: u64,
    bytes: u64,
    is_volume: bool,
}

impl DiskReport {
    pub(crate) fn new(disk: &DiskSummary) -> Self {
        let partitions = disk.partitions.iter().zip(1..).map(|(partition, number)| {
            let PartitionSummary { kind, name, id, start, length, is_volume, .. } = partition;
            PartitionReport {
                number,
                r#type: kind.name().to_owned(),
                type_uuid: kind.id(),
                name: name.clone(),
                uuid: *id,
                start: *start,
                bytes: *length,
                is_volume: *is_volume,
            }
        });
        Self { uuid: disk.id, bytes: disk.bytes, partitions: partitions.collect() }
    }
}

/// Prints the partitions, as a boot loader's configuration wants them.
pub(crate) fn print(disk: &DiskSummary, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "disk of {}, UUID {}", text::bytes(disk.bytes), disk.id)?;
    for (number, partition) in (1..).zip(&disk.partitions) {
        writeln!(
            out,
            "{number:>3}  {:<16} {:>10} at {:>10}  PARTUUID={}{}",
            partition.kind.name(),
            text::bytes(partition.length),
            text::bytes(partition.start),
            partition.id,
            if partition.is_volume { "  the volume" } else { "" },
        )?;
    }
    Ok(())
}
