//! One expression of `file_contexts`, taken apart: the text that a path must begin with, and a test
//! of what follows.
//!
//! libselinux has an expression match between `^` and `$`, without a group around it, against the
//! path behind its stem. The stem is the first component, where that has no special character. Both
//! are kept: with an alternative outside of a group they decide which paths match. A stem with a
//! backslash has none here; libselinux 3.4 finds no path for it.

use super::translation::translate;
use regex::bytes::{Regex, RegexBuilder};
use rustc_hash::FxHashMap;

/// Characters that make an expression of a text, to libselinux.
const SPECIAL: &[u8] = b".^$?*+|[({";
/// Characters that repeat what stands before them.
const QUANTIFIERS: &[u8] = b"?*+{";
/// Most memory of one compiled expression.
const SIZE_LIMIT: usize = 1 << 20;

/// An expression.
#[derive(Debug)]
pub(super) struct Expression {
    prefix: Box<[u8]>,
    rest: Rest,
    literal: bool,
}

/// What may follow the prefix.
#[derive(Debug, Clone)]
enum Rest {
    Nothing,
    /// `(/.*)?`
    Tree,
    /// `.*`
    Anything,
    Matching(Regex),
    /// The same, if the prefix is the whole first component.
    BelowStem(Regex),
}

impl Expression {
    pub(super) fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// Whether libselinux takes it for a text, which counts more than expressions do.
    pub(super) const fn is_literal(&self) -> bool {
        self.literal
    }

    /// Whether a path matches that goes on with `rest` behind the prefix. `$` is also before a line
    /// end that is the last character.
    pub(super) fn matches_rest(&self, rest: &[u8]) -> bool {
        match &self.rest {
            Rest::Nothing => rest.is_empty() || rest == b"\n",
            Rest::Tree => rest.is_empty() || rest[0] == b'/' || rest == b"\n",
            Rest::Anything => true,
            Rest::Matching(regex) => regex.is_match(rest),
            Rest::BelowStem(regex) => rest.first() == Some(&b'/') && regex.is_match(rest),
        }
    }
}

/// Compiles expressions; many end alike, and share what was compiled.
#[derive(Default)]
pub(super) struct Compiler {
    compiled: FxHashMap<Box<[u8]>, Regex>,
}

impl Compiler {
    /// Takes an expression of ASCII apart. The error is its defect.
    pub(super) fn compile(&mut self, text: &[u8]) -> Result<Expression, String> {
        let (stem, body) = text.split_at(stem_length(text));
        let mut prefix = stem.to_vec();
        let sequence = is_sequence(body);
        let behind = if sequence { literal_run(body, &mut prefix) } else { 0 };
        let rest = match &body[behind..] {
            b"" => Rest::Nothing,
            b"(/.*)?" => Rest::Tree,
            b".*" => Rest::Anything,
            other if sequence || stem.is_empty() => Rest::Matching(self.regex(other)?),
            other => Rest::BelowStem(self.regex(other)?),
        };
        let literal = !has_special(text);
        Ok(Expression { prefix: prefix.into(), rest, literal })
    }

    fn regex(&mut self, text: &[u8]) -> Result<Regex, String> {
        if let Some(regex) = self.compiled.get(text) {
            return Ok(regex.clone());
        }
        let pattern = format!("^{}(?:\\n?\\z)", translate(text)?);
        let regex = RegexBuilder::new(&pattern)
            .unicode(false)
            .dot_matches_new_line(true)
            .size_limit(SIZE_LIMIT)
            .dfa_size_limit(SIZE_LIMIT)
            .build()
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => "it takes too much memory".to_owned(),
                // The last line is the defect; those before it draw the translated expression.
                error => {
                    let text = error.to_string();
                    let defect = text.lines().last().unwrap_or_default().trim();
                    defect.strip_prefix("error: ").unwrap_or(defect).to_owned()
                }
            })?;
        self.compiled.insert(text.into(), regex.clone());
        Ok(regex)
    }
}

/// Bytes of the stem: the first component if something follows it and nothing in it is special.
fn stem_length(text: &[u8]) -> usize {
    let slash = text.iter().skip(1).position(|&byte| byte == b'/').map_or(0, |place| place + 1);
    let special = |byte: &u8| *byte == b'\\' || SPECIAL.contains(byte);
    if text[..slash].iter().any(special) { 0 } else { slash }
}

/// Whether the text has a special character that is not escaped.
fn has_special(text: &[u8]) -> bool {
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => {
                bytes.next();
            }
            byte if SPECIAL.contains(byte) => return true,
            _ => {}
        }
    }
    false
}

/// Whether the expression is a sequence that can be cut anywhere between its parts: no alternative
/// outside of a group, and nothing that looks at what is before it.
fn is_sequence(text: &[u8]) -> bool {
    let (mut depth, mut in_class, mut at) = (0_usize, None, 0);
    while let Some(&byte) = text.get(at) {
        match (byte, in_class) {
            (b'\\', _) => {
                if matches!(text.get(at + 1), Some(next) if next.is_ascii_alphanumeric()) {
                    return false;
                }
                at += 1;
            }
            // The first character of a class is of it, whatever it is.
            (b']', Some(first)) if at > first => in_class = None,
            (_, Some(_)) => {}
            (b'[', None) => {
                let negated = usize::from(text.get(at + 1) == Some(&b'^'));
                in_class = Some(at + 1 + negated);
            }
            (b'(', None) => depth += 1,
            (b')', None) => depth = depth.saturating_sub(1),
            (b'|', None) if depth == 0 => return false,
            (b'^' | b'$', None) => return false,
            _ => {}
        }
        at += 1;
    }
    true
}

/// Appends the characters to `prefix` that every match begins with; how many bytes they take.
fn literal_run(text: &[u8], prefix: &mut Vec<u8>) -> usize {
    let mut at = 0;
    loop {
        let (byte, length) = match text[at..] {
            [b'\\', byte, ..] if byte.is_ascii_punctuation() => (byte, 2),
            [byte, ..] if byte != b'\\' && byte != b')' && !SPECIAL.contains(&byte) => (byte, 1),
            _ => return at,
        };
        if text.get(at + length).is_some_and(|next| QUANTIFIERS.contains(next)) {
            return at;
        }
        prefix.push(byte);
        at += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compiled(text: &str) -> Expression {
        Compiler::default().compile(text.as_bytes()).unwrap()
    }

    #[test]
    fn the_prefix_ends_before_the_first_special_character() {
        for (text, prefix) in [
            ("/usr/lib/x", "/usr/lib/x"),
            ("/usr/lib/x\\.so.*", "/usr/lib/x.so"),
            ("/usr/libx?/y", "/usr/lib"),
            ("/usr(/.*)?", "/usr"),
            ("/a|/b", ""),
            ("/a/b|/c/d", "/a"),
            ("/a/b(c|d)", "/a/b"),
            ("/a/b[|]c", "/a/b"),
            ("/a/b^", "/a"),
            ("/a/b\\bc", "/a"),
        ] {
            let found = String::from_utf8(compiled(text).prefix().to_vec()).unwrap();
            assert_eq!(found, prefix, "{text}");
        }
    }

    #[test]
    fn escaped_characters_make_no_expression() {
        assert!(compiled("/a\\.b").is_literal() && compiled("/a]b}").is_literal());
        assert!(!compiled("/a.b").is_literal() && !compiled("/a\\.b.").is_literal());
    }
}
