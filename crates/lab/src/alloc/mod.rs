//! Extent allocation: the experiment that came with the rework of near mode.
//!
//! Source: Foster 2019, "xfs: rework near mode extent allocation", v3. 64 writers create, write and
//! sync 40,000 files of 4 KiB to 500 MB until 500 GB in 16 groups are 70 % full, once on a clean
//! volume and once where free space consists of many extents of random lengths; then the distance
//! of each extent from its hint is counted. The volume here is a sparse file: metadata is real,
//! data is accepted and dropped. The volume is checked afterwards.
//!
//! The search for an extent alone is timed on free space that is made to be hard for it.

pub(crate) mod chapter;
mod disk;
pub(crate) mod figure;
mod jobs;
mod mounted;
mod outcome;
mod search;
mod site;
pub(crate) mod table;
mod volume;

pub use outcome::{AllocOutcome, LayoutFigures, OperationTimes, SearchOutcome};
pub use undercroft_xfs::internals::experiments::Variant;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use undercroft_xfs::Volume;
use undercroft_xfs::frag::{self, FreeSpace, Selection};

use crate::age::{FreeMap, age};
use crate::error::LabError;
use crate::measure::scratch::Scratch;
use crate::options::RunOptions;
use crate::outcome::Outcome;
use jobs::Jobs;
use mounted::OnMount;
use search::Ground;
use volume::{Headers, OnVolume};

/// Size of the source's volume.
const SOURCE_BYTES: u64 = 500 << 30;

/// Deviation of the logarithm of a file's size: the source does not tell how sizes are distributed;
/// with this one, distances on a clean volume are like its own.
const SPREAD: f64 = 3.0;

/// A part of the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Case {
    /// The workload on a clean volume.
    Clean,
    /// The workload on randomised free space.
    Random,
    /// Allocations alone, where extents near the hint are too short.
    Pathological,
    /// Allocations alone, one behind the other on a clean volume.
    Sequential,
    /// The pathological map with more and more free extents.
    Growth,
}

impl Case {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Clean, Self::Random, Self::Pathological, Self::Sequential, Self::Growth];
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Clean => "clean",
            Self::Random => "random",
            Self::Pathological => "pathological",
            Self::Sequential => "sequential",
            Self::Growth => "growth",
        })
    }
}

/// What to run. Fields that are `None` are those of the source, or small ones for the smoke size.
#[derive(Clone, Debug, Default)]
pub struct AllocOptions {
    /// Parts, in this order; all of them if there are none.
    pub cases: Vec<Case>,
    /// Variants, which take turns; all of them if there are none.
    pub variants: Vec<Variant>,
    /// Bytes of the volume.
    pub bytes: Option<u64>,
    /// Groups of the volume; without it 16, on 500 GiB by way of a stripe unit.
    pub groups: Option<u32>,
    /// Threads that write.
    pub writers: Option<usize>,
    /// Files that are on their way to the disk at a time, with the space reserved behind their
    /// ends; without it, as many as writers. 0: no space is reserved, as when the size is known
    /// before.
    pub in_flight: Option<usize>,
    /// Files to write.
    pub files: Option<usize>,
    /// Share of the extents that are wanted from a group whose header is being written, 0 to 1.
    /// The kernel holds the lock of a header meanwhile, which sends extents to other groups; this
    /// library writes copies. It makes the difference between a run here and one on a busy disk.
    pub header_writes: f64,
    /// Standard deviation of the logarithm of a file's size.
    pub spread: Option<f64>,
    /// Free extents of the pathological map.
    pub extents: Option<u32>,
    /// Bytes of metadata to keep in memory while single allocations are timed, instead of the usual
    /// limit of volumes. The trees of ten million free extents take some 500 MB.
    pub memory: Option<usize>,
    /// Where volumes are made; the system's place for such files without it.
    pub scratch: Option<PathBuf>,
    /// Keeps the volume of the last run of the workload here.
    pub keep: Option<PathBuf>,
    /// A mounted directory on which the workload is repeated instead.
    pub on: Option<PathBuf>,
    /// On the mounted directory: write data instead of allocating space for it.
    pub data: bool,
}

/// The workload in numbers.
struct Scale {
    bytes: u64,
    groups: Option<u32>,
    /// Only the size of the source has its stripes.
    stripe: Option<(u64, u64)>,
    writers: usize,
    in_flight: usize,
    jobs: Jobs,
}

impl Scale {
    fn new(options: &AllocOptions, run: &RunOptions) -> Self {
        let bytes = options.bytes.unwrap_or(run.sized(SOURCE_BYTES, 2 << 30));
        let files = options.files.unwrap_or(run.sized(40_000, 400));
        // 500 MB of 500 GB; 70 % of the volume.
        let spread = options.spread.unwrap_or(SPREAD);
        let jobs = Jobs::new(files, bytes / 1000, bytes / 10 * 7, spread, run.seed);
        let writers = options.writers.unwrap_or(run.sized(64, 8)).max(1);
        Self {
            bytes,
            groups: options.groups.or((bytes != SOURCE_BYTES).then_some(16)),
            stripe: (bytes == SOURCE_BYTES).then_some(volume::STRIPE),
            writers,
            in_flight: options.in_flight.unwrap_or(writers),
            jobs,
        }
    }
}

