//! Inputs that choose and patch: the language in which a fuzzer describes damage.
//!
//! Every string of bytes is a valid input, short ones mean something, and a change of one byte
//! changes one thing; bytes missing at the end count as zeros.

/// Takes numbers from the front of an input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    pub(crate) fn word(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    /// Up to `len` bytes.
    pub(crate) fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (front, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        front
    }

    /// One of `choices`, of which there is at least one.
    pub(crate) fn choose<'c, T>(&mut self, choices: &'c [T]) -> &'c T {
        &choices[usize::from(self.word()) % choices.len()]
    }
}

/// One change to a piece of metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// Other bytes.
    Bytes(&'a [u8]),
    /// The number of the block or inode at another piece, in this many bytes (2, 4 or 8), plus a
    /// small number: the way to loops and doubly used blocks.
    Pointer {
        /// Index of the other piece, to be taken modulo their count.
        to: u16,
        /// Bytes of the pointer.
        width: usize,
        /// Added to it.
        add: i8,
    },
    /// The bytes of another piece from this offset on.
    Copy {
        /// Index of the other piece, to be taken modulo their count.
        from: u16,
    },
}

/// A change and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patch<'a> {
    /// Index of the piece, to be taken modulo their count.
    pub piece: u16,
    /// Offset in it, to be taken modulo its length.
    pub offset: u16,
    /// What happens there.
    pub change: Change<'a>,
}

/// The patches in an input, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Patches<'a>(Input<'a>);

impl<'a> Patches<'a> {
    pub(crate) const fn new(input: Input<'a>) -> Self {
        Self(input)
    }
}

impl<'a> Iterator for Patches<'a> {
    type Item = Patch<'a>;

    fn next(&mut self) -> Option<Patch<'a>> {
        if self.0.0.is_empty() {
            return None;
        }
        let input = &mut self.0;
        let (verb, piece, offset) = (input.byte(), input.word(), input.word());
        let change = match verb >> 6 {
            0 | 1 => Change::Bytes(input.bytes(usize::from(verb & 0x7f) + 1)),
            2 => Change::Pointer {
                to: input.word(),
                width: [2, 4, 8, 4][usize::from(verb & 3)],
                add: input.byte() as i8,
            },
            _ => Change::Copy { from: input.word() },
        };
        Some(Patch { piece, offset, change })
    }
}

/// Replaces bytes from `offset` on as far as there is room; the offset is taken modulo the length.
pub(crate) fn overwrite(bytes: &mut [u8], offset: u16, new: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let offset = usize::from(offset) % bytes.len();
    let len = new.len().min(bytes.len() - offset);
    bytes[offset..offset + len].copy_from_slice(&new[..len]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_read_as_written() {
        let input = [1, 0, 2, 0, 3, 0xaa, 0xbb, 0x82, 0, 1, 0, 9, 0, 5, 0xff, 0xc0, 0, 0, 0, 64, 7];
        let patches: Vec<_> = Patches::new(Input(&input)).collect();
        let expected = [
            Patch { piece: 2, offset: 3, change: Change::Bytes(&[0xaa, 0xbb]) },
            Patch { piece: 1, offset: 9, change: Change::Pointer { to: 5, width: 8, add: -1 } },
            Patch { piece: 0, offset: 64, change: Change::Copy { from: 0x700 } },
        ];
        assert_eq!(patches, expected);
        assert_eq!(Patches::new(Input(&[])).count(), 0);
    }

    #[test]
    fn overwriting_stays_inside() {
        let mut bytes = [0; 4];
        overwrite(&mut bytes, 6, &[1, 2, 3]);
        assert_eq!(bytes, [0, 0, 1, 2]);
        overwrite(&mut [], 6, &[1]);
    }
}
