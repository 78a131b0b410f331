//! Words of a line of the shell: quoted as in other shells, with the escapes that `ls` prints.
//!
//! White space separates words, `#` begins a comment. Text in single quotes stands for itself, but
//! behind `$`, where escapes count, as `ls` prints names on a terminal. Elsewhere `\n`, `\r`, `\t` and `\xHH` are the byte that `ls` shows so, a backslash at the end of
//! a line continues it, and before any other character it takes its meaning away. In double quotes
//! it does so only where the character has one. Words are bytes, as names are.

use std::iter::Peekable;
use std::slice;

/// Why a line is no complete line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unfinished {
    /// A quotation mark has no second one.
    Quotation,
    /// It ends in a backslash: the next line belongs to it.
    Backslash,
}

/// The words of a line.
pub(crate) fn split(line: &[u8]) -> Result<Vec<Vec<u8>>, Unfinished> {
    let mut words = Vec::new();
    // `None` between words; `''` is a word without bytes.
    let mut word: Option<Vec<u8>> = None;
    let mut rest = line.iter().peekable();
    while let Some(&byte) = rest.next() {
        match byte {
            b' ' | b'\t' | b'\n' => words.extend(word.take()),
            b'#' if word.is_none() => while rest.next_if(|byte| **byte != b'\n').is_some() {},
            b'\'' => {
                let word = word.get_or_insert_default();
                while rest.peek().is_some_and(|byte| **byte != b'\'') {
                    word.extend(rest.next());
                }
                rest.next().ok_or(Unfinished::Quotation)?;
            }
            b'"' => quoted(&mut rest, word.get_or_insert_default())?,
            b'$' if rest.next_if(|byte| **byte == b'\'').is_some() => {
                escaped(&mut rest, word.get_or_insert_default())?;
            }
            b'\\' => match escape(&mut rest)? {
                Escape::Continued => {}
                Escape::Byte(byte) | Escape::Other(byte) => {
                    word.get_or_insert_default().push(byte);
                }
            },
            byte => word.get_or_insert_default().push(byte),
        }
    }
    words.extend(word);
    Ok(words)
}

type Rest<'l> = Peekable<slice::Iter<'l, u8>>;

/// The text behind a double quotation mark, up to the second one.
fn quoted(rest: &mut Rest<'_>, word: &mut Vec<u8>) -> Result<(), Unfinished> {
    loop {
        match rest.next().ok_or(Unfinished::Quotation)? {
            b'"' => return Ok(()),
            b'\\' => match escape(rest).map_err(|_| Unfinished::Quotation)? {
                Escape::Continued => {}
                Escape::Byte(byte) | Escape::Other(byte @ (b'\\' | b'"' | b'\'' | b'$' | b'`')) => {
                    word.push(byte);
                }
                Escape::Other(byte) => word.extend([b'\\', byte]),
            },
            byte => word.push(*byte),
        }
    }
}

/// The text behind `$'`, up to the second single quotation mark.
fn escaped(rest: &mut Rest<'_>, word: &mut Vec<u8>) -> Result<(), Unfinished> {
    loop {
        match rest.next().ok_or(Unfinished::Quotation)? {
            b'\'' => return Ok(()),
            b'\\' => match escape(rest).map_err(|_| Unfinished::Quotation)? {
                Escape::Continued => {}
                Escape::Byte(byte) | Escape::Other(byte) => word.push(byte),
            },
            byte => word.push(*byte),
        }
    }
}

/// What a backslash makes of what follows.
enum Escape {
    /// Nothing: the end of the line.
    Continued,
    /// This byte instead.
    Byte(u8),
    /// The character itself.
    Other(u8),
}

/// Takes what follows a backslash.
fn escape(rest: &mut Rest<'_>) -> Result<Escape, Unfinished> {
    Ok(match *rest.next().ok_or(Unfinished::Backslash)? {
        b'\n' => Escape::Continued,
        b'n' => Escape::Byte(b'\n'),
        b'r' => Escape::Byte(b'\r'),
        b't' => Escape::Byte(b'\t'),
        b'x' => match byte(rest) {
            Some(byte) => {
                rest.nth(1);
                Escape::Byte(byte)
            }
            None => Escape::Other(b'x'),
        },
        other => Escape::Other(other),
    })
}

/// The byte of the two hexadecimal digits that come next, which stay there.
fn byte(rest: &Rest<'_>) -> Option<u8> {
    let mut ahead = rest.clone();
    let mut digit = || char::from(*ahead.next()?).to_digit(16);
    u8::try_from(digit()? << 4 | digit()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn words(line: &[u8], expected: &[&[u8]]) {
        assert_eq!(split(line).unwrap(), expected, "{}", line.escape_ascii());
    }

    #[test]
    fn words_are_quoted_as_in_other_shells() {
        words(b"", &[]);
        words(b" a  b\t", &[b"a", b"b"]);
        words(b"a 'b  c'\"d e\"f ''", &[b"a", b"b  cd ef", b""]);
        words(b"a# b #c 'd", &[b"a#", b"b"]);
        words(b"a\\ b \\'\\\" \\\\", &[b"a b", b"'\"", b"\\"]);
        words(b"\"a\\\\ \\\" \\$ \\z\" '\\n'", &[b"a\\ \" $ \\z", b"\\n"]);
        words(b"a \\\n b\\\nc \"d\\\ne\"", &[b"a", b"bc", b"de"]);
        assert_eq!(split(b"'a"), Err(Unfinished::Quotation));
        assert_eq!(split(b"\"a\\"), Err(Unfinished::Quotation));
        assert_eq!(split(b"a \\"), Err(Unfinished::Backslash));
    }

    #[test]
    fn what_ls_prints_is_read_back() {
        words(b"a\\xffb \"c d\\xFE\" e\\x0", &[b"a\xffb", b"c d\xfe", b"ex0"]);
        words(b"\xff\xfe", &[b"\xff\xfe"]);
        let all: Vec<u8> = (1..=255).collect();
        let shown = all.escape_ascii().to_string();
        words(format!("\"{shown}\"").as_bytes(), &[&all]);
        words(format!("$'{shown}'").as_bytes(), &[&all]);
        words(crate::text::quoted(&all).as_bytes(), &[&all]);
        words(crate::text::quoted(b"it's $5 \\").as_bytes(), &[b"it's $5 \\"]);
        assert_eq!(split(b"$'a\\'"), Err(Unfinished::Quotation));
        // Without quotation marks, but for the space.
        words(shown.replace(' ', "\\ ").replace('#', "\\#").as_bytes(), &[&all]);
    }
}
