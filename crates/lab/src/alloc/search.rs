//! How long one allocation takes: on free space that is hard, and on free space that is easy.

use std::path::Path;
use std::time::{Duration, Instant};

use undercroft_xfs::Volume;
use undercroft_xfs::format::RmapOwner;
use undercroft_xfs::internals::alloc::{Allocation, Request, allocate, free_in_group};
use undercroft_xfs::internals::btree::Bnobt;
use undercroft_xfs::internals::group_tree::free_extents;
use undercroft_xfs::units::{AgBlock, AgNumber};

use super::Variant;
use super::outcome::SearchOutcome;
use super::volume;
use crate::age::{FreeMap, take};
use crate::error::LabError;
use crate::measure::latency::LatencyRecorder;
use crate::measure::random::stream;

/// Blocks of a request on the pathological map.
const REQUEST: u32 = 8;
/// Extents of the pathological map that will do: more than the last leaf of the by-size tree holds,
/// all of which near mode would look at first.
const LONG: u32 = 2000;
/// Blocks of a request on a clean volume: the mean of the workload's files.
const CLEAN_REQUEST: u32 = 2048;
/// Most allocations before the free space is as it was again.
const ROUND: usize = 1000;

/// Free space to be searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ground {
    /// So many free extents near the hint are one block too short.
    Pathological(u32),
    /// Everything is free, and each extent is wanted behind the last.
    Clean,
}

/// Allocates on `ground` for `duration` with each variant, with up to `memory` bytes of metadata in
/// memory.
pub(super) fn run(
    image: &Path,
    ground: Ground,
    memory: Option<usize>,
    variants: &[Variant],
    duration: Duration,
    seed: u64,
    found: &mut dyn FnMut(SearchOutcome),
) -> Result<(), LabError> {
    let blocks = match ground {
        Ground::Pathological(short) => {
            u64::from(short) * u64::from(REQUEST) + u64::from(LONG * REQUEST) * 64
        }
        Ground::Clean => 1 << 24,
    };
    // One group has it all, with room for trees; the other is there because volumes have two.
    let bytes = 2 * (blocks + blocks / 8 + (1 << 14)) * 4096;
    let mut volume = volume::make(image, bytes, Some(2), None, Variant::Near, seed)?;
    if let Some(bytes) = memory {
        volume.cache().set_limit(bytes);
    }
    if let Ground::Pathological(short) = ground {
        let map = FreeMap::Pathological { request: REQUEST, short, long: LONG };
        let free = crate::age::free(&volume, AgNumber(1))?;
        let pieces = map.pieces(&free, volume.geometry().ag_blocks, &mut stream(seed, 0))?;
        take(&volume, AgNumber(1), &pieces)?;
    }
    for variant in variants {
        volume.set_near_search(variant.search());
        let mut search = Search::new(&volume, ground, seed)?;
        found(search.run(*variant, duration)?);
    }
    Ok(())
}

/// Allocations of one variant.
struct Search<'v> {
    volume: &'v Volume,
    ground: Ground,
    /// First and last of the free extents in front of the long ones.
    tail: (u32, u32),
    free_extents: u64,
    random: fastrand::Rng,
    latencies: LatencyRecorder,
    elapsed: Duration,
}

impl<'v> Search<'v> {
    fn new(volume: &'v Volume, ground: Ground, seed: u64) -> Result<Self, LabError> {
        let (mut count, mut low, mut high) = (0, u32::MAX, 0);
        free_extents::<Bnobt>(volume, AgNumber(1), |extent| {
            count += 1;
            if extent.len < REQUEST || ground == Ground::Clean {
                (low, high) = (low.min(extent.start.0), high.max(extent.start.0));
            }
        })?;
        Ok(Self {
            volume,
            ground,
            tail: (low, high),
            free_extents: count,
            random: stream(seed, 1),
            latencies: LatencyRecorder::default(),
            elapsed: Duration::ZERO,
        })
    }

    fn run(&mut self, variant: Variant, duration: Duration) -> Result<SearchOutcome, LabError> {
        let first = self.allocate(None)?;
        let first_us = self.elapsed.as_secs_f64() * 1e6;
        self.free(&[first])?;
        (self.latencies, self.elapsed) = Default::default();
        let device_read = || self.volume.cache().device().statistics().bytes_read;
        let mut bytes_read = 0;
        while self.elapsed < duration {
            let mut held = Vec::with_capacity(ROUND);
            let read_before = device_read();
            while held.len() < ROUND && self.elapsed < duration {
                held.push(self.allocate(held.last())?);
            }
            // Counting takes time, too, and memory that allocations have at hand.
            bytes_read += device_read() - read_before;
            self.free(&held)?;
        }
        let latency = self.latencies.latency();
        Ok(SearchOutcome {
            variant: variant.name().to_owned(),
            free_space: match self.ground {
                Ground::Pathological(_) => "pathological",
                Ground::Clean => "clean",
            }
            .to_owned(),
            free_extents: self.free_extents,
            request_blocks: self.request().1,
            allocations: latency.count,
            per_second: latency.count as f64 / self.elapsed.as_secs_f64(),
            first_us,
            bytes_read: bytes_read as f64 / latency.count.max(1) as f64,
            latency,
        })
    }

    /// Hint and length of the next request without regard to the last.
    fn request(&mut self) -> (AgBlock, u32) {
        match self.ground {
            Ground::Pathological(_) => {
                (AgBlock(self.random.u32(self.tail.0..=self.tail.1)), REQUEST)
            }
            Ground::Clean => (AgBlock(self.tail.0), CLEAN_REQUEST),
        }
    }

    /// One allocation, timed.
    fn allocate(&mut self, last: Option<&Allocation>) -> Result<Allocation, LabError> {
        let (mut hint, len) = self.request();
        if let (Ground::Clean, Some(last)) = (self.ground, last) {
            hint = AgBlock(last.start.0 + last.len);
        }
        let target = self.volume.geometry().fs_block(AgNumber(1), hint);
        let request = Request {
            owner: None,
            user_data: true,
            ..Request::metadata(target, len, RmapOwner(0))
        };
        let begun = Instant::now();
        let mut trans = self.volume.begin()?;
        let found = allocate(&mut trans, &request)?;
        trans.commit(&mut [])?;
        let elapsed = begun.elapsed();
        self.latencies.record(elapsed);
        self.elapsed += elapsed;
        found
            .ok_or_else(|| LabError::Unsound("there was no space on a volume that has some".into()))
    }

    fn free(&self, held: &[Allocation]) -> Result<(), LabError> {
        for extent in held {
            let mut trans = self.volume.begin()?;
            trans.with_group(extent.ag, true, |trans, group| {
                free_in_group(trans, group, extent.start, extent.len, None)
            })?;
            trans.commit(&mut [])?;
        }
        Ok(())
    }
}
