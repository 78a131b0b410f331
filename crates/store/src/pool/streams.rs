//! What readers that go on where they ended want next.

use std::ops::Range;

/// Readers that are remembered.
const STREAMS: usize = 8;
/// Most pieces that are fetched ahead of a reader: of all readers together half of those that are kept.
const WINDOW: u64 = 16;

/// Readers by where they ended.
#[derive(Default)]
pub(super) struct Streams {
    /// The last one to read is the last.
    all: Vec<Stream>,
}

struct Stream {
    /// The piece in which it ended.
    at: u64,
    /// Pieces that are to be ahead of it.
    window: u64,
    /// Where what is ahead ends.
    ahead: u64,
}

impl Streams {
    /// Counts a read of pieces of a disk that ends at `end`, and returns those to be fetched ahead.
    pub(super) fn ahead(&mut self, read: Range<u64>, end: u64) -> Range<u64> {
        let (first, last) = (read.start, read.end - 1);
        let goes_on = |stream: &Stream| (stream.at..=stream.at + 1).contains(&first);
        let Some(index) = self.all.iter().rposition(goes_on) else {
            if self.all.len() == STREAMS {
                self.all.remove(0);
            }
            self.all.push(Stream { at: last, window: 0, ahead: read.end });
            return 0..0;
        };
        let mut stream = self.all.remove(index);
        let has_moved = last > stream.at;
        (stream.at, stream.ahead) = (last, stream.ahead.max(read.end));
        let mut wanted = 0..0;
        // More is fetched in few long requests, when half of it was read.
        if has_moved && stream.ahead - read.end <= stream.window / 2 {
            stream.window = (stream.window * 2).clamp(2, WINDOW);
            let until = (read.end + stream.window).min(end);
            wanted = stream.ahead..until.max(stream.ahead);
            stream.ahead = wanted.end;
        }
        self.all.push(stream);
        wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_goes_on_has_more_and_more_ahead() {
        let mut streams = Streams::default();
        assert!(streams.ahead(0..1, 1000).is_empty());
        assert!(streams.ahead(0..1, 1000).is_empty(), "the same piece again");
        assert_eq!(streams.ahead(1..2, 1000), 2..4);
        let mut ahead = 4;
        for piece in 2..200 {
            let more = streams.ahead(piece..piece + 1, 1000);
            assert!(more.is_empty() || more.start == ahead, "{piece}: {more:?} after {ahead}");
            ahead = ahead.max(more.end);
            assert!(ahead > piece + 1 && ahead <= piece + 1 + WINDOW);
        }
        assert!(streams.ahead(997..998, 1000).is_empty(), "a jump");
        assert_eq!(streams.ahead(998..999, 1000), 999..1000);
    }

    #[test]
    fn readers_are_told_apart() {
        let mut streams = Streams::default();
        streams.ahead(0..1, 1000);
        streams.ahead(500..501, 1000);
        assert_eq!(streams.ahead(1..2, 1000), 2..4);
        assert_eq!(streams.ahead(501..502, 1000), 502..504);
    }
}
