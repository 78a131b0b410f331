//! The bitmap: words on their own cache lines, and the search for a free bit.

use std::sync::Arc;

use crossbeam_utils::CachePadded;

use crate::layout::Layout;
use crate::word::Word;

/// Words shared by a pool and its callers.
pub(crate) type Words = Arc<[CachePadded<Word>]>;

/// Busy and free bits, numbered from zero.
#[derive(Debug)]
pub(crate) struct Bitmap {
    words: Words,
    layout: Layout,
    depth: u32,
}

impl Bitmap {
    /// With `depth` bits.
    pub(crate) fn new(depth: u32) -> Self {
        let layout = Layout::new(depth);
        let words = (0..layout.words)
            .map(|index| CachePadded::new(Word::new(!layout.valid(index, depth))))
            .collect();
        Self { words, layout, depth }
    }

    pub(crate) fn words(&self) -> &Words {
        &self.words
    }

    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// Takes a free bit. The hint chooses the word that is looked at first.
    ///
    /// Every word is looked at before the search fails, so "seen full" is true of each word at some
    /// moment during the search (invariant I4).
    pub(crate) fn find(&self, hint: u32) -> Option<u32> {
        let start = self.word_of(hint);
        let take = |index: usize| {
            let bit = self.words[index].take_first()?;
            Some(((index as u32) << self.layout.shift) + bit)
        };
        (start..self.words.len()).chain(0..start).find_map(take)
    }

    /// Takes up to `count` bits, all of one word: the number of the word's first bit and a mask of
    /// those taken. The mask is empty only when every word was seen full.
    pub(crate) fn find_run(&self, hint: u32, count: u32) -> (u32, u64) {
        let start = self.word_of(hint);
        for index in (start..self.words.len()).chain(0..start) {
            let mask = self.words[index].take_run(count);
            if mask != 0 {
                return ((index as u32) << self.layout.shift, mask);
            }
        }
        (0, 0)
    }

    /// Whether a bit was free a moment ago.
    pub(crate) fn has_free(&self) -> bool {
        self.words.iter().any(|word| word.free() != 0)
    }

    /// Number of bits that were free a moment ago, counted up to `most`.
    pub(crate) fn count_free(&self, most: u32) -> u32 {
        let mut free = 0;
        for word in &self.words[..] {
            free += word.free().count_ones();
            if free >= most {
                return most;
            }
        }
        free
    }

    /// Busy bits: word by word, each as it was at one moment.
    pub(crate) fn busy(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.iter().enumerate().flat_map(|(index, word)| {
            let first = (index as u32) << self.layout.shift;
            let busy = word.busy();
            (0..64).filter(move |bit| busy >> bit & 1 == 1).map(move |bit| first + bit)
        })
    }

    /// Number of busy bits.
    pub(crate) fn weight(&self) -> u32 {
        self.words.iter().map(|word| word.busy().count_ones()).sum()
    }

    fn word_of(&self, hint: u32) -> usize {
        let word = (hint >> self.layout.shift) as usize;
        if word < self.words.len() { word } else { 0 }
    }
}
