//! Every device passes the same checks, and histories found by a property test.

use std::sync::Arc;

use crate::history::step;
use proptest::prelude::*;
use undercroft_block::stack::Overlay;
use undercroft_block::testing::FaultyDevice;
use undercroft_block::testing::conformance::{check, replay};
use undercroft_block::{
    BlockDevice, BufferPool, Drive, Engine, FileDevice, FileOptions, MemoryDevice, QueueOptions,
    SECTOR_SIZE, Sector, Window,
};

fn memory(capacity: Sector) -> Arc<dyn BlockDevice> {
    Arc::new(MemoryDevice::new(capacity.0 * SECTOR_SIZE))
}

/// On the disk of the build, since a file system in memory may not have direct I/O.
fn file_with(capacity: Sector, options: &FileOptions) -> Arc<dyn BlockDevice> {
    let file = tempfile::tempfile_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary file");
    // A queue that is often full, so that waiting for tags and room is exercised.
    let queue = QueueOptions { queue_bytes: 64 << 10, depth: 4, ..options.queue.clone() };
    let options = FileOptions { queue, ..options.clone() };
    let device = FileDevice::from_file(file, "scratch", &options).expect("a device");
    device.set_len(capacity.0 * SECTOR_SIZE).expect("room for it");
    Arc::new(device)
}

fn file(capacity: Sector, threads: usize) -> Arc<dyn BlockDevice> {
    let options = FileOptions { engine: Engine::Threads, threads, ..FileOptions::default() };
    file_with(capacity, &options)
}

fn window(below: fn(Sector) -> Arc<dyn BlockDevice>, capacity: Sector) -> Arc<dyn BlockDevice> {
    let below = below(Sector(capacity.0 + 20));
    Arc::new(Window::new(below, Sector(13), capacity).expect("a range inside"))
}

#[test]
fn memory_conforms() {
    check(&memory);
}

#[test]
fn a_file_without_threads_conforms() {
    check(&|capacity| file(capacity, 0));
}

#[test]
fn a_file_on_two_threads_conforms() {
    check(&|capacity| file(capacity, 2));
}

#[test]
fn a_file_on_many_threads_conforms() {
    check(&|capacity| file(capacity, 7));
}

#[test]
fn a_file_on_threads_with_direct_transfers_conforms() {
    let options = FileOptions { engine: Engine::Threads, direct: true, ..FileOptions::default() };
    check(&|capacity| file_with(capacity, &options));
}

#[test]
fn a_file_on_a_ring_conforms() {
    let options = FileOptions { engine: Engine::Uring, ..FileOptions::default() };
    check(&|capacity| file_with(capacity, &options));
}

#[test]
fn a_file_on_a_ring_with_direct_transfers_conforms() {
    let pool = Some(BufferPool::registrable(1 << 20));
    let options =
        FileOptions { engine: Engine::Uring, direct: true, pool, ..FileOptions::default() };
    check(&|capacity| file_with(capacity, &options));
}

#[test]
fn a_file_written_both_ways_conforms() {
    let options = FileOptions { engine: Engine::Mixed, ..FileOptions::default() };
    check(&|capacity| file_with(capacity, &options));
}

#[test]
fn a_served_file_conforms() {
    let options = FileOptions { engine: Engine::Around, ..FileOptions::default() };
    check(&|capacity| file_with(capacity, &options));
}

#[test]
fn a_file_on_several_rings_conforms() {
    let queue =
        QueueOptions { drive: Drive::Threads(2), hardware_queues: 2, ..QueueOptions::default() };
    let options = FileOptions { engine: Engine::Uring, queue, ..FileOptions::default() };
    check(&|capacity| file_with(capacity, &options));
}

#[test]
fn a_window_conforms() {
    check(&|capacity| window(memory, capacity));
    check(&|capacity| window(|below| file(below, 2), capacity));
}

#[test]
fn an_overlay_conforms() {
    check(&|capacity| Arc::new(Overlay::new(memory(capacity))));
    check(&|capacity| {
        let overlay = Overlay::with_changes(memory(capacity), file(capacity, 2));
        Arc::new(overlay.unwrap())
    });
}

#[test]
fn a_faulty_device_without_faults_conforms() {
    check(&|capacity| Arc::new(FaultyDevice::new(memory(capacity), [])));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_history_reads_back(
        steps in prop::collection::vec(step(16), 0..80),
        threads in 0..4_usize,
    ) {
        replay(&memory(Sector(128)), &steps);
        replay(&file(Sector(128), threads), &steps);
        let options = FileOptions { engine: Engine::Uring, ..FileOptions::default() };
        replay(&file_with(Sector(128), &options), &steps);
        for engine in [Engine::Mixed, Engine::Around] {
            let options = FileOptions { engine, ..FileOptions::default() };
            replay(&file_with(Sector(4096), &options), &steps);
        }
    }
}
