//! Writes and flushes whose every block is known.

use std::sync::Arc;

use undercroft_block::{
    Batch, Bio, BlockDevice, Buffer, Plug, Sector, flush, read_buffer, write_zeroes_at,
};
use undercroft_judges::random::Random;

/// Bytes of a block.
const BLOCK: usize = 4096;
/// Blocks of the load.
pub const BLOCKS: u64 = 2048;
/// Most blocks of a batch.
const BATCH: u64 = 48;

/// Blocks with the number of the write that each holds; zero where zeroes are.
pub struct Load {
    held: Vec<u64>,
    next: u64,
    random: Random,
}

impl Load {
    pub fn new(seed: u64) -> Self {
        Self { held: vec![0; BLOCKS as usize], next: 1, random: Random::new(seed) }
    }

    /// Some writes at once, then perhaps a flush, zeroes, or a look at what was written.
    pub fn step(&mut self, device: &Arc<dyn BlockDevice>) {
        self.write(device);
        match self.random.below(8) {
            0 | 1 => flush(&**device).expect("a flush"),
            2 => self.write_zeroes(device),
            3 | 4 => self.look(device),
            _ => {}
        }
    }

    fn write(&mut self, device: &Arc<dyn BlockDevice>) {
        let batch = Batch::new();
        let plug = Plug::new(device);
        let mut place = self.random.below(BLOCKS);
        for _ in 0..1 + self.random.below(BATCH) {
            let number = self.next;
            self.next += 1;
            let mut bytes = Buffer::zeroed(BLOCK);
            bytes.chunks_mut(8).for_each(|word| word.copy_from_slice(&number.to_le_bytes()));
            let bio = Bio::write(sector(place), bytes);
            let bio = if self.random.one_in(16) { bio.force_unit_access() } else { bio };
            plug.submit(bio.in_batch(&batch));
            self.held[place as usize] = number;
            // Neighbours, some of which merge, and others. One that comes twice keeps its order.
            let far = self.random.one_in(4);
            place = if far { self.random.below(BLOCKS) } else { (place + 1) % BLOCKS };
        }
        drop(plug);
        batch.wait().expect("writes");
    }

    fn write_zeroes(&mut self, device: &Arc<dyn BlockDevice>) {
        let first = self.random.below(BLOCKS);
        let count = (1 + self.random.below(64)).min(BLOCKS - first);
        write_zeroes_at(&**device, sector(first), count * BLOCK as u64).expect("zeroes");
        self.held[first as usize..(first + count) as usize].fill(0);
    }

    fn look(&mut self, device: &Arc<dyn BlockDevice>) {
        let first = self.random.below(BLOCKS);
        let count = (1 + self.random.below(64)).min(BLOCKS - first);
        self.compare(&**device, first, count);
    }

    /// All blocks hold what was written last.
    pub fn verify(&self, device: &dyn BlockDevice) {
        for first in (0..BLOCKS).step_by(256) {
            self.compare(device, first, 256);
        }
    }

    fn compare(&self, device: &dyn BlockDevice, first: u64, count: u64) {
        let found = read_buffer(device, sector(first), count as usize * BLOCK).expect("a read");
        for (block, bytes) in (first..).zip(found.chunks(BLOCK)) {
            let expected = self.held[block as usize].to_le_bytes();
            for word in bytes.chunks(8) {
                let found = u64::from_le_bytes(word.try_into().expect("eight bytes"));
                let expected = u64::from_le_bytes(expected);
                assert_eq!(found, expected, "the write in block {block}");
            }
        }
    }
}

fn sector(block: u64) -> Sector {
    Sector(block * BLOCK as u64 / undercroft_block::SECTOR_SIZE)
}
