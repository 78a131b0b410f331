//! What can be salvaged from a device: the scan, the choice of the volume, and what was found as a volume that
//! can be looked at.

use crate::progress::Progress;
use crate::report;
use anyhow::{Context, Result, anyhow, bail};
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use undercroft_block::BlockDevice;
use undercroft_image::{FoundSource, found_volume};
use undercroft_recover::{Disk, FoundFile, Salvaged, Scan, State, Step, Traces};
use undercroft_source::data_ranges;
use uuid::Uuid;

/// The volume, what was found of it, and all volumes with traces.
pub(crate) struct Found {
    pub(crate) disk: Disk,
    pub(crate) salvaged: Salvaged,
    pub(crate) volumes: Vec<Traces>,
}

/// A device to be looked through.
pub(crate) struct Device<'a> {
    /// How messages call it.
    pub(crate) name: &'a str,
    pub(crate) device: Arc<dyn BlockDevice>,
    /// The same with the journal of its volume replayed, where that can be opened and has something to replay.
    pub(crate) replayed: Option<Arc<dyn BlockDevice>>,
    /// The file that it is in, and the byte that it starts with there.
    pub(crate) file: Option<(&'a Path, u64)>,
}

impl Device<'_> {
    /// Scans it but for what is lost, and puts together the files of a volume: of that with the UUID, or of the
    /// only one.
    pub(crate) fn search(self, uuid: Option<Uuid>, lost: Vec<Range<u64>>) -> Result<Found> {
        let ranges = match &self.replayed {
            // The journal may have written into holes.
            Some(_) => None,
            None => self.file.and_then(|(path, start)| ranges(path, start, &self.device)),
        };
        let all = std::iter::once(0..self.device.capacity().0);
        let ranges = ranges.unwrap_or_else(|| all.collect());
        let device = self.replayed.unwrap_or(self.device);
        let mut scan = scanned(&device, &without(ranges, &lost));
        scan.unreadable.extend(lost);
        scan.unreadable.sort_unstable_by_key(|range| range.start);
        let failed = || format!("cannot salvage {}", self.name);
        let traces = choose(&scan, uuid).with_context(failed)?;
        let bar = Progress::new();
        let found = Salvaged::find(&device, &scan, traces, &mut |_, done, all| {
            bar.show_bytes(done, all);
        });
        drop(bar);
        let (disk, salvaged) = found.with_context(failed)?;
        Ok(Found { disk, salvaged, volumes: scan.volumes })
    }
}

/// Whether something of a file can be copied.
pub(crate) fn takes(file: &FoundFile) -> bool {
    file.state != State::Lost
}

impl Found {
    /// Says what is missing.
    pub(crate) fn note_losses(&self) {
        let report = &self.salvaged.report;
        let (partial, lost) = (report.partial + report.unsized_files, report.lost);
        if partial + lost + report.nameless > 0 {
            report::note(format_args!(
                "{partial} files have lost parts, {lost} all, {} have no way up to the root; `undercroft \
                 salvage --list` tells which",
                report.nameless
            ));
        }
    }

    /// What was found as a volume, to be read.
    pub(crate) fn view(&self) -> Result<Arc<dyn BlockDevice>> {
        self.note_losses();
        let mut source = FoundSource::new(&self.disk, &self.salvaged.files, takes);
        let bar = Progress::new();
        let made = found_volume(&mut source, self.salvaged.report.uuid, &mut |progress| {
            bar.show(progress.entries, progress.bytes, progress.bytes_total);
        });
        drop(bar);
        Ok(made?)
    }
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

/// The sectors of a device in a file, from a byte of it on, that are no holes.
fn ranges(path: &Path, start: u64, device: &Arc<dyn BlockDevice>) -> Option<Vec<Range<u64>>> {
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

/// What is left of a volume in a line.
pub(crate) fn line(traces: &Traces) -> String {
    format!(
        "{}  {} files, {} directories, {} blocks of metadata",
        traces.uuid,
        traces.files,
        traces.directories,
        traces.block_count()
    )
}

/// The volume that is asked for; else the only one with files.
fn choose(scan: &Scan, uuid: Option<Uuid>) -> Result<&Traces> {
    let lines = || scan.volumes.iter().map(line).collect::<Vec<_>>().join("; ");
    if scan.volumes.is_empty() && scan.unmarked > 0 {
        bail!(
            "{} sectors look like inodes of a volume of version 4, but no copy of its superblock is left, and \
             nothing else says where its blocks belong",
            scan.unmarked
        );
    }
    if scan.volumes.is_empty() {
        bail!("no metadata of an XFS volume are there");
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
        _ => bail!(
            "there are metadata of several volumes; choose one with --uuid, or as salvage:UUID:SOURCE: {}",
            lines()
        ),
    }
}
