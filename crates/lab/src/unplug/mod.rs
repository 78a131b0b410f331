//! Unplugging a device that is made of many: the cost of a lock for each of them.
//!
//! Source: Patocka and Axboe 2008 (lkml 0804.3/3398). One logical device over 48 disks runs an OLTP
//! mix. Each disk holds requests back for a while, so that neighbours leave together; a thread that
//! waits for an I/O unplugs the logical device first, which asks all 48, most of which hold
//! nothing. The lock that each took to find that out was 13 % of all samples; testing a flag before
//! it made the whole benchmark 18 % faster. Since 2011 the submitting thread holds requests back,
//! and there is nothing to propagate.
//!
//! The mix: transactions of three reads and one write of 8 KiB at random places, each waited for,
//! and a commit that appends 4 KiB to a log and waits for it; every fourth transaction leaves a
//! dirty page to be written without waiting. The disks are null devices.

pub(crate) mod chapter;
mod disk;
pub(crate) mod figure;
mod mix;
mod outcome;
pub(crate) mod table;

use std::sync::Arc;
use std::time::Duration;

use undercroft_block::experiments::OverlapOrder;
use undercroft_block::stack::Linear;
use undercroft_block::{BlockDevice, Drive, Leaf, NullOptions, QueueOptions};

pub use outcome::{UnplugOutcome, Variant};

use crate::error::LabError;
use crate::measure::latency::LatencyRecorder;
use crate::measure::rate::{Rate, Window, per};
use crate::options::RunOptions;
use crate::outcome::Outcome;
use disk::{PluggedDisk, UnplugMode, UnplugTimer};
use mix::{Measured, Mix};

/// Bytes of one disk.
const DISK_BYTES: u64 = 1 << 30;
/// Calls that count the locks of unplugging a device that holds nothing.
const IDLE_CALLS: u64 = 100;

/// Which variants, on what.
#[derive(Clone, Debug, PartialEq)]
pub struct UnplugOptions {
    /// Variants, which take turns.
    pub variants: Vec<Variant>,
    /// Disks under the logical device.
    pub leaves: usize,
    /// Threads of the mix.
    pub threads: usize,
    /// Times that a disk takes for a request, one after the other.
    pub service_times: Vec<Duration>,
}

impl Default for UnplugOptions {
    /// 48 disks as in the source, and once as a cache answers, once as a disk of today does.
    fn default() -> Self {
        Self {
            variants: Variant::ALL.to_vec(),
            leaves: 48,
            threads: 16,
            service_times: vec![Duration::ZERO, Duration::from_micros(100)],
        }
    }
}

/// Runs the experiment; `found` gets each outcome when all variants are through.
///
/// # Errors
/// A device or a thread cannot be had, or an I/O failed.
pub fn run(
    options: &UnplugOptions,
    run: &RunOptions,
    found: &mut dyn FnMut(Outcome),
) -> Result<(), LabError> {
    let duration = run.run_time(Duration::from_millis(500));
    let repeats = run.repeats(5);
    for &service_time in &options.service_times {
        let setups: Vec<Setup> = options
            .variants
            .iter()
            .map(|&variant| Setup::new(variant, service_time, options))
            .collect::<Result<_, LabError>>()?;
        let mut tallies: Vec<Tally> = setups.iter().map(|_| Tally::default()).collect();
        for repeat in 0..repeats {
            for turn in 0..setups.len() {
                let index = (turn + repeat) % setups.len();
                tallies[index].add(&setups[index].run(options, duration, run.seed)?);
            }
        }
        for (setup, tally) in setups.iter().zip(&tallies) {
            found(Outcome::Unplug(tally.outcome(setup, options, duration)));
        }
    }
    Ok(())
}

/// The devices of one variant.
struct Setup {
    variant: Variant,
    service_time: Duration,
    device: Arc<dyn BlockDevice>,
    /// Its disks, where they are plugged.
    plugged: Vec<Arc<PluggedDisk>>,
    /// Locks that unplugging the device took while no leaf held anything, for each call.
    locks_when_idle: f64,
}

impl Setup {
    fn new(
        variant: Variant,
        service_time: Duration,
        options: &UnplugOptions,
    ) -> Result<Self, LabError> {
        let disks = (0..options.leaves).map(|_| disk(service_time));
        let disks = disks.collect::<Result<Vec<_>, LabError>>()?;
        let (legs, plugged) = plug(variant, disks)?;
        let device: Arc<dyn BlockDevice> = Arc::new(Linear::new(legs)?);
        (0..IDLE_CALLS).for_each(|_| plugged.iter().for_each(|disk| disk.unplug()));
        let locks_when_idle = per(plugged.iter().map(|disk| disk.locks()).sum(), IDLE_CALLS);
        Ok(Self { variant, service_time, device, plugged, locks_when_idle })
    }

    fn run(
        &self,
        options: &UnplugOptions,
        duration: Duration,
        seed: u64,
    ) -> Result<Measured, LabError> {
        let (device, plugged) = (&self.device, &self.plugged[..]);
        mix::run(&Mix { device, plugged, threads: options.threads, duration, seed })
    }
}

/// A device, and the plugged disks in it.
type Plugged = (Vec<Arc<dyn BlockDevice>>, Vec<Arc<PluggedDisk>>);

/// The disks as this variant has them.
fn plug(variant: Variant, disks: Vec<Arc<dyn BlockDevice>>) -> Result<Plugged, LabError> {
    let mode = match variant {
        Variant::Locked => UnplugMode::Locked,
        Variant::TestFirst => UnplugMode::TestFirst,
        Variant::ThreadPlug => return Ok((disks, Vec::new())),
    };
    let timer =
        UnplugTimer::start().map_err(|source| LabError::Thread { index: 0, count: 1, source })?;
    let plugged: Vec<_> =
        disks.into_iter().map(|disk| PluggedDisk::new(disk, mode, &timer)).collect();
    Ok((plugged.iter().map(|disk| Arc::clone(disk) as _).collect(), plugged))
}

/// One disk.
fn disk(service_time: Duration) -> Result<Arc<dyn BlockDevice>, LabError> {
    // A disk that answers at once does so where the request is sent on; one that takes its time
    // has a thread that waits for it.
    let drive = if service_time.is_zero() { Drive::Inline } else { Drive::Threads(1) };
    let order = OverlapOrder::LeftToSubmitters;
    let queue = QueueOptions { drive, order, ..QueueOptions::default() };
    let null = NullOptions { bytes: DISK_BYTES, service_time, ..NullOptions::default() };
    Ok(Arc::new(Leaf::null(null, queue)?))
}

/// The runs of one variant.
#[derive(Default)]
struct Tally {
    windows: Vec<Window>,
    ios: u64,
    unplugs: u64,
    locks: u64,
    latencies: LatencyRecorder,
}

impl Tally {
    fn add(&mut self, measured: &Measured) {
        self.windows.push(measured.window);
        self.ios += measured.ios;
        self.unplugs += measured.unplugs;
        self.locks += measured.locks;
        self.latencies.merge(&measured.latencies);
    }

    fn outcome(&self, setup: &Setup, options: &UnplugOptions, duration: Duration) -> UnplugOutcome {
        UnplugOutcome {
            variant: setup.variant,
            leaves: options.leaves,
            threads: options.threads,
            service_us: setup.service_time.as_secs_f64() * 1e6,
            rate: Rate::of(duration, &self.windows),
            unplugs_per_io: per(self.unplugs, self.ios),
            locks_per_io: per(self.locks, self.ios),
            locks_per_idle_unplug: setup.locks_when_idle,
            latency: self.latencies.latency(),
        }
    }
}
