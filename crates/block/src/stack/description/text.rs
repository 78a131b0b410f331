//! The form on the command line.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::error::DescriptionError;
use super::kind::{Kind, kind};
use super::network::NetworkLeaf;
use super::options;
use super::options::FileLeaf;
use super::tree::{Description, MAX_DEPTH};

/// Parses a path or a description.
pub(super) fn parse(text: &[u8]) -> Result<Description, DescriptionError> {
    if kind(text).is_none() && !text.is_empty() {
        return Ok(leaf(PathBuf::from(OsStr::from_bytes(text))));
    }
    let mut parser = Parser { text, at: 0 };
    let device = parser.device(1).and_then(|device| match parser.peek() {
        None => Ok(device),
        Some(_) => Err(parser.unexpected("the end")),
    });
    device.map_err(|Problem { at, problem }| DescriptionError::Text {
        text: String::from_utf8_lossy(text).into_owned(),
        character: 1 + String::from_utf8_lossy(&text[..at]).chars().count(),
        problem,
    })
}

/// The leaf that a path or a URI names.
fn leaf(path: PathBuf) -> Description {
    let network = path.to_str().and_then(NetworkLeaf::parse);
    network.map_or_else(|| path.into(), Description::Network)
}

/// The fault, and its byte.
struct Problem {
    at: usize,
    problem: String,
}

struct Parser<'t> {
    text: &'t [u8],
    at: usize,
}

impl<'t> Parser<'t> {
    /// A device and the spaces around it.
    fn device(&mut self, depth: usize) -> Result<Description, Problem> {
        self.skip_spaces();
        let device = match kind(&self.text[self.at..]) {
            Some((name, kind)) => self.stacked(name, kind, depth)?,
            None => leaf(self.path()?),
        };
        self.skip_spaces();
        Ok(device)
    }

    /// A device with parentheses.
    fn stacked(
        &mut self,
        name: &'static str,
        kind: Kind,
        depth: usize,
    ) -> Result<Description, Problem> {
        let start = self.at;
        if depth > MAX_DEPTH {
            let problem = format!("nested more than {MAX_DEPTH} deep");
            return Err(Problem { at: start, problem });
        }
        self.at += name.len();
        let options = self.options()?;
        let parenthesis = self.at;
        if !self.skip(b'(') {
            let example = match kind {
                Kind::Stripe => "stripe:64k",
                Kind::Delay => "delay:2ms",
                Kind::File | Kind::Linear | Kind::Mirror | Kind::Set => name,
            };
            return Err(self.unexpected(&format!("'(' as in {example}(a.img)")));
        }
        let legs = match kind {
            Kind::File => {
                self.skip_spaces();
                let mut file = FileLeaf::new(self.path()?);
                self.skip_spaces();
                for (at, option) in options {
                    let (name, value) = match option.split_once('=') {
                        Some((name, value)) => (name, Some(value)),
                        None => (option, None),
                    };
                    file.set(name, value).map_err(|problem| Problem { at, problem })?;
                }
                self.close("one path")?;
                return Ok(Description::File(file));
            }
            Kind::Delay => {
                let slowness = options::slowness(options.iter().map(|(_, option)| *option));
                let at = options.first().map_or(parenthesis, |(at, _)| *at);
                let slowness = slowness.map_err(|problem| Problem { at, problem })?;
                let leg = Box::new(self.device(depth + 1)?);
                self.close("one device")?;
                return Ok(Description::Delay { slowness, leg });
            }
            Kind::Linear | Kind::Stripe | Kind::Mirror | Kind::Set => self.legs(depth)?,
        };
        match (kind, options.as_slice()) {
            (Kind::Stripe, [(at, chunk)]) => {
                let at = *at;
                let chunk = options::chunk(chunk).map_err(|problem| Problem { at, problem })?;
                Ok(Description::Stripe { chunk, legs })
            }
            (Kind::Stripe, _) => {
                let problem = "a stripe needs its chunk size, as in stripe:64k(a.img,b.img)";
                Err(Problem { at: parenthesis, problem: problem.into() })
            }
            (_, [(at, option), ..]) => {
                Err(Problem { at: *at, problem: format!("{option:?} is no option of {name}") })
            }
            (Kind::Mirror, []) => Ok(Description::Mirror(legs)),
            (Kind::Set, []) => Ok(Description::Set { kind: name, legs }),
            (_, []) => Ok(Description::Linear(legs)),
        }
    }

