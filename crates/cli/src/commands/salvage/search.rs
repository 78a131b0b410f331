//! The scan of the source, and the choice of the volume.

use super::report::Volume as Line;
use super::rescue_map::RescueMap;
use crate::image::ImageArgs;
use crate::progress::Progress;
use anyhow::{Context, Result, anyhow, bail};
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use undercroft_block::stack::Gaps;
use undercroft_block::{BlockDevice, Sector};
use undercroft_recover::{Disk, Salvaged, Scan, Step, Traces};
use undercroft_source::data_ranges;
use uuid::Uuid;

/// The volume, what was found of it, and all volumes with traces.
pub(super) struct Found {
    pub(super) disk: Disk,
    pub(super) salvaged: Salvaged,
    pub(super) volumes: Vec<Traces>,
}

/// Scans the image, but for what the map of its copy says is lost. Where a volume can still be opened, its
/// journal is replayed in memory before.
pub(super) fn search(image: &ImageArgs, uuid: Option<Uuid>, map: Option<&Path>) -> Result<Found> {
    let mut device = image.device()?;
    let mut lost = Vec::new();
    if let Some(path) = map {
        let map = RescueMap::read(path)?;
        lost = map.lost(image.first_byte(), device.capacity().0);
        let gaps = lost.iter().map(|range| Sector(range.start)..Sector(range.end));
        device = Arc::new(Gaps::new(device, gaps.collect()));
    }
    // A volume that cannot be opened is looked through as it is.
    let replayed = image.replayed(&device).ok().flatten();
    let ranges = match &replayed {
        // The journal may have written into holes.
        Some(_) => None,
        None => ranges(image, &device),
    };
    let all = std::iter::once(0..device.capacity().0);
    let ranges = ranges.unwrap_or_else(|| all.collect());
    let device = replayed.unwrap_or(device);
    let mut scan = scanned(&device, &without(ranges, &lost));
    scan.unreadable.extend(lost);
    scan.unreadable.sort_unstable_by_key(|range| range.start);
    let traces = choose(&scan, uuid).with_context(|| format!("cannot salvage {}", image.name()))?;
    let bar = Progress::new();
    let found = Salvaged::find(&device, &scan, traces, &mut |_, done, all| {
        bar.show_bytes(done, all);
    });
    drop(bar);
    let (disk, salvaged) = found.with_context(|| format!("cannot salvage {}", image.name()))?;
    Ok(Found { disk, salvaged, volumes: scan.volumes })
}

/// Ranges without others; both are in ascending order.
fn without(ranges: Vec<Range<u64>>, others: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut left = Vec::new();
    for range in ranges {
        let mut at = range.start;
        let first = others.partition_point(|other| other.end <= range.start);
        for other in others[first..].iter().take_while(|other| other.start < range.end) {
            left.push(at..other.start.max(at));
            at = other.end;
        }
        left.push(at..range.end.max(at));
    }
    left.retain(|range| !range.is_empty());
    left
}

fn scanned(device: &Arc<dyn BlockDevice>, ranges: &[Range<u64>]) -> Scan {
    let bar = Progress::new();
    Scan::read(device, ranges, &mut |_: Step, done, all| bar.show_bytes(done, all))
}

/// The sectors of an image file that are no holes.
fn ranges(image: &ImageArgs, device: &Arc<dyn BlockDevice>) -> Option<Vec<Range<u64>>> {
    let (path, start) = (image.path()?, image.start()?);
    let size = start.checked_add(device.capacity().to_bytes()?)?;
    let file =
        File::open(path).ok().filter(|file| file.metadata().is_ok_and(|meta| meta.is_file()))?;
    let ranges = data_ranges(&file, size).ok()??;
    let ranges = ranges.into_iter().map(|range| {
        let (first, end) = (range.offset.max(start), (range.offset + range.length).max(start));
        (first - start) / 512..(end - start).div_ceil(512)
    });
    Some(ranges.collect())
}

/// The volume that is asked for; else the only one with files.
fn choose(scan: &Scan, uuid: Option<Uuid>) -> Result<&Traces> {
    let lines = || {
        let lines = scan.volumes.iter().map(|traces| Line::new(traces).line());
        lines.collect::<Vec<_>>().join("; ")
    };
    if scan.volumes.is_empty() {
        bail!("no metadata of an XFS volume of version 5 are there");
    }
    if let Some(uuid) = uuid {
        return scan.volume(uuid).ok_or_else(|| {
            anyhow!("no metadata of the volume {uuid} are there, but of: {}", lines())
        });
    }
    // A new volume has the files of the realtime device, which all have.
    let mut with_files =
        scan.volumes.iter().filter(|traces| traces.files > 2 || traces.directories > 1);
    match (with_files.next(), with_files.next()) {
        (Some(only), None) => Ok(only),
        (None, _) if scan.volumes.len() == 1 => Ok(&scan.volumes[0]),
        _ => bail!("there are metadata of several volumes; choose one with --uuid: {}", lines()),
    }
}
