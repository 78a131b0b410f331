//! A name of the root directory, the file it stands for, and what that must hold.
//!
//! Threads change the file at the same time: each has a stripe of it, in which no other writes, so
//! it knows every byte there. Stripes are no multiples of blocks: neighbours share blocks.
//! Operations on the whole file (its size, its name, which file it is) happen alone.

use parking_lot::{Mutex, RwLock};
use undercroft_xfs::OpenFile;

/// Bytes of a stripe: some blocks and a bit.
pub const STRIPE: usize = 7 * 4096 + 1234;

/// What a slot holds now.
pub struct Content {
    pub file: OpenFile,
    /// The bytes of each thread's stripe.
    pub stripes: Vec<Mutex<Vec<u8>>>,
    /// Further names: `hard-N`.
    pub links: u32,
}

/// A slot: shared by threads that change or read bytes, exclusive for one that changes all of it.
pub struct Slot {
    pub name: String,
    pub content: RwLock<Option<Content>>,
}

impl Slot {
    pub fn new(index: usize) -> Self {
        Self { name: format!("slot-{index}"), content: RwLock::new(None) }
    }
}

impl Content {
    /// An empty file of full length.
    pub fn new(file: OpenFile, threads: usize) -> Self {
        let stripes = (0..threads).map(|_| Mutex::new(vec![0; STRIPE])).collect();
        Self { file, stripes, links: 0 }
    }

    /// Where a stripe begins.
    pub fn start(thread: usize) -> u64 {
        (thread * STRIPE) as u64
    }

    /// Length of the file in bytes.
    pub fn file_size(&self) -> u64 {
        (self.stripes.len() * STRIPE) as u64
    }

    /// All bytes; the slot is held alone.
    pub fn bytes(&self) -> Vec<u8> {
        self.stripes.iter().flat_map(|stripe| stripe.lock().clone()).collect()
    }

    /// The file was cut at `size`: bytes behind it read as zeros.
    pub fn cut(&mut self, size: u64) {
        for (thread, stripe) in self.stripes.iter_mut().enumerate() {
            let kept = size.saturating_sub(Self::start(thread)).min(STRIPE as u64) as usize;
            stripe.get_mut()[kept..].fill(0);
        }
    }

    /// Compares all of the file with its expected content; the slot is held alone.
    pub fn verify(&self, what: &str) {
        let expected = self.bytes();
        let mut found = vec![0xee; expected.len()];
        let len = self.file.read(0, &mut found).unwrap();
        assert_eq!(len, expected.len(), "{what}: length of {}", self.file.number());
        if let Some(at) = (0..len).find(|at| found[*at] != expected[*at]) {
            panic!(
                "{what}: byte {at} of inode {} (stripe {}, {} in it) is {}, not {}",
                self.file.number(),
                at / STRIPE,
                at % STRIPE,
                found[at],
                expected[at]
            );
        }
    }
}
