//! Bytes that stand for others: vis(3) in mtree(5), and the escapes of composefs-dump(5).

/// What a backslash is followed by for one byte, in both.
fn letter(byte: u8) -> Option<u8> {
    Some(match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'\\' => b'\\',
        _ => return None,
    })
}

/// Text in the style of vis(3): octal digits, letters as in C, `\s` for a space, `\^C` and `\M-C` for
/// others. `None` if a backslash is followed by nothing that is known.
pub(super) fn unvis(text: &[u8]) -> Option<Vec<u8>> {
    decode(text, unvis_one)
}

/// Text with each backslash and what follows replaced by its byte. `escape` takes the text behind a
/// backslash, and says that byte and the number of bytes that stand for it.
fn decode(text: &[u8], escape: impl Fn(&[u8]) -> Option<(u8, usize)>) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let (value, length) = escape(rest)?;
        bytes.push(value);
        rest = &rest[length..];
    }
    Some(bytes)
}

/// The byte that follows a backslash stands for, and the number of bytes that say so.
fn unvis_one(text: &[u8]) -> Option<(u8, usize)> {
    match *text {
        [b'0'..=b'7', ..] => {
            let digits = text.iter().take(3).take_while(|byte| (b'0'..=b'7').contains(byte));
            let value = digits.clone().fold(0, |sum, digit| sum * 8 + u32::from(digit - b'0'));
            Some((u8::try_from(value).ok()?, digits.count()))
        }
        [b'^', control, ..] => Some((self::control(control)?, 2)),
        [b'M', b'^', control, ..] => Some((self::control(control)? | 0x80, 3)),
        [b'M', b'-', byte @ b' '..=b'~', ..] => Some((byte | 0x80, 3)),
        [byte, ..] => Some((
            match byte {
                b'a' => 0x07,
                b'b' => 0x08,
                b'v' => 0x0b,
                b'f' => 0x0c,
                b'e' | b'E' => 0x1b,
                b's' => b' ',
                b'#' | b'*' | b'?' | b'[' | b'=' | b'"' | b'\'' | b' ' | b'$' => byte,
                _ => letter(byte)?,
            },
            1,
        )),
        [] => None,
    }
}

fn control(byte: u8) -> Option<u8> {
    match byte {
        b'?' => Some(0x7f),
        b'@'..=b'_' => Some(byte & 0x1f),
        _ => None,
    }
}

/// Text as all readers of mtree(5) understand it: octal digits for what could mean something.
pub(crate) fn vis(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            // Readers take the first three of these for patterns.
            b'*' | b'?' | b'[' | b']' | b'#' | b'=' | b'\\' => octal(byte, &mut text),
            b'!'..=b'~' => text.push(char::from(byte)),
            _ => octal(byte, &mut text),
        }
    }
    text
}

fn octal(byte: u8, text: &mut String) {
    text.push('\\');
    for shift in [6, 3, 0] {
        text.push(char::from(b'0' + (byte >> shift & 7)));
    }
}

/// A field of composefs-dump(5) as bytes. `None` if a backslash is followed by nothing that is known.
pub(super) fn unescape(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    decode(text, |rest| match *rest {
        [b'x', high, low, ..] => Some(((digit(high)? << 4 | digit(low)?) as u8, 3)),
        [byte, ..] => Some((letter(byte)?, 1)),
        [] => None,
    })
}

/// A field of composefs-dump(5): `-` and `=` are escaped where they would mean something, `=` only
/// in the names of attributes. As composefs-info writes it.
pub(crate) fn escape(bytes: &[u8], is_name: bool) -> String {
    let mut text = String::with_capacity(bytes.len());
    let lone = bytes == b"-";
    for &byte in bytes {
        match byte {
            b'\\' => text.push_str("\\\\"),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            b'=' if is_name => text.push_str("\\x3d"),
            b'-' if lone => text.push_str("\\x2d"),
            b'!'..=b'~' => text.push(char::from(byte)),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_as_bsd_programs_write_them() {
        for (text, bytes) in [
            (&br"\#hash"[..], &b"#hash"[..]),
            (br"\043hash", b"#hash"),
            (br"sp\sace\040x", b"sp ace x"),
            (br"hi\M^?\M-~\M-C\M-<", b"hi\xff\xfe\xc3\xbc"),
            (br"del\^?\^A\M^A", b"del\x7f\x01\x81"),
            (br"nl\n\r\t\v\f\a\b\\", b"nl\n\r\t\x0b\x0c\x07\x08\\"),
            (br"\0\1234", b"\0S4"),
        ] {
            assert_eq!(unvis(text).unwrap(), bytes, "{}", text.escape_ascii());
        }
        for text in [&br"\"[..], br"\z", br"\M", br"\M-", br"\^", br"\777"] {
            assert_eq!(unvis(text), None);
        }
    }

    #[test]
    fn fields_as_composefs_writes_them() {
        assert_eq!(unescape(br"a\x20dir\n\r\t\\\x00\xff").unwrap(), b"a dir\n\r\t\\\0\xff");
        for text in [&br"\"[..], br"\x", br"\x1", br"\xg0", br"\q"] {
            assert_eq!(unescape(text), None);
        }
        assert_eq!(escape(b"-", false), r"\x2d");
        assert_eq!(escape(b"a=-\\ \n", false), r"a=-\\\x20\n");
        assert_eq!(escape(b"a=-", true), r"a\x3d-");
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(unvis(vis(&bytes).as_bytes()).unwrap(), &bytes[..]);
            prop_assert_eq!(unescape(escape(&bytes, false).as_bytes()).unwrap(), &bytes[..]);
            prop_assert_eq!(unescape(escape(&bytes, true).as_bytes()).unwrap(), &bytes[..]);
        }
    }
}
