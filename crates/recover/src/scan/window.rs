//! Pieces of a device, put together where a block is on both sides of a border.

/// Bytes of the longest block.
const LONGEST: usize = 64 << 10;

/// What is read, and not looked at yet.
#[derive(Default)]
pub(super) struct Window {
    /// The sector of the first byte.
    start: u64,
    held: Vec<u8>,
    /// Bytes of `held` that belong to a block that was found.
    skip: usize,
}

impl Window {
    /// Adds what was read at a sector. `find` is given each sector with what follows it, up to the
    /// length of the longest block, and returns the length of a block that it found.
    pub(super) fn add(
        &mut self,
        sector: u64,
        piece: &[u8],
        mut find: impl FnMut(u64, &[u8]) -> Option<usize>,
    ) {
        if self.start + (self.held.len() / 512) as u64 != sector {
            self.look(0, &mut find);
            (self.start, self.skip) = (sector, 0);
            self.held.clear();
        }
        self.held.extend_from_slice(piece);
        self.look(LONGEST, &mut find);
    }

    /// Looks at the rest.
    pub(super) fn finish(mut self, mut find: impl FnMut(u64, &[u8]) -> Option<usize>) {
        self.look(0, &mut find);
    }

    /// Looks at all sectors that at least `ahead` bytes follow, and drops them.
    fn look(&mut self, ahead: usize, find: &mut impl FnMut(u64, &[u8]) -> Option<usize>) {
        let mut at = self.skip;
        while at + ahead.max(512) <= self.held.len() {
            let rest = &self.held[at..self.held.len().min(at + LONGEST)];
            let len = find(self.start + (at / 512) as u64, rest);
            at += len.unwrap_or(512).next_multiple_of(512);
        }
        let done = at.min(self.held.len());
        self.skip = at - done;
        self.start += (done / 512) as u64;
        self.held.drain(..done);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sector_is_looked_at_once_and_blocks_are_whole() {
        let bytes: Vec<u8> = (0..4096_u32).flat_map(|sector| [sector as u8; 512]).collect();
        let mut seen = Vec::new();
        let mut window = Window::default();
        let mut find = |at: u64, rest: &[u8]| {
            assert_eq!(rest[0], at as u8);
            seen.push(at);
            // A block of 64 KiB on the border of two pieces.
            (at == 1000).then(|| {
                assert_eq!(rest.len(), LONGEST);
                LONGEST
            })
        };
        window.add(0, &bytes[..512 << 10], &mut find);
        window.add(1024, &bytes[512 << 10..], &mut find);
        window.add(9000, &[40; 512], &mut find);
        window.finish(&mut find);
        let expected: Vec<u64> = (0..=1000).chain(1128..4096).chain([9000]).collect();
        assert_eq!(seen, expected);
    }
}
