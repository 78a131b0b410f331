//! The text of LVM's metadata: sections, and values with names.
//!
//! ```text
//! name { name = value ... }
//! value = number | "text" | [ value, ... ]
//! ```
//!
//! `#` begins a comment.

use std::collections::BTreeMap;

/// Deepest nesting: a group, its volumes, one of them, its segment, a list.
const MAX_DEPTH: usize = 8;

/// What has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Number(u64),
    Text(String),
    List(Vec<Entry>),
    Section(Section),
}

/// Entries by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Section(BTreeMap<String, Entry>);

/// Parses a text; an error says what is wrong, and in which line.
pub(super) fn parse(text: &str) -> Result<Section, String> {
    let mut parser = Parser { text, line: 1 };
    let section = parser.section(1).map_err(|fault| format!("line {}: {fault}", parser.line))?;
    if parser.next().is_some() {
        return Err(format!("line {}: a bracket is closed that was not opened", parser.line));
    }
    Ok(section)
}

impl Section {
    /// Sections in this one, with their names.
    pub(super) fn sections(&self) -> impl Iterator<Item = (&str, &Section)> {
        self.0.iter().filter_map(|(name, entry)| match entry {
            Entry::Section(section) => Some((name.as_str(), section)),
            _ => None,
        })
    }

    /// The section of a name, if it is there.
    pub(super) fn section(&self, name: &str) -> Option<&Section> {
        match self.0.get(name)? {
            Entry::Section(section) => Some(section),
            _ => None,
        }
    }

    pub(super) fn number(&self, name: &str) -> Result<u64, String> {
        match self.0.get(name) {
            Some(Entry::Number(number)) => Ok(*number),
            Some(_) => Err(format!("{name} is no number")),
            None => Err(format!("there is no {name}")),
        }
    }

    pub(super) fn text(&self, name: &str) -> Result<&str, String> {
        match self.0.get(name) {
            Some(Entry::Text(text)) => Ok(text),
            Some(_) => Err(format!("{name} is no text")),
            None => Err(format!("there is no {name}")),
        }
    }

    /// The list of a name; empty if there is none.
    pub(super) fn list(&self, name: &str) -> &[Entry] {
        match self.0.get(name) {
            Some(Entry::List(list)) => list,
            _ => &[],
        }
    }

    /// Whether the list `name` has a word.
    pub(super) fn says(&self, name: &str, word: &str) -> bool {
        self.list(name).iter().any(|entry| matches!(entry, Entry::Text(text) if text == word))
    }
}

struct Parser<'t> {
    /// What is left.
    text: &'t str,
    line: usize,
}

impl<'t> Parser<'t> {
    /// Entries up to a closing bracket, which stays, or the end.
    fn section(&mut self, depth: usize) -> Result<Section, String> {
        if depth > MAX_DEPTH {
            return Err(format!("sections more than {MAX_DEPTH} deep"));
        }
        let mut entries = BTreeMap::new();
        while let Some(next) = self.next() {
            if next == '}' {
                break;
            }
            let name = self.word();
            if name.is_empty() {
                return Err(format!("{next:?} where a name is expected"));
            }
            let entry = match self.next() {
                Some('=') => {
                    self.take(1);
                    self.value(depth + 1)?
                }
                Some('{') => {
                    self.take(1);
                    let section = self.section(depth + 1)?;
                    self.expect('}')?;
                    Entry::Section(section)
                }
                _ => return Err(format!("{name} is neither a section nor a value")),
            };
            if entries.insert(name.to_owned(), entry).is_some() {
                return Err(format!("{name} is there twice"));
            }
        }
        Ok(Section(entries))
    }

