//! Copies a file through the block layer as a file system would write it: in bios of a few KiB to
//! 100 KiB, a little out of order, each padded to a block. Prints what that took.
//!
//! ```text
//! cargo run --release -p undercroft-block --example plug_throughput -- SOURCE TARGET [THREADS]
//! ```
//!
//! Compare with `cat SOURCE > TARGET`, which moves the same bytes through the page cache twice too.
//! Writes the same bios to a device that does nothing as well, for the cost of the layer alone.

use std::error::Error;
use std::fs::File;
use std::io::{Read, Seek};
use std::sync::Arc;
use std::time::{Duration, Instant};

use undercroft_block::{
    Batch, Bio, BlockDevice, BufferPool, Drive, Driver, Failure, FileDevice, FileOptions, Leaf,
    OpenError, Plug, QueueContext, QueueOptions, Request, Sector, Segment, SegmentList, Statistics,
    Synchronous,
};

const BLOCK: usize = 4096;
const CHUNK: usize = 1 << 20;

/// Bios that change places with each other.
const SHUFFLED: usize = 8;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (source, target, threads) = match &arguments[..] {
        [source, target] => (source, target, FileOptions::default().threads),
        [source, target, threads] => (source, target, threads.parse()?),
        _ => return Err("usage: plug_throughput SOURCE TARGET [THREADS]".into()),
    };
    let mut source = File::open(source)?;
    let file = File::options().read(true).write(true).create(true).truncate(true).open(target)?;
    let options = FileOptions { threads, ..FileOptions::default() };
    let start = Instant::now();
    let device = FileDevice::from_file(file, target, &options)?;
    // Every piece is padded to a block, so the target is larger than the source.
    device.set_len(source.metadata()?.len() * 2 + CHUNK as u64)?;
    let device: Arc<dyn BlockDevice> = Arc::new(device);
    copy(&mut source, &device)?;
    report(&format!("{target}, {threads} threads"), start.elapsed(), device.statistics());

    source.rewind()?;
    let inline = QueueOptions { drive: Drive::Inline, ..QueueOptions::default() };
    let nothing: Arc<dyn BlockDevice> = Arc::new(Leaf::start(Nothing, inline)?);
    let submitting = copy(&mut source, &nothing)?;
    report("nothing, time in submit alone", submitting, nothing.statistics());
    Ok(())
}

/// Ends every request at once.
struct Nothing;

impl Driver for Nothing {
    type Queue = Synchronous<Self>;

    fn name(&self) -> &str {
        "nothing"
    }

    fn capacity(&self) -> Sector {
        Sector::MAX
    }

    fn open_queue(self: &Arc<Self>, _context: &QueueContext) -> Result<Self::Queue, OpenError> {
        Ok(Synchronous::new(self))
    }

    fn execute(&self, _request: &mut Request) -> Option<Result<(), Failure>> {
        Some(Ok(()))
    }
}

/// Writes `source` to `device`; returns the time spent in submitting bios.
fn copy(source: &mut File, device: &Arc<dyn BlockDevice>) -> Result<Duration, Box<dyn Error>> {
    let pool = BufferPool::new(32 << 20);
    let batch = Batch::new();
    let plug = Plug::new(device);
    let mut random = 1_u64;
    let mut sector = 0;
    let mut submitting = Duration::ZERO;
    loop {
        let mut chunk = pool.get(CHUNK);
        let length = source.read(&mut chunk)?;
        if length == 0 {
            break;
        }
        let start = Instant::now();
        let chunk = Arc::new(chunk);
        let mut bios = Vec::new();
        let mut offset = 0;
        while offset < length {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Mostly small, at times up to 100 KiB: as the files of a source tree are.
            let limit = if random >> 60 == 0 { 100 << 10 } else { 27 << 10 };
            let size = 1 + (random >> 33) as usize % limit;
            let end = length.min(offset + size);
            let mut segments = SegmentList::from(Segment::new(&chunk, offset..end));
            segments.pad_to(BLOCK);
            let sectors = segments.bytes() / 512;
            bios.push(Bio::write(Sector(sector), segments).in_batch(&batch));
            sector += sectors;
            offset = end;
        }
        for neighbours in bios.chunks_mut(SHUFFLED) {
            neighbours.reverse();
        }
        bios.into_iter().for_each(|bio| plug.submit(bio));
        submitting += start.elapsed();
    }
    batch.wait()?;
    Ok(submitting)
}

fn report(target: &str, elapsed: Duration, statistics: Statistics) {
    let Statistics { bios, requests, bytes_written, .. } = statistics;
    println!("{target}");
    println!("  bios      {bios}");
    println!("  requests  {requests} ({} KiB each)", bytes_written / 1024 / requests.max(1));
    println!("  bytes     {bytes_written}");
    println!("  seconds   {:.3}", elapsed.as_secs_f64());
    println!("  per bio   {} ns", elapsed.as_nanos() / u128::from(bios.max(1)));
}
