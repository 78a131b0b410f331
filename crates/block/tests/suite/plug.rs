//! The contract of the plug with its thread: when it flushes, which bios it merges, which it keeps
//! apart.

use std::sync::Arc;

use undercroft_block::{
    Batch, Bio, BlockDevice, Buffer, BufferPool, MemoryDevice, Plug, PlugThreshold, Sector,
    read_buffer, stack::Stripe, write_all_at,
};

fn disk() -> Arc<dyn BlockDevice> {
    Arc::new(MemoryDevice::new(1 << 20))
}

fn write(sector: u64, batch: &Batch) -> Bio {
    Bio::write(Sector(sector), Buffer::zeroed(512)).in_batch(batch)
}

#[test]
fn the_threshold_flushes() {
    let disk = disk();
    let batch = Batch::new();
    let threshold = PlugThreshold { bios: 3, bytes: 1 << 20 };
    let plug = Plug::with_threshold(&disk, threshold);
    plug.submit(write(0, &batch));
    plug.submit(write(1, &batch));
    assert_eq!(disk.statistics().bios, 0);
    plug.submit(write(2, &batch));
    assert_eq!((disk.statistics().bios, disk.statistics().requests), (3, 1));
    drop(plug);

    let plug = Plug::with_threshold(&disk, PlugThreshold { bios: 100, bytes: 1024 });
    plug.submit(write(10, &batch));
    plug.submit(write(20, &batch));
    assert_eq!(disk.statistics().bios, 5);
    batch.wait().unwrap();
}

#[test]
fn at_the_threshold_small_requests_stay_to_grow() {
    const PIECE: usize = 64 << 10;
    let disk: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(64 << 20));
    let batch = Batch::new();
    let plug = Plug::with_threshold(&disk, PlugThreshold { bios: 1000, bytes: 4 << 20 });
    let write = |place: u64, piece: u64| {
        let sector = Sector((place * (16 << 20) + piece * PIECE as u64) / 512);
        let bytes = Buffer::copy_of(&vec![(place * 48 + piece) as u8; PIECE]);
        plug.submit(Bio::write(sector, bytes).in_batch(&batch));
    };
    // Three places in turn: at the threshold each has a whole request, and a third of one.
    for piece in 0..22 {
        (0..3).for_each(|place| write(place, piece));
    }
    let passed = disk.statistics();
    assert_eq!((passed.requests, passed.bytes_written), (3, 3 << 20));
    for piece in 22..48 {
        (0..3).for_each(|place| write(place, piece));
    }
    batch.wait().unwrap();
    assert_eq!((disk.statistics().requests, disk.statistics().bios), (9, 3 * 48));
    for place in 0..3 {
        let bytes = read_buffer(&*disk, Sector(place << 15), 48 * PIECE).unwrap();
        for (bytes, piece) in bytes.chunks(PIECE).zip(0..) {
            assert!(bytes.iter().all(|byte| *byte == (place * 48 + piece) as u8));
        }
    }
}

#[test]
fn what_stays_at_the_threshold_keeps_its_order() {
    let disk: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(8 << 20));
    let batch = Batch::new();
    let plug = Plug::with_threshold(&disk, PlugThreshold { bios: 100, bytes: 1 << 20 });
    let write = |sector, bytes: usize, byte| {
        let bytes = Buffer::copy_of(&vec![byte; bytes]);
        plug.submit(Bio::write(Sector(sector), bytes).in_batch(&batch));
    };
    write(4000, 512, 1);
    write(0, 1 << 20, 2);
    assert_eq!(disk.statistics().bios, 1, "the small one stays");
    write(4000, 512, 3);
    // Now two overlap: all leave, the older one first.
    write(8000, 1 << 20, 4);
    assert_eq!(disk.statistics().bios, 4);
    write(4000, 512, 5);
    plug.submit(Bio::flush().in_batch(&batch));
    assert_eq!((disk.statistics().bios, disk.statistics().flushes), (6, 1));
    batch.wait().unwrap();
    assert_eq!(read_buffer(&*disk, Sector(4000), 512).unwrap()[..], [5; 512]);
}