    fn value(&mut self, depth: usize) -> Result<Entry, String> {
        match self.next() {
            Some('"') => self.quoted().map(Entry::Text),
            Some('[') if depth <= MAX_DEPTH => {
                self.take(1);
                let mut list = Vec::new();
                while !matches!(self.next(), Some(']') | None) {
                    list.push(self.value(depth + 1)?);
                    if self.next() == Some(',') {
                        self.take(1);
                    }
                }
                self.expect(']')?;
                Ok(Entry::List(list))
            }
            _ => {
                let word = self.word();
                // Numbers that are negative or have a fraction are in no entry that counts.
                let is_number =
                    word.starts_with(|first: char| first.is_ascii_digit() || first == '-');
                match word.parse() {
                    Ok(number) => Ok(Entry::Number(number)),
                    Err(_) if is_number => Ok(Entry::Text(word.to_owned())),
                    Err(_) => Err("a value that is no number, text or list".into()),
                }
            }
        }
    }

    /// A text in quotes; `\` lets the character behind it stand for itself.
    fn quoted(&mut self) -> Result<String, String> {
        let mut text = String::new();
        let mut characters = self.text.char_indices().skip(1);
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    self.take(at + 1);
                    return Ok(text);
                }
                '\\' => text.extend(characters.next().map(|(_, escaped)| escaped)),
                _ => text.push(character),
            }
        }
        Err("a text without its end".into())
    }

    /// A name or a number.
    fn word(&mut self) -> &'t str {
        let is_part = |c: char| c.is_alphanumeric() || "_-.+/@".contains(c);
        let length = self.text.find(|c| !is_part(c)).unwrap_or(self.text.len());
        let word = &self.text[..length];
        self.take(length);
        word
    }

    fn expect(&mut self, bracket: char) -> Result<(), String> {
        if self.next() != Some(bracket) {
            return Err(format!("no {bracket:?} at the end"));
        }
        self.take(1);
        Ok(())
    }

    /// The next character behind spaces and comments; it stays.
    fn next(&mut self) -> Option<char> {
        loop {
            let spaces = self.text.len() - self.text.trim_start().len();
            self.take(spaces);
            if !self.text.starts_with('#') {
                return self.text.chars().next();
            }
            self.take(self.text.find('\n').unwrap_or(self.text.len()));
        }
    }

    /// Passes bytes.
    fn take(&mut self, bytes: usize) {
        let (passed, rest) = self.text.split_at(bytes);
        self.line += passed.matches('\n').count();
        self.text = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_and_values() {
        let parsed = parse(
            "vg { # a comment }\n id = \"a\\\"b\"\n seqno=7\nstatus = [\"READ\", \"WRITE\"]\n empty = []\n\
             cost = 1.5\n log { x = -1 } }\nversion = 1",
        );
        let parsed = parsed.unwrap();
        let group = parsed.section("vg").unwrap();
        assert_eq!((group.text("id").unwrap(), group.number("seqno").unwrap()), ("a\"b", 7));
        assert!(group.says("status", "WRITE") && !group.says("status", "EXPORTED"));
        assert!(group.list("empty").is_empty() && group.list("none").is_empty());
        assert_eq!(group.number("cost").unwrap_err(), "cost is no number");
        assert_eq!(group.sections().map(|(name, _)| name).collect::<Vec<_>>(), ["log"]);
        assert_eq!(parsed.number("version").unwrap(), 1);
        assert_eq!(parsed.text("id").unwrap_err(), "there is no id");
    }

    #[test]
    fn wrong_texts_are_told_with_their_line() {
        for (text, fault) in [
            ("a", "line 1: a is neither"),
            ("\na {", "line 2: no '}'"),
            ("a { } }", "line 1: a bracket"),
            ("a = \"x", "without its end"),
            ("a = [1, 2", "no ']'"),
            ("a = 1\na = 2", "line 2: a is there twice"),
            ("a = ?", "a value that is"),
            ("= 1", "'=' where"),
            (&"a{".repeat(10_000), "more than 8 deep"),
            (&format!("a = {}", "[".repeat(10_000)), "no number, text"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(fault), "{error} for {fault}");
        }
    }
}