/// Runs the experiment.
///
/// # Errors
/// A volume cannot be made or changed, or is damaged in the end.
pub fn run(
    options: &AllocOptions,
    run: &RunOptions,
    found: &mut dyn FnMut(Outcome),
) -> Result<(), LabError> {
    if let Some(mount) = &options.on {
        found(Outcome::Alloc(on_mount(mount, options, run)?));
        return Ok(());
    }
    let directory = options.scratch.clone().unwrap_or_else(std::env::temp_dir);
    let scratch = Scratch::new_in(&directory)?;
    let image = scratch.path().join("volume.img");
    let all = |chosen: &[Variant]| if chosen.is_empty() { &Variant::ALL } else { chosen }.to_vec();
    let variants = all(&options.variants);
    let cases = if options.cases.is_empty() { &Case::ALL[..] } else { &options.cases };
    for case in cases {
        match case {
            Case::Clean | Case::Random => {
                for variant in &variants {
                    let outcome = workload(&image, *case, *variant, options, run)?;
                    found(Outcome::Alloc(outcome));
                }
            }
            Case::Pathological | Case::Sequential | Case::Growth => {
                for ground in grounds(*case, options, run) {
                    let time = run.run_time(Duration::from_secs(1));
                    search::run(
                        &image,
                        ground,
                        options.memory,
                        &variants,
                        time,
                        run.seed,
                        &mut |of| {
                            found(match case {
                                Case::Growth => Outcome::AllocGrowth(of),
                                _ => Outcome::AllocSearch(of),
                            });
                        },
                    )?;
                }
            }
        }
    }
    Ok(())
}

fn grounds(case: Case, options: &AllocOptions, run: &RunOptions) -> Vec<Ground> {
    let extents = options.extents.unwrap_or(run.sized(1_000_000, 1000));
    match case {
        Case::Growth => {
            let decades = (3..=7).map(|power| 10_u32.pow(power));
            decades.take(run.sized(5, 2)).map(Ground::Pathological).collect()
        }
        Case::Pathological => vec![Ground::Pathological(extents)],
        _ => vec![Ground::Clean],
    }
}

/// The workload with one variant on a volume of its own.
fn workload(
    image: &Path,
    case: Case,
    variant: Variant,
    options: &AllocOptions,
    run: &RunOptions,
) -> Result<AllocOutcome, LabError> {
    let scale = Scale::new(options, run);
    let Scale { bytes, groups, stripe, .. } = scale;
    let volume = volume::make(image, bytes, groups, stripe, variant, run.seed)?;
    let fillers = match case {
        Case::Random => {
            let map = FreeMap::random(volume.geometry().ag_blocks);
            age(&volume, &map, run.seed)?.fillers
        }
        _ => Vec::new(),
    };
    let before = FreeSpace::of(&volume)?.by_block.count();
    let headers = Headers { share: options.header_writes, seed: run.seed };
    let site = OnVolume::new(&volume, scale.jobs.directories, headers, scale.in_flight)?;
    let measured = site::run(&site, &scale.jobs, scale.writers)?;
    let layout = layout(&volume, &fillers, before)?;
    let finished = volume::finish(&volume);
    // A damaged one, too: it is the one to examine.
    if let Some(keep) = &options.keep {
        std::fs::rename(image, keep)
            .map_err(|source| LabError::File { path: keep.clone(), source })?;
    }
    finished?;
    Ok(AllocOutcome {
        variant: variant.name().to_owned(),
        free_space: case.to_string(),
        bytes: scale.bytes,
        groups: volume.geometry().ag_count,
        writers: scale.writers,
        in_flight: scale.in_flight,
        header_writes: options.header_writes,
        files: scale.jobs.list.len(),
        data_bytes: scale.jobs.bytes(),
        data_written: false,
        seconds: measured.elapsed.as_secs_f64(),
        operations: measured.operations(),
        layout: Some(layout),
    })
}

fn layout(
    volume: &Volume,
    fillers: &[undercroft_xfs::units::InodeNumber],
    before: u64,
) -> Result<LayoutFigures, LabError> {
    let all = Selection::Everything;
    let of_run =
        frag::measure(volume, |inode| all.contains(inode) && !fillers.contains(&inode.number))?;
    let of_fillers = frag::measure(volume, |inode| fillers.contains(&inode.number))?;
    Ok(LayoutFigures::of(&of_run, &of_fillers, before))
}

/// The same operations on a mounted directory.
fn on_mount(
    mount: &Path,
    options: &AllocOptions,
    run: &RunOptions,
) -> Result<AllocOutcome, LabError> {
    let scale = Scale::new(options, run);
    let site = OnMount::new(mount, scale.jobs.directories, options.data)?;
    let measured = site::run(&site, &scale.jobs, scale.writers)?;
    Ok(AllocOutcome {
        variant: "kernel".to_owned(),
        free_space: "given".to_owned(),
        bytes: 0,
        groups: 0,
        writers: scale.writers,
        in_flight: scale.writers,
        header_writes: 0.0,
        files: scale.jobs.list.len(),
        data_bytes: scale.jobs.bytes(),
        data_written: options.data,
        seconds: measured.elapsed.as_secs_f64(),
        operations: measured.operations(),
        layout: None,
    })
}
