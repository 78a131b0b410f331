//! Reads of one file in several patterns, over a device that answers late: how fast each is, and how
//! much of what was read ahead nobody asked for.
//!
//!     cargo run --release -p undercroft-xfs --example read_patterns -- [MILLISECONDS]
//!
//! Makes a volume with a file of 256 MiB and a directory of 20,000 names in memory, behind a device
//! that answers after so many milliseconds (2 without an argument). Names are looked up as well.

use futures_executor::LocalPool;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::sync::Arc;
use std::time::{Duration, Instant};
use undercroft_block::stack::{Delay, Slowness};
use undercroft_block::{BlockDevice, MemoryDevice};
use undercroft_xfs::format::{FileType, Timestamp};
use undercroft_xfs::mkfs::{self, MkfsOptions};
use undercroft_xfs::ops::{self, NewInode};
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::volume::LiveOptions;
use undercroft_xfs::{OpenFile, ReadPattern, Volume};
use uuid::Uuid;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const VOLUME: u64 = 512 << 20;
const FILE: u64 = 256 << 20;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const NAMES: usize = 20_000;
const LOOKUPS: usize = 1000;

/// Places and lengths of reads.
type Reads = Box<dyn Iterator<Item = (u64, u64)>>;

fn main() -> Result<()> {
    let latency = std::env::args().nth(1).map_or(Ok(2), |text| text.parse())?;
    let slowness = Slowness { latency: Duration::from_millis(latency), bandwidth: None };
    let memory: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(VOLUME));
    let number = make(&memory)?;
    let slow: Arc<dyn BlockDevice> = Arc::new(Delay::new(slowness, memory));

    println!(
        "{:44} {:>8} {:>9} {:>7} {:>7} {:>7}",
        "", "MB/s", "reads/s", "asked", "ahead", "waste"
    );
    let mut sum = (0, 0, 0);
    for (name, pattern, reads) in patterns() {
        let volume = Arc::new(Volume::open(Arc::clone(&slow))?);
        let file = OpenFile::open(&volume, number)?;
        file.expect_reads(pattern);
        let mut buffer = vec![0; MIB as usize];
        let (mut count, mut bytes, start) = (0, 0, Instant::now());
        for (at, len) in reads {
            bytes += file.read(at, &mut buffer[..len as usize])? as u64;
            count += 1;
        }
        let time = start.elapsed();
        let ahead = volume.read_ahead_bytes();
        row(name, count, bytes, ahead.begun, ahead.used, time);
        sum = (sum.0 + bytes, sum.1 + ahead.begun, sum.2 + ahead.used);
    }
    println!(
        "all: asked {} MiB, {:.1} % of what was read was read in vain",
        sum.0 / MIB,
        100.0 * waste(sum.0, sum.1, sum.2)
    );

    for tasks in [1, 64] {
        let volume = Arc::new(Volume::open(Arc::clone(&slow))?);
        let file = OpenFile::open(&volume, number)?;
        let start = Instant::now();
        let count = futures(&file, tasks, 100 * tasks as u64)?;
        row(
            &format!("random, 4 KiB, one thread, {tasks} futures"),
            count,
            count * 4 * KIB,
            0,
            0,
            start.elapsed(),
        );
    }
    for tasks in [1, 64, 1000] {
        let volume = Arc::new(Volume::open(Arc::clone(&slow))?);
        let start = Instant::now();
        lookups(&volume, tasks)?;
        let rate = LOOKUPS as f64 / start.elapsed().as_secs_f64();
        println!("{LOOKUPS} lookups with stat, one thread, {tasks} futures: {rate:.0} a second");
    }
    Ok(())
}

