//! From the language of PCRE, as policies use it, to that of the crate `regex`.
//!
//! What both have, and mean alike for bytes, is passed on; what only looks alike is written
//! otherwise (classes have no operators, `{` may stand for itself); what needs backtracking
//! (references, looking ahead or behind, possessive repetition) is refused by name. No known policy
//! uses it.

/// The expression in the other language. The error is the defect of the expression.
pub(super) fn translate(text: &[u8]) -> Result<String, String> {
    let mut translation = Translation { text, at: 0, out: String::new(), quantified: false };
    while translation.at < text.len() {
        translation.part()?;
    }
    Ok(translation.out)
}

struct Translation<'a> {
    text: &'a [u8],
    at: usize,
    out: String,
    /// The part before is a quantifier.
    quantified: bool,
}

impl Translation<'_> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.at + ahead).copied()
    }

    /// One character with what belongs to it.
    fn part(&mut self) -> Result<(), String> {
        let byte = self.text[self.at];
        let quantified = std::mem::take(&mut self.quantified);
        match byte {
            b'\\' => return self.escape(false),
            b'[' => return self.class(),
            b'?' | b'*' | b'+' => return self.quantifier(1, quantified),
            b'{' if counted(&self.text[self.at..]) > 0 => {
                return self.quantifier(counted(&self.text[self.at..]), quantified);
            }
            b'(' if self.peek(1) == Some(b'?') => {
                if self.peek(2) != Some(b':') {
                    return Err(
                        "groups that begin with (? other than (?: are not supported; write \
                                it without"
                            .into(),
                    );
                }
                self.out.push_str("(?:");
                self.at += 3;
                return Ok(());
            }
            b'$' => self.out.push_str("(?:\\n?\\z)"),
            b'(' | b')' | b'|' | b'.' | b'^' => self.out.push(char::from(byte)),
            other => self.literal(other),
        }
        self.at += 1;
        Ok(())
    }

    /// A character that stands for itself.
    fn literal(&mut self, byte: u8) {
        match byte {
            // Backslashes before these mean something.
            b'<' | b'>' => self.out.push(char::from(byte)),
            byte if byte.is_ascii_punctuation() => {
                self.out.push('\\');
                self.out.push(char::from(byte));
            }
            byte if byte.is_ascii_alphanumeric() => self.out.push(char::from(byte)),
            byte => self.out.push_str(&format!("\\x{byte:02x}")),
        }
    }

    /// A quantifier of `length` bytes, and the `?` that makes it lazy.
    fn quantifier(&mut self, length: usize, quantified: bool) -> Result<(), String> {
        if quantified {
            return Err("a quantifier follows nothing that could be repeated".into());
        }
        // The text is ASCII.
        let text = &self.text[self.at..self.at + length];
        self.out.extend(text.iter().copied().map(char::from));
        self.at += length;
        match self.peek(0) {
            Some(b'+') => return Err("possessive repetition (*+, ++, ?+) is not supported".into()),
            Some(b'?') => {
                self.out.push('?');
                self.at += 1;
            }
            _ => {}
        }
        self.quantified = true;
        Ok(())
    }

    fn escape(&mut self, in_class: bool) -> Result<(), String> {
        let Some(byte) = self.peek(1) else { return Err("it ends in a backslash".into()) };
        let mut length = 2;
        match byte {
            b'd' | b'D' | b'w' | b'W' | b's' | b'S' | b'n' | b'r' | b't' | b'f' | b'a' => {
                self.out.push('\\');
                self.out.push(char::from(byte));
            }
            b'b' if in_class => self.out.push_str("\\x08"),
            b'b' | b'B' | b'A' | b'z' if !in_class => {
                self.out.push('\\');
                self.out.push(char::from(byte));
            }
            b'Z' if !in_class => self.out.push_str("(?:\\n?\\z)"),
            b'e' => self.out.push_str("\\x1b"),
            b'x' => {
                let digits = self.text.get(self.at + 2..self.at + 4).unwrap_or_default();
                if digits.len() != 2 || !digits.iter().all(u8::is_ascii_hexdigit) {
                    return Err("\\x needs two hexadecimal digits".into());
                }
                self.out.push_str("\\x");
                self.out.extend(digits.iter().copied().map(char::from));
                length = 4;
            }
            other if other.is_ascii_alphanumeric() => {
                return Err(format!("\\{} is not supported", char::from(other)));
            }
            other => self.literal(other),
        }
        self.at += length;
        Ok(())
    }

    /// A class of characters.
    fn class(&mut self) -> Result<(), String> {
        self.out.push('[');
        self.at += 1;
        if self.peek(0) == Some(b'^') {
            self.out.push('^');
            self.at += 1;
        }
        let first = self.at;
        loop {
            match self.peek(0) {
                None => return Err("a class of characters is not closed with ]".into()),
                Some(b']') if self.at > first => break,
                Some(b'[') if self.peek(1) == Some(b':') && self.named().is_some() => {
                    let length = self.named().unwrap_or_default();
                    let name = &self.text[self.at..self.at + length];
                    self.out.extend(name.iter().copied().map(char::from));
                    self.at += length;
                }
                Some(b'\\') => self.escape(true)?,
                // Between two characters it makes a range.
                Some(b'-') if self.at > first && !matches!(self.peek(1), None | Some(b']')) => {
                    self.out.push('-');
                    self.at += 1;
                    match self.peek(0) {
                        Some(b'\\') => self.escape(true)?,
                        Some(byte) => {
                            self.literal(byte);
                            self.at += 1;
                        }
                        None => {}
                    }
                    // One behind a range stands for itself.
                    if self.peek(0) == Some(b'-') {
                        self.literal(b'-');
                        self.at += 1;
                    }
                }
                Some(byte) => {
                    self.literal(byte);
                    self.at += 1;
                }
            }
        }
        self.out.push(']');
        self.at += 1;
        Ok(())
    }

    /// Bytes of the class with a name, such as `[:alnum:]`, that begins here.
    fn named(&self) -> Option<usize> {
        let rest = &self.text[self.at + 2..];
        let end = rest.windows(2).position(|pair| pair == b":]")?;
        let name = |byte: &u8| byte.is_ascii_lowercase() || *byte == b'^';
        rest[..end].iter().all(name).then_some(end + 4)
    }
}

