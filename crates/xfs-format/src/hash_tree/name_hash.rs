//! The hash of names in directories and attributes, and how names compare.
//!
//! The hash of docs/format/hash-trees.md#name-hash is `h = c XOR rotl(h, 7)` over the bytes of the
//! name. Volumes with the ASCII-CI bit fold the Latin-1 upper case letters first, in the hash and
//! in comparisons; the stored name keeps its case.

/// Hash of a directory entry's or an attribute's name.
#[must_use]
pub fn name_hash(name: &[u8]) -> u32 {
    // Four steps of the rolling hash at once: a rotation by 7 distributes over XOR.
    let (words, rest) = name.as_chunks::<4>();
    let hash = words.iter().fold(0_u32, |hash, word| {
        let [a, b, c, d] = word.map(u32::from);
        (a << 21) ^ (b << 14) ^ (c << 7) ^ d ^ hash.rotate_left(28)
    });
    rest.iter().fold(hash, |hash, byte| u32::from(*byte) ^ hash.rotate_left(7))
}

/// Hash of a directory entry's name on a volume with or without ASCII case folding.
#[must_use]
pub fn entry_hash(name: &[u8], fold_case: bool) -> u32 {
    if fold_case {
        name.iter().fold(0_u32, |hash, byte| u32::from(fold(*byte)) ^ hash.rotate_left(7))
    } else {
        name_hash(name)
    }
}

/// Whether two directory entry names are the same name.
#[must_use]
pub fn names_equal(a: &[u8], b: &[u8], fold_case: bool) -> bool {
    if fold_case {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| fold(*a) == fold(*b))
    } else {
        a == b
    }
}

/// Lower case of an upper case letter, anything else unchanged.
const fn fold(byte: u8) -> u8 {
    match byte {
        0x41..=0x5a | 0xc0..=0xd6 | 0xd8..=0xde => byte + 0x20,
        _ => byte,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_the_table_of_the_format_reference() {
        for (name, hash) in [
            (".", 0x0000_002e),
            ("..", 0x0000_172e),
            ("a", 0x0000_0061),
            ("ab", 0x0000_30e2),
            ("abc", 0x0018_7163),
            ("abcd", 0x0c38_b1e4),
            ("abcde", 0x1c58_f263),
            ("file", 0x0cda_7665),
            ("hello", 0x8cbb_3669),
            ("hello.txt", 0x9d16_8f12),
            ("README", 0x5831_2451),
            ("Makefile", 0x5c41_f13b),
            ("lost+found", 0x021a_a60c),
            ("user.foo", 0x2532_78c0),
            ("SGI_ACL_FILE", 0x275b_19c4),
            ("selinux", 0xcd3a_75d6),
        ] {
            assert_eq!(name_hash(name.as_bytes()), hash, "{name}");
            assert_eq!(entry_hash(name.as_bytes(), false), hash, "{name}");
        }
    }

    #[test]
    fn case_folding_maps_latin_1_letters_only() {
        assert_eq!(entry_hash(b"README", true), name_hash(b"readme"));
        assert_eq!(
            entry_hash(b"\xc0\xd6\xd7\xd8\xde\xdf@[", true),
            name_hash(b"\xe0\xf6\xd7\xf8\xfe\xdf@[")
        );
        assert!(names_equal(b"ReadMe", b"rEADmE", true));
        assert!(!names_equal(b"ReadMe", b"rEADmE", false));
        assert!(!names_equal(b"a", b"ab", true));
    }
}