/// The patterns; most read a part of the file, as readers do.
fn patterns() -> Vec<(&'static str, ReadPattern, Reads)> {
    let run =
        |start: u64, len: u64, each: u64| (0..len / each).map(move |n| (start + n * each, each));
    let in_order = |each| -> Reads { Box::new(run(0, FILE, each)) };
    let strides = |len, stride, each| -> Reads {
        Box::new((0..FILE / stride).take(400).flat_map(move |n| run(n * stride, len, each)))
    };
    let random = |count: u64, len: u64, each: u64| -> Reads {
        // SplitMix64.
        let place = move |n: u64| {
            let word = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (word ^ (word >> 27)) % (FILE / len) * len
        };
        Box::new((0..count).flat_map(move |n| run(place(n), len, each)))
    };
    let unknown = ReadPattern::Unknown;
    vec![
        ("in order, 4 KiB", unknown, in_order(4 * KIB)),
        ("in order, 128 KiB", unknown, in_order(128 * KIB)),
        ("in order, 1 MiB", unknown, in_order(MIB)),
        ("in order, 1 MiB, said so", ReadPattern::Sequential, in_order(MIB)),
        ("the first 32 MiB, 128 KiB", unknown, Box::new(run(0, 32 * MIB, 128 * KIB))),
        ("4 KiB of each 64 KiB", unknown, strides(4 * KIB, 64 * KIB, 4 * KIB)),
        ("8 KiB in two reads of each 64 KiB", unknown, strides(8 * KIB, 64 * KIB, 4 * KIB)),
        ("64 KiB of each 256 KiB, 16 KiB", unknown, strides(64 * KIB, 256 * KIB, 16 * KIB)),
        ("random, 4 KiB", unknown, random(500, 4 * KIB, 4 * KIB)),
        ("random, 16 KiB in four reads", unknown, random(500, 16 * KIB, 4 * KIB)),
        ("random, 1 MiB in reads of 64 KiB", unknown, random(100, MIB, 64 * KIB)),
        ("random, 4 KiB, said so", ReadPattern::Random, random(500, 4 * KIB, 4 * KIB)),
    ]
}

/// Part of the bytes read from the device that no reader asked for.
fn waste(asked: u64, begun: u64, used: u64) -> f64 {
    let from_device = asked - used + begun;
    (begun - used) as f64 / from_device as f64
}

fn row(name: &str, count: u64, bytes: u64, begun: u64, used: u64, time: Duration) {
    let seconds = time.as_secs_f64();
    println!(
        "{name:44} {:>8.0} {:>9.0} {:>3} MiB {:>3} MiB {:>5.1} %",
        bytes as f64 / 1e6 / seconds,
        count as f64 / seconds,
        bytes / MIB,
        begun / MIB,
        100.0 * waste(bytes, begun, used),
    );
}

/// Random reads by tasks of one thread, each with one read in flight.
fn futures(file: &OpenFile, tasks: usize, count: u64) -> Result<u64> {
    let place = |n: u64| (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) % (FILE / 4096) * 4096;
    let mut flight = FuturesUnordered::new();
    let mut next = 0;
    let done = LocalPool::new().run_until(async {
        let mut done = 0;
        loop {
            while next < count && flight.len() < tasks {
                flight.push(file.begin_read(place(next), 4096)?);
                next += 1;
            }
            match flight.next().await {
                Some(bytes) => done += u64::from(bytes?.len() == 4096),
                None => return Ok::<_, undercroft_xfs::Error>(done),
            }
        }
    })?;
    Ok(done)
}

/// Lookups of names here and there, so many at a time.
fn lookups(volume: &Arc<Volume>, tasks: usize) -> Result<()> {
    let root = volume.geometry().root_inode;
    let look = |n: usize| {
        let name = name(n * 7919 % NAMES);
        volume.awaited(move |volume| {
            let directory = volume.inode(root)?;
            let found = ops::lookup(volume, &directory.read(), name.as_bytes())?;
            found.map(|number| volume.inode(number)).transpose()
        })
    };
    LocalPool::new().run_until(async {
        let mut flight = FuturesUnordered::new();
        let mut next = (0..LOOKUPS).map(look);
        flight.extend(next.by_ref().take(tasks));
        while let Some(found) = flight.next().await {
            found?.ok_or("a name is missing")?;
            flight.extend(next.next());
        }
        Ok(())
    })
}

fn name(number: usize) -> String {
    format!("a-name-of-the-directory-{number:06}")
}

/// A volume with one file; its number.
fn make(device: &Arc<dyn BlockDevice>) -> Result<InodeNumber> {
    let plan = mkfs::plan(&MkfsOptions::new(VOLUME, Uuid::from_u128(1)))?;
    mkfs::finish(&mkfs::begin(device, plan, &NewInode::new(FileType::Directory, 0o755))?, true)?;
    let volume = Arc::new(Volume::open_live(Arc::clone(device), &LiveOptions::default())?);
    let root = volume.geometry().root_inode;
    let new = NewInode::new(FileType::Regular, 0o644);
    let file = ops::make_open(&volume, root, b"file", &new)?;
    let bytes: Vec<u8> = (0..MIB).map(|at| (at / 7) as u8).collect();
    for at in (0..FILE).step_by(MIB as usize) {
        file.write(at, &bytes, Timestamp::default())?;
    }
    let number = file.number();
    drop(file);
    for other in 0..NAMES {
        ops::make(&volume, root, name(other).as_bytes(), &new)?;
    }
    volume.close()?;
    Ok(number)
}
