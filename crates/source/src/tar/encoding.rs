//! Percent and base64 encoding, as libarchive writes attributes.

/// Decodes `%41` and the like; `None` when a percent sign is not followed by two hexadecimal digits.
pub(super) fn percent(encoded: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(encoded.len());
    let mut rest = encoded.iter();
    while let Some(&byte) = rest.next() {
        if byte == b'%' {
            let (high, low) = (hex(*rest.next()?)?, hex(*rest.next()?)?);
            decoded.push(high << 4 | low);
        } else {
            decoded.push(byte);
        }
    }
    Some(decoded)
}

/// Decodes what GNU tar encodes in the keys of pax records: `=`, which would end the key, and the
/// percent sign itself.
pub(super) fn keyword(encoded: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(encoded.len());
    let mut rest = encoded;
    while let Some((&byte, after)) = rest.split_first() {
        let (byte, after) = match rest {
            [b'%', b'3', b'D', after @ ..] => (b'=', after),
            [b'%', b'2', b'5', after @ ..] => (b'%', after),
            _ => (byte, after),
        };
        decoded.push(byte);
        rest = after;
    }
    decoded
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

/// Decodes base64 with or without padding; `None` when it is malformed.
pub(super) fn base64(encoded: &[u8]) -> Option<Vec<u8>> {
    let end = encoded.iter().rposition(|&byte| byte != b'=').map_or(0, |last| last + 1);
    if encoded.len() - end > 2 || end % 4 == 1 {
        return None;
    }
    let mut decoded = Vec::with_capacity(end / 4 * 3 + 3);
    for group in encoded[..end].chunks(4) {
        let mut bits = 0u32;
        for &digit in group {
            bits = bits << 6 | u32::from(base64_digit(digit)?);
        }
        let bytes = (bits << (6 * (4 - group.len()))).to_be_bytes();
        decoded.extend_from_slice(&bytes[1..group.len()]);
    }
    Some(decoded)
}

fn base64_digit(digit: u8) -> Option<u8> {
    match digit {
        b'A'..=b'Z' => Some(digit - b'A'),
        b'a'..=b'z' => Some(digit - b'a' + 26),
        b'0'..=b'9' => Some(digit - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_every_length() {
        for (encoded, decoded) in [
            ("", ""),
            ("Zg", "f"),
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYg", "foob"),
        ] {
            assert_eq!(base64(encoded.as_bytes()).unwrap(), decoded.as_bytes());
        }
        assert_eq!(base64(b"//79+A").unwrap(), [0xff, 0xfe, 0xfd, 0xf8]);
        for bad in [&b"Z"[..], b"Zg===", b"Z*==", b"Zm9vY"] {
            assert_eq!(base64(bad), None);
        }
    }

    #[test]
    fn percent_signs_are_followed_by_digits() {
        assert_eq!(percent(b"user.a%20b%fF").unwrap(), b"user.a b\xff");
        assert_eq!(keyword(b"user.%3D%25%41%"), b"user.=%%41%");
        assert_eq!(percent(b"a%4"), None);
        assert_eq!(percent(b"a%+1"), None);
    }
}
