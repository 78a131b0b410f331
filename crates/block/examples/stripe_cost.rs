//! What a stripe of eight adds to a bio: 4 KiB reads of a device that does nothing, alone and as
//! the leg of a stripe, in turn in one run.
//!
//! ```text
//! cargo run --release -p undercroft-block --example stripe_cost -- [BATCH] [ROUNDS]
//! ```

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use undercroft_block::experiments::OverlapOrder;
use undercroft_block::stack::Stripe;
use undercroft_block::{
    Bio, BlockDevice, Buffer, CompletionQueue, NullDevice, NullOptions, Plug, QueueOptions, Sector,
};

const BLOCK: usize = 4096;
const LEGS: usize = 8;
const BIOS: usize = 1 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<usize> =
        std::env::args().skip(1).map(|argument| argument.parse()).collect::<Result<_, _>>()?;
    let argument = |index: usize, default| arguments.get(index).copied().unwrap_or(default);
    let (batch, rounds) = (argument(0, 32), argument(1, 15));
    let alone = null()?;
    let legs = (0..LEGS).map(|_| null()).collect::<Result<_, _>>()?;
    let stripe: Arc<dyn BlockDevice> = Arc::new(Stripe::new(64 << 10, legs)?);
    let mut added: Vec<f64> = Vec::new();
    for _ in 0..rounds {
        let [one, eight] = [&alone, &stripe]
            .map(|device| read(device, batch).map(|time| time.as_nanos() as f64 / BIOS as f64));
        let (one, eight) = (one?, eight?);
        println!("one leaf {one:.1} ns, stripe of {LEGS} {eight:.1} ns a bio");
        added.push(eight - one);
    }
    added.sort_by(f64::total_cmp);
    println!("added    {:.1} ns a bio (median of {rounds})", added[added.len() / 2]);
    Ok(())
}

fn null() -> Result<Arc<dyn BlockDevice>, Box<dyn Error>> {
    let options = QueueOptions { order: OverlapOrder::LeftToSubmitters, ..QueueOptions::default() };
    Ok(Arc::new(NullDevice::null(NullOptions::default(), options)?))
}

/// Reads in batches at places far apart; returns the time that took.
fn read(device: &Arc<dyn BlockDevice>, batch: usize) -> Result<Duration, Box<dyn Error>> {
    let claim = device.claim()?;
    let queue = CompletionQueue::new();
    let plug = Plug::new(device);
    let mut buffers: Vec<Buffer> = (0..batch).map(|_| Buffer::zeroed(BLOCK)).collect();
    let mut random = 1_u64;
    let start = Instant::now();
    for _ in 0..BIOS / batch {
        for buffer in buffers.drain(..) {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Every second block, so that none follows another and nothing merges.
            plug.submit(Bio::read(Sector((random >> 33) * 16), buffer).in_queue(&queue, 0));
        }
        plug.flush();
        while buffers.len() < batch {
            buffers.push(queue.wait().completion.into_buffer()?);
        }
    }
    let time = start.elapsed();
    drop(plug);
    drop(claim);
    Ok(time)
}