    /// Devices up to the closing parenthesis.
    fn legs(&mut self, depth: usize) -> Result<Vec<Description>, Problem> {
        let mut legs = vec![self.device(depth + 1)?];
        while self.skip(b',') {
            legs.push(self.device(depth + 1)?);
        }
        self.close("',' and another leg")?;
        Ok(legs)
    }

    /// The words between `:` and `(`, each with its place.
    fn options(&mut self) -> Result<Vec<(usize, &'t str)>, Problem> {
        if !self.skip(b':') {
            return Ok(Vec::new());
        }
        let start = self.at;
        let rest = &self.text[start..];
        let length = rest.iter().position(|byte| b"()\"".contains(byte)).unwrap_or(rest.len());
        let problem = |problem: &str| Problem { at: start, problem: problem.into() };
        let text =
            str::from_utf8(&rest[..length]).map_err(|_| problem("options are plain text"))?;
        self.at = start + length;
        let mut at = start;
        let options = text.split(',').map(|option| {
            let place = at;
            at += option.len() + 1;
            (place, option.trim_matches(' '))
        });
        Ok(options.collect())
    }

    /// A path, in quotes or not.
    fn path(&mut self) -> Result<PathBuf, Problem> {
        if self.peek() == Some(b'"') {
            return self.quoted();
        }
        let rest = &self.text[self.at..];
        let length = rest.iter().position(|byte| b"(),\"".contains(byte)).unwrap_or(rest.len());
        let path = without_last_spaces(&rest[..length]);
        if path.is_empty() {
            return Err(self.unexpected("a path or a device such as mirror(a.img,b.img)"));
        }
        self.at += length;
        match self.peek() {
            Some(b'"' | b'(') => {
                let expected = "',' or ')' (a path with ( ) , or \" stands in double quotes)";
                Err(self.unexpected(expected))
            }
            _ => Ok(OsStr::from_bytes(path).into()),
        }
    }

    fn quoted(&mut self) -> Result<PathBuf, Problem> {
        let start = self.at;
        self.at += 1;
        let mut path = Vec::new();
        while let Some(byte) = self.peek() {
            self.at += 1;
            match (byte, self.peek()) {
                (b'"', _) if path.is_empty() => {
                    return Err(Problem { at: start, problem: "an empty path".into() });
                }
                (b'"', _) => return Ok(OsStr::from_bytes(&path).into()),
                (b'\\', Some(escaped @ (b'"' | b'\\'))) => {
                    self.at += 1;
                    path.push(escaped);
                }
                (b'\\', _) => {
                    let problem = r#"write \\ for a backslash and \" for a quotation mark"#.into();
                    return Err(Problem { at: self.at - 1, problem });
                }
                _ => path.push(byte),
            }
        }
        Err(Problem { at: start, problem: "this quotation mark is not closed".into() })
    }

    fn close(&mut self, or: &str) -> Result<(), Problem> {
        if self.skip(b')') { Ok(()) } else { Err(self.unexpected(&format!("')' or {or}"))) }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Passes `byte` if it is next.
    fn skip(&mut self, byte: u8) -> bool {
        let next = self.peek() == Some(byte);
        self.at += usize::from(next);
        next
    }

    fn skip_spaces(&mut self) {
        while self.skip(b' ') {}
    }

    fn unexpected(&self, expected: &str) -> Problem {
        let rest = String::from_utf8_lossy(&self.text[self.at..]);
        let problem = match rest.chars().next() {
            Some(found) => format!("expected {expected}, found {found:?}"),
            None => format!("expected {expected}, found the end"),
        };
        Problem { at: self.at, problem }
    }
}

/// `bytes` without the spaces at its end.
fn without_last_spaces(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1);
    &bytes[..end]
}
