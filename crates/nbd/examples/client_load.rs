//! How fast the client is: requests of 4 KiB or another size at random places of an export, so many
//! in flight, by a thread for each connection.
//!
//! ```text
//! cargo run --release -p undercroft-nbd --example client_load -- URI read|write BYTES CONNECTIONS FLIGHT SECONDS
//! ```
//!
//! Prints requests a second, and microseconds of this process for one. `cargo xtask bench nbd` runs
//! it beside fio.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use undercroft_block::{
    Bio, BlockDevice, Buffer, CompletionQueue, Finished, Plug, SECTOR_SIZE, Sector, Segment,
};
use undercroft_nbd::client::open;
use undercroft_nbd::protocol::Uri;

/// The requests of one thread.
#[derive(Clone, Copy)]
struct Load {
    writes: bool,
    bytes: usize,
    flight: usize,
    time: Duration,
    /// Where requests may begin, in their own length.
    places: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [uri, operation, bytes, connections, flight, seconds] = &arguments[..] else {
        return Err("URI read|write BYTES CONNECTIONS FLIGHT SECONDS".into());
    };
    let (connections, flight): (usize, usize) = (connections.parse()?, flight.parse()?);
    let bytes: usize = bytes.parse()?;
    if flight < connections || connections == 0 || bytes == 0 {
        return Err("each connection needs a request, and each request bytes".into());
    }
    let mark = if uri.contains('?') { '&' } else { '?' };
    let uri = Uri::parse(&format!("{uri}{mark}x-connections={connections}"))?;
    let writes = operation == "write";
    let device: Arc<dyn BlockDevice> = Arc::new(open(&uri, !writes, None)?);
    let capacity = device.capacity().to_bytes().ok_or("an export of more than 2^63 bytes")?;
    let load = Load {
        writes,
        bytes,
        flight: flight / connections,
        time: Duration::from_secs(seconds.parse()?),
        places: capacity / bytes as u64,
    };
    let start = Instant::now();
    let count: u64 = std::thread::scope(|scope| {
        let threads = (0..connections as u64).map(|thread| {
            let device = &device;
            scope.spawn(move || run(device, thread, load))
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).sum()
    });
    let elapsed = start.elapsed().as_secs_f64();
    println!("{:.0} {:.2}", count as f64 / elapsed, cpu_seconds() * 1e6 / count as f64);
    Ok(())
}

/// Keeps requests in flight for the time of the load; returns how many were answered.
fn run(device: &Arc<dyn BlockDevice>, seed: u64, load: Load) -> u64 {
    let _claim = device.claim().expect("a queue of the client takes no resources");
    let queue = CompletionQueue::new();
    let plug = Plug::new(device);
    let mut random = seed.wrapping_mul(2).wrapping_add(1);
    // All writes share their bytes, as those of fio do.
    let bytes = Arc::new(Buffer::zeroed(load.bytes));
    let mut submit = |buffer: Option<Buffer>| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let place = (random >> 33) % load.places;
        let sector = Sector(place * load.bytes as u64 / SECTOR_SIZE);
        let bio = match buffer {
            Some(buffer) => Bio::read(sector, buffer),
            None => Bio::write(sector, Segment::new(&bytes, 0..load.bytes)),
        };
        plug.submit(bio.in_queue(&queue, 0));
    };
    let buffer = || (!load.writes).then(|| Buffer::zeroed(load.bytes));
    (0..load.flight).for_each(|_| submit(buffer()));
    let start = Instant::now();
    let mut count = 0;
    let mut out = load.flight;
    while out > 0 {
        // Sends what is staged, and receives.
        let first = queue.wait();
        let goes_on = start.elapsed() < load.time;
        let mut answered = |finished: Finished| {
            let back = finished.completion.into_buffer().expect("the server answers");
            count += 1;
            if goes_on {
                submit((!load.writes).then_some(back));
            } else {
                out -= 1;
            }
        };
        answered(first);
        while let Some(finished) = queue.poll() {
            answered(finished);
        }
    }
    count
}

/// Time that processors have worked for this process.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
