//! Bytes that have come and were not looked at.

/// One call brings up to so many bytes of headers and short payloads.
const CAPACITY: usize = 256 << 10;
/// Less room than this behind the bytes is not worth a call.
const LEAST_ROOM: usize = 64 << 10;

/// A window of bytes in memory that is used again.
pub(crate) struct Input {
    memory: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Input {
    pub(crate) fn new() -> Self {
        Self { memory: vec![0; CAPACITY].into(), start: 0, end: 0 }
    }

    /// What has come.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.end]
    }

    /// Takes the first `count` bytes away, or all if there are fewer.
    pub(crate) fn consume(&mut self, count: usize) {
        self.start = self.end.min(self.start.saturating_add(count));
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Memory for what comes; never empty while less than a quarter of all is not looked at.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        if self.memory.len() - self.end < LEAST_ROOM && self.start > 0 {
            self.memory.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        &mut self.memory[self.end..]
    }

    /// Says that `count` bytes of the room were filled.
    pub(crate) fn fill(&mut self, count: usize) {
        self.end = self.memory.len().min(self.end + count);
    }
}