#[test]
fn bios_for_hundreds_of_leaves_reach_theirs() {
    const LEGS: u64 = 700;
    let legs: Vec<_> = (0..LEGS).map(|_| Arc::new(MemoryDevice::new(64 << 10)) as _).collect();
    let stripe: Arc<dyn BlockDevice> = Arc::new(Stripe::new(4096, legs.clone()).unwrap());
    let batch = Batch::new();
    let plug = Plug::with_threshold(&stripe, PlugThreshold { bios: 3000, bytes: 1 << 30 });
    for chunk in (0..3 * LEGS).rev() {
        let bytes = Buffer::copy_of(&[(chunk % 251) as u8; 4096]);
        plug.submit(Bio::write(Sector(chunk * 8), bytes).in_batch(&batch));
    }
    batch.wait().unwrap();
    for leg in &legs {
        assert_eq!((leg.statistics().bios, leg.statistics().requests), (3, 1));
    }
    let bytes = read_buffer(&*stripe, Sector(0), 3 * LEGS as usize * 4096).unwrap();
    for (chunk, bytes) in bytes.chunks(4096).enumerate() {
        assert_eq!(bytes, [(chunk % 251) as u8; 4096], "chunk {chunk}");
    }
}

#[test]
fn bios_that_overlap_take_effect_in_the_order_of_submission() {
    let disk = disk();
    let batch = Batch::new();
    let plug = Plug::new(&disk);
    let write = |sector, sectors: usize, byte| {
        let bytes = Buffer::copy_of(&vec![byte; sectors * 512]);
        plug.submit(Bio::write(Sector(sector), bytes).in_batch(&batch));
    };
    write(4, 1, 1);
    write(1, 4, 2);
    write(20, 1, 3);
    write(4, 4, 4);
    write(0, 2, 5);
    assert_eq!(disk.statistics().bios, 0);
    batch.wait().unwrap();
    let bytes = read_buffer(&*disk, Sector(0), 21 * 512).unwrap();
    let found: Vec<u8> = bytes.chunks(512).map(|sector| sector[0]).collect();
    let expected = [5, 5, 2, 2, 4, 4, 4, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3];
    assert_eq!(found, expected);
    let passed = disk.statistics();
    assert_eq!((passed.bios, passed.requests), (6, 6));
}

#[test]
fn a_flush_bio_goes_behind_staged_bios() {
    let disk = disk();
    let batch = Batch::new();
    let plug = Plug::new(&disk);
    plug.submit(write(0, &batch));
    plug.submit(Bio::flush().in_batch(&batch));
    let passed = disk.statistics();
    assert_eq!((passed.bios, passed.flushes), (2, 1));
}

#[test]
fn waiting_flushes_every_plug_of_the_thread() {
    let disks = [disk(), disk()];
    let batch = Batch::new();
    let plugs: Vec<Plug> = disks.iter().map(Plug::new).collect();
    plugs.iter().for_each(|plug| plug.submit(write(0, &batch)));
    batch.wait().unwrap();
    assert!(disks.iter().all(|disk| disk.statistics().bios == 1));
}

#[test]
fn waiting_for_a_buffer_sends_the_bios_that_hold_buffers() {
    let disk = disk();
    let batch = Batch::new();
    let pool = BufferPool::new(16 << 10);
    let plug = Plug::new(&disk);
    for index in 0..64 {
        // Without the flush before sleeping the fifth would wait for ever.
        let buffer = pool.get_zeroed(4096);
        plug.submit(Bio::write(Sector(index * 16), buffer).in_batch(&batch));
    }
    batch.wait().unwrap();
    assert_eq!(disk.statistics().bios, 64);
    assert_eq!(pool.bytes_in_use(), 0);
}

#[test]
fn synchronous_calls_see_and_follow_staged_bios() {
    let disk = disk();
    let batch = Batch::new();
    let plug = Plug::new(&disk);
    plug.submit(Bio::write(Sector(0), Buffer::copy_of(&[1; 512])).in_batch(&batch));
    assert_eq!(read_buffer(&*disk, Sector(0), 512).unwrap()[..], [1; 512]);
    plug.submit(Bio::write(Sector(0), Buffer::copy_of(&[2; 512])).in_batch(&batch));
    write_all_at(&*disk, Sector(0), &[3; 512]).unwrap();
    assert_eq!(read_buffer(&*disk, Sector(0), 512).unwrap()[..], [3; 512]);
}

#[test]
fn a_callback_may_submit_through_the_plug_that_runs_it() {
    let disk = disk();
    let batch = Batch::new();
    let plug = Plug::new(&disk);
    let again = {
        let (disk, next) = (Arc::clone(&disk), write(0, &batch));
        move |_| Plug::new(&disk).submit(next)
    };
    plug.submit(Bio::write(Sector(0), Buffer::zeroed(512)).on_complete(again));
    // Overlaps the first, whose callback stages one more when the others have been sent.
    plug.submit(write(0, &batch));
    batch.wait().unwrap();
    assert_eq!(disk.statistics().bios, 3);
}
