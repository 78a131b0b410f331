//! The words of a search.

use super::expression::Expression;
use super::test::{Count, Permissions, Test};
use crate::failure::Usage;
use crate::owner::NewOwner;
use crate::session::Session;
use crate::value;
use anyhow::{Context, Result};
use globset::{GlobBuilder, GlobMatcher};
use std::ffi::{OsStr, OsString};
use std::slice::Iter;
use undercroft_xfs::format::FileType;

/// Parentheses in one another, at most.
const MOST_NESTED: usize = 100;

/// A search.
pub(super) struct Query {
    pub(super) paths: Vec<OsString>,
    pub(super) expression: Expression,
    pub(super) min_depth: usize,
    pub(super) max_depth: usize,
    /// Names end with a byte of zero.
    pub(super) print_null: bool,
}

impl Query {
    /// Of the words behind the options.
    pub(super) fn of(words: &[OsString], session: &Session<'_>) -> Result<Self> {
        let is_test = |word: &OsString| {
            let bytes = word.as_encoded_bytes();
            (bytes.len() > 1 && bytes.starts_with(b"-")) || matches!(bytes, b"!" | b"(" | b")")
        };
        let count = words.iter().position(is_test).unwrap_or(words.len());
        let (paths, tests) = words.split_at(count);
        let paths = session.matching_or_here(paths)?;
        let query = Self {
            paths,
            expression: Expression::All(Vec::new()),
            min_depth: 0,
            max_depth: usize::MAX,
            print_null: false,
        };
        let mut parser = Parser { words: tests.iter(), session, query, nested: 0 };
        let expression = parser.any()?;
        match parser.words.next() {
            Some(word) => Err(wrong(word, "has no parenthesis before it").into()),
            None => Ok(Self { expression, ..parser.query }),
        }
    }
}

struct Parser<'p> {
    words: Iter<'p, OsString>,
    session: &'p Session<'p>,
    query: Query,
    nested: usize,
}

fn wrong(word: &OsStr, what: &str) -> Usage {
    Usage(format!("{} {what}", crate::text::name(word.as_encoded_bytes())))
}

