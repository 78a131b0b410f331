//! Bytes that need no room.

/// Whether there is nothing but zeroes; true of no bytes.
#[must_use]
#[inline]
pub fn is_zero(bytes: &[u8]) -> bool {
    // Equal to itself a byte further on: a comparison of memory, many bytes at a time.
    bytes.split_first().is_none_or(|(first, rest)| *first == 0 && *rest == bytes[..rest.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_byte_anywhere_is_seen() {
        assert!(is_zero(&[]));
        for len in 1..70 {
            let mut bytes = vec![0; len];
            assert!(is_zero(&bytes));
            for at in 0..len {
                bytes[at] = 1;
                assert!(!is_zero(&bytes), "{at} of {len}");
                bytes[at] = 0;
            }
        }
    }
}
