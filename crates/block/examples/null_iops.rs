//! What the layer costs: 4 KiB reads of a device that does nothing, by threads that each drive a
//! hardware queue of their own.
//!
//! ```text
//! cargo run --release -p undercroft-block --example null_iops -- [THREADS] [BATCH] [MILLIONS] [FIRST_CPU]
//! ```
//!
//! Prints I/Os per second for each thread and in all. Threads are bound to CPUs in turn, from the
//! given one on: two runs at a time on different CPUs share nothing but the machine, which is what
//! two threads of one run are to be compared with. The instructions of each step:
//!
//! ```text
//! valgrind --tool=callgrind target/release/examples/null_iops 1 32 1
//! callgrind_annotate callgrind.out.*
//! ```

use std::error::Error;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use undercroft_block::experiments::OverlapOrder;
use undercroft_block::{
    Bio, BlockDevice, Buffer, CompletionQueue, CpuSet, NullDevice, NullOptions, Plug, QueueOptions,
    Sector, Topology,
};

const BLOCK: usize = 4096;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<usize> =
        std::env::args().skip(1).map(|argument| argument.parse()).collect::<Result<_, _>>()?;
    let argument = |index: usize, default| arguments.get(index).copied().unwrap_or(default);
    let (threads, batch, millions) = (argument(0, 1), argument(1, 32), argument(2, 20));
    let first = argument(3, 0);
    let options = QueueOptions { order: OverlapOrder::LeftToSubmitters, ..QueueOptions::default() };
    let device: Arc<dyn BlockDevice> = Arc::new(NullDevice::null(NullOptions::default(), options)?);
    let start = Barrier::new(threads);
    let rounds = millions * 1_000_000 / batch;
    let cpus: Vec<u32> = Topology::of_machine().online().iter().collect();
    let times: Vec<Duration> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|thread| {
                let (device, start) = (&device, &start);
                let cpu = cpus[(first + thread) % cpus.len()];
                scope.spawn(move || -> Duration {
                    // Without it the scheduler decides, which is as good.
                    let _ = CpuSet::only(cpu).pin_current_thread();
                    start.wait();
                    read(device, thread as u64, batch, rounds)
                })
            })
            .collect();
        running.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let count = (rounds * batch) as f64;
    let mut sum = 0.0;
    for time in &times {
        let rate = count / time.as_secs_f64();
        println!("thread    {:.2} million/s, {:.1} ns each", rate / 1e6, 1e9 / rate);
        sum += rate;
    }
    println!("all       {:.2} million/s", sum / 1e6);
    let statistics = device.statistics();
    println!("requests  {}", statistics.requests);
    println!("p99       {:?}", device.latencies().read.quantile(0.99));
    assert_eq!(statistics.bios, (rounds * batch * threads) as u64, "every bio was counted");
    Ok(())
}

/// Reads `rounds` batches at places far apart; returns the time that took.
fn read(device: &Arc<dyn BlockDevice>, seed: u64, batch: usize, rounds: usize) -> Duration {
    let claim = device.claim().expect("the null driver opens a queue without resources");
    let queue = CompletionQueue::new();
    let plug = Plug::new(device);
    let mut buffers: Vec<Buffer> = (0..batch).map(|_| Buffer::zeroed(BLOCK)).collect();
    let mut random = seed.wrapping_mul(2).wrapping_add(1);
    let start = Instant::now();
    for _ in 0..rounds {
        for buffer in buffers.drain(..) {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Every second block, so that none follows another and nothing merges.
            let sector = Sector((random >> 33) * 16);
            plug.submit(Bio::read(sector, buffer).in_queue(&queue, 0));
        }
        plug.flush();
        while buffers.len() < batch {
            queue.poll_each(|one| {
                buffers.push(one.completion.into_buffer().expect("a read of nothing"));
            });
        }
    }
    let elapsed = start.elapsed();
    drop(plug);
    drop(claim);
    elapsed
}
