//! The tags that are held, checked in debug builds. They are a set beside the bitmap, since the bit
//! of a tag in a tag cache is busy and the tag is not held. Release builds have no such set.

#[cfg(debug_assertions)]
use std::sync::atomic::{AtomicU64, Ordering};

/// The tags that are held.
#[derive(Debug)]
pub(crate) struct HoldCheck {
    #[cfg(debug_assertions)]
    words: Box<[AtomicU64]>,
}

#[cfg_attr(
    not(debug_assertions),
    allow(unused_variables, clippy::unused_self, reason = "only debug builds check")
)]
impl HoldCheck {
    pub(crate) fn new(depth: u32) -> Self {
        Self {
            #[cfg(debug_assertions)]
            words: (0..depth.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// A bit is handed out.
    #[inline(always)]
    pub(crate) fn hand_out(&self, bit: u32) {
        #[cfg(debug_assertions)]
        {
            let mask = 1 << (bit % 64);
            let held = self.words[(bit / 64) as usize].fetch_or(mask, Ordering::Relaxed);
            assert!(held & mask == 0, "bit {bit} is handed out twice; some tag was put twice");
        }
    }

    /// A bit comes back. Panics in debug builds when it is not held.
    #[inline(always)]
    pub(crate) fn take_back(&self, bit: u32) {
        #[cfg(debug_assertions)]
        {
            let Some(word) = self.words.get((bit / 64) as usize) else {
                panic!("tag {bit} is out of range: the set has no such tag");
            };
            let mask = 1 << (bit % 64);
            let held = word.fetch_and(!mask, Ordering::Relaxed);
            assert!(
                held & mask != 0,
                "tag {bit} is put but nobody holds it: it was put twice, or never got"
            );
        }
    }
}
