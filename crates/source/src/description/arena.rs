//! Short pieces of bytes in one piece of memory: an allocation for each would cost as much as the
//! bytes.

/// Pieces of at most 65,535 bytes, each behind its length. They are never taken out.
#[derive(Default)]
pub(super) struct Arena(Vec<u8>);

/// Where a piece is; of its arena alone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece(u64);

/// An empty piece, which is in no arena.
const EMPTY: Piece = Piece(u64::MAX);

const LENGTH: usize = size_of::<u16>();

impl Arena {
    /// Keeps `bytes`. They are paths and digests, which are far shorter than a length can tell.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Piece {
        if bytes.is_empty() {
            return EMPTY;
        }
        debug_assert!(bytes.len() <= usize::from(u16::MAX), "no piece is that long");
        let piece = Piece(self.0.len() as u64);
        self.0.extend_from_slice(&(bytes.len() as u16).to_ne_bytes());
        self.0.extend_from_slice(bytes);
        piece
    }

    /// The bytes of a piece.
    pub(super) fn get(&self, piece: Piece) -> &[u8] {
        if piece.0 == EMPTY.0 {
            return &[];
        }
        // It came from the length of a list.
        let (length, rest) = self.0[piece.0 as usize..].split_at(LENGTH);
        &rest[..usize::from(u16::from_ne_bytes([length[0], length[1]]))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_back() {
        let mut arena = Arena::default();
        let all = [&b""[..], b"a", &[7; 65_535], b"", b"dir/name"];
        let pieces = all.map(|bytes| arena.push(bytes));
        for (bytes, piece) in all.into_iter().zip(pieces) {
            assert_eq!(arena.get(piece), bytes);
        }
    }
}