impl<'p> Parser<'p> {
    fn peek(&self) -> Option<&'p str> {
        self.words.as_slice().first().and_then(|word| word.to_str())
    }

    /// Tests with -o between them.
    fn any(&mut self) -> Result<Expression> {
        let mut parts = vec![self.all()?];
        while matches!(self.peek(), Some("-o" | "-or")) {
            self.words.next();
            parts.push(self.all()?);
        }
        Ok(Expression::Any(parts))
    }

    /// Tests with -a or nothing between them.
    fn all(&mut self) -> Result<Expression> {
        let mut parts = Vec::new();
        while let Some(word) = self.words.as_slice().first() {
            match word.to_str() {
                Some("-o" | "-or" | ")") => break,
                Some("-a" | "-and") => drop(self.words.next()),
                _ => parts.extend(self.one()?),
            }
        }
        Ok(Expression::All(parts))
    }

    /// One test, or what is in parentheses; `None` for a word that is no test.
    fn one(&mut self) -> Result<Option<Expression>> {
        let Some(word) = self.words.next() else {
            return Err(Usage("a test is missing at the end".into()).into());
        };
        match word.to_str() {
            Some("!" | "-not") => {
                self.enter(word)?;
                let inner = self.one()?.ok_or_else(|| wrong(word, "has no test behind it"))?;
                self.nested -= 1;
                Ok(Some(Expression::Not(Box::new(inner))))
            }
            Some("(") => {
                self.enter(word)?;
                let inner = self.any()?;
                if self.words.next().is_none_or(|word| word != ")") {
                    return Err(wrong(word, "has no parenthesis behind it").into());
                }
                self.nested -= 1;
                Ok(Some(inner))
            }
            Some("-print") => Ok(None),
            Some("-print0") => {
                self.query.print_null = true;
                Ok(None)
            }
            Some("-maxdepth") => {
                self.query.max_depth = self.number(word)?;
                Ok(None)
            }
            Some("-mindepth") => {
                self.query.min_depth = self.number(word)?;
                Ok(None)
            }
            Some(name) => self.test(word, name).map(|test| Some(Expression::Test(test))),
            None => Err(wrong(word, "is no test; see `undercroft find --help`").into()),
        }
    }

    fn enter(&mut self, word: &OsStr) -> Result<(), Usage> {
        self.nested += 1;
        if self.nested > MOST_NESTED { Err(wrong(word, "is nested too deep")) } else { Ok(()) }
    }

    fn test(&mut self, word: &'p OsStr, name: &str) -> Result<Test> {
        Ok(match name {
            "-name" => Test::Name(self.glob(word, false)?),
            "-iname" => Test::Name(self.glob(word, true)?),
            "-path" | "-wholename" => Test::Path(self.glob(word, false)?),
            "-xattr" => Test::Attribute(self.glob(word, false)?),
            "-type" => Test::Kind(kinds(word, self.value(word)?)?),
            "-size" => size(word, self.value(word)?)?,
            "-empty" => Test::Empty,
            "-newer" => {
                let path = self.words.next().ok_or_else(|| wrong(word, "wants a path"))?;
                Test::NewerThan(self.session.fs.metadata(path)?.modified)
            }
            "-newermt" => {
                let time = value::time(self.value(word)?);
                Test::NewerThan(time.map_err(|why| wrong(word, &format!("wants a time: {why}")))?)
            }
            "-user" => Test::User(self.owner(word, "")?.0.context("no user")?),
            "-group" => Test::Group(self.owner(word, ":")?.1.context("no group")?),
            "-perm" => Test::Permissions(permissions(word, self.value(word)?)?),
            "-links" => Test::Links(count(word, self.value(word)?)?),
            "-inum" => Test::Number(count(word, self.value(word)?)?),
            _ => return Err(wrong(word, "is no test; see `undercroft find --help`").into()),
        })
    }

    fn value(&mut self, word: &OsStr) -> Result<&'p str, Usage> {
        let next = self.words.next().ok_or_else(|| wrong(word, "wants a value"))?;
        next.to_str().ok_or_else(|| wrong(next, "is no text"))
    }

    fn number(&mut self, word: &OsStr) -> Result<usize, Usage> {
        self.value(word)?.parse().map_err(|_| wrong(word, "wants a number"))
    }

    fn glob(&mut self, word: &OsStr, ignores_case: bool) -> Result<GlobMatcher, Usage> {
        let mut glob = GlobBuilder::new(self.value(word)?);
        let built = glob.case_insensitive(ignores_case).build();
        Ok(built.map_err(|error| wrong(word, &error.kind().to_string()))?.compile_matcher())
    }

    /// Owner and group by name or number.
    fn owner(&mut self, word: &OsStr, prefix: &str) -> Result<(Option<u32>, Option<u32>)> {
        let text = format!("{prefix}{}", self.value(word)?);
        let owner: NewOwner = text.parse().map_err(|_| wrong(word, "wants a name or a number"))?;
        owner.resolve(self.session)
    }
}

fn kinds(word: &OsStr, text: &str) -> Result<Vec<FileType>, Usage> {
    let kind = |letter: &str| match letter {
        "f" => Ok(FileType::Regular),
        "d" => Ok(FileType::Directory),
        "l" => Ok(FileType::Symlink),
        "b" => Ok(FileType::Block),
        "c" => Ok(FileType::Character),
        "p" => Ok(FileType::Fifo),
        "s" => Ok(FileType::Socket),
        _ => Err(wrong(word, "wants letters of f, d, l, b, c, p, s, with commas between them")),
    };
    text.split(',').map(kind).collect()
}

/// A number with its sign.
fn count(word: &OsStr, text: &str) -> Result<Count, Usage> {
    let number = |text: &str| text.parse().map_err(|_| wrong(word, "wants [+-]NUMBER"));
    match text.as_bytes().first() {
        Some(b'+') => number(&text[1..]).map(Count::More),
        Some(b'-') => number(&text[1..]).map(Count::Less),
        _ => number(text).map(Count::Exactly),
    }
}

fn size(word: &OsStr, text: &str) -> Result<Test, Usage> {
    let (number, unit) = match text.chars().last() {
        Some('c') => (1, 1),
        Some('w') => (1, 2),
        Some('b') => (1, 512),
        Some('k' | 'K') => (1, 1 << 10),
        Some('M') => (1, 1 << 20),
        Some('G') => (1, 1 << 30),
        Some('T') => (1, 1 << 40),
        _ => (0, 512),
    };
    // The letters have one byte each.
    Ok(Test::Size { count: count(word, &text[..text.len() - number])?, unit })
}

fn permissions(word: &OsStr, text: &str) -> Result<Permissions, Usage> {
    let mode = |text: &str| value::mode(text).map_err(|why| wrong(word, &why));
    match text.as_bytes().first() {
        Some(b'-') => mode(&text[1..]).map(Permissions::AllOf),
        Some(b'/') => mode(&text[1..]).map(Permissions::AnyOf),
        _ => mode(text).map(Permissions::Exactly),
    }
}