/// Bytes of a quantifier `{n}`, `{n,}` or `{n,m}` at the start of `text`, 0 if there is none.
fn counted(text: &[u8]) -> usize {
    let Some(end) = text.iter().position(|&byte| byte == b'}') else { return 0 };
    let inner = &text[1..end];
    let mut parts = inner.splitn(2, |&byte| byte == b',');
    let digits = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
    let least = parts.next().is_some_and(|part| !part.is_empty() && digits(part));
    if least && parts.next().is_none_or(digits) { end + 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_looks_alike_is_written_otherwise() {
        for (text, translation) in [
            ("a.b*", "a.b*"),
            ("[[a]", "[\\[a]"),
            ("[a&&b]", "[a\\&\\&b]"),
            ("[a-z0-9_-]", "[a-z0-9\\_\\-]"),
            ("[]x]", "[\\]x]"),
            ("[^/]+", "[^\\/]+"),
            ("[[:digit:]x]", "[[:digit:]x]"),
            ("x{", "x\\{"),
            ("x{2}{", "x{2}\\{"),
            ("x{2,3}", "x{2,3}"),
            ("\\<", "<"),
            ("a$", "a(?:\\n?\\z)"),
        ] {
            assert_eq!(translate(text.as_bytes()).as_deref(), Ok(translation), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_translated_is_named() {
        for (text, word) in [
            ("(?=a)", "(?:"),
            ("a*+", "possessive"),
            ("a**", "nothing that could be repeated"),
            ("(a)\\1", "\\1"),
            ("[a", "not closed"),
            ("a\\", "backslash"),
            ("\\x4", "two hexadecimal"),
            ("\\Qa", "\\Q"),
        ] {
            let error = translate(text.as_bytes()).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
