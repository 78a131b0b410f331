//! The form in a TOML file.

use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::DescriptionError;
use super::kind::Kind;
use super::network::NetworkLeaf;
use super::options;
use super::options::FileLeaf;
use super::tree::{Description, MAX_DEPTH};
use crate::stack::delay::Slowness;

/// Parses `text`, the contents of the file at `path`.
pub(super) fn parse(text: &str, path: &Path) -> Result<Description, DescriptionError> {
    let directory = path.parent().unwrap_or(Path::new(""));
    let parsed = DeTable::parse(text)
        .map_err(|error| Problem {
            span: error.span().unwrap_or_default(),
            problem: error.message().to_owned(),
        })
        .and_then(|table| Reader { directory }.table(table.get_ref(), table.span(), 1));
    parsed.map_err(|Problem { span, problem }| {
        let before = text.get(..span.start).unwrap_or(text);
        let line = before.rsplit('\n').next().unwrap_or(before);
        DescriptionError::Toml {
            path: path.to_owned(),
            line: 1 + before.matches('\n').count(),
            column: 1 + line.chars().count(),
            problem,
        }
    })
}

/// The fault, and its place in the text.
struct Problem {
    span: Range<usize>,
    problem: String,
}

impl Problem {
    fn at(span: Range<usize>, problem: impl Into<String>) -> Self {
        Self { span, problem: problem.into() }
    }
}

struct Reader<'d> {
    /// Where relative paths start.
    directory: &'d Path,
}

impl Reader<'_> {
    fn device(&self, value: &Spanned<DeValue<'_>>, depth: usize) -> Result<Description, Problem> {
        let span = value.span();
        match value.get_ref() {
            DeValue::String(text) => match NetworkLeaf::parse(text) {
                Some(leaf) => Ok(Description::Network(leaf)),
                None => Ok(Description::File(self.file(text, span)?)),
            },
            DeValue::Table(table) => self.table(table, span, depth),
            other => {
                let found = other.type_str();
                Err(Problem::at(span, format!("expected a path or a table, found {found}")))
            }
        }
    }

    fn file(&self, path: &str, span: Range<usize>) -> Result<FileLeaf, Problem> {
        if path.is_empty() {
            return Err(Problem::at(span, "an empty path"));
        }
        Ok(FileLeaf::new(self.directory.join(path)))
    }

    fn table(
        &self,
        table: &DeTable<'_>,
        span: Range<usize>,
        depth: usize,
    ) -> Result<Description, Problem> {
        if depth > MAX_DEPTH {
            return Err(Problem::at(span, format!("nested more than {MAX_DEPTH} deep")));
        }
        let kinds = Kind::ALL.into_iter().filter_map(|(name, kind)| {
            let (key, value) = table.get_key_value(name)?;
            Some((name, kind, key, value))
        });
        let kinds: Vec<_> = kinds.collect();
        let (name, kind, value) = match kinds.as_slice() {
            [(name, kind, _, value)] => (*name, *kind, *value),
            [] => {
                let problem =
                    "a device needs one of the keys file, linear, stripe, mirror, delay, lvm, raid";
                return Err(Problem::at(span, problem));
            }
            [(first, ..), (second, _, key, _), ..] => {
                let problem = format!("a device is either {first} or {second}; remove one");
                return Err(Problem::at(key.span(), problem));
            }
        };
        let options = table.iter().filter(|(key, _)| key.get_ref() != name);
        if kind == Kind::File {
            return self.file_table(value, options).map(Description::File);
        }
        if kind == Kind::Delay {
            let leg = Box::new(self.device(value, depth + 1)?);
            let slowness = self.slowness(value.span(), options)?;
            return Ok(Description::Delay { slowness, leg });
        }
        let mut chunk = None;
        for (key, value) in options {
            if kind != Kind::Stripe || key.get_ref() != "chunk" {
                let problem = format!("{:?} is no option of {name}", key.get_ref());
                return Err(Problem::at(key.span(), problem));
            }
            let parsed = scalar(value)
                .and_then(|text| options::chunk(&text))
                .map_err(|problem| Problem::at(value.span(), problem))?;
            chunk = Some(parsed);
        }
        let legs = self.legs(name, value, depth)?;
        match (kind, chunk) {
            (Kind::Stripe, Some(chunk)) => Ok(Description::Stripe { chunk, legs }),
            (Kind::Stripe, None) => {
                let problem = "a stripe needs its chunk size, as in chunk = \"64k\"";
                Err(Problem::at(span, problem))
            }
            (Kind::Mirror, _) => Ok(Description::Mirror(legs)),
            (Kind::Set, _) => Ok(Description::Set { kind: name, legs }),
            (Kind::Linear | Kind::File | Kind::Delay, _) => Ok(Description::Linear(legs)),
        }
    }

    fn file_table<'t, 'v: 't>(
        &self,
        path: &Spanned<DeValue<'_>>,
        options: impl Iterator<Item = (&'t Spanned<toml::de::DeString<'v>>, &'t Spanned<DeValue<'v>>)>,
    ) -> Result<FileLeaf, Problem> {
        let Some(text) = path.get_ref().as_str() else {
            return Err(Problem::at(path.span(), "file is the path of one file, a string"));
        };
        let mut file = self.file(text, path.span())?;
        for (key, value) in options {
            let set = match value.get_ref() {
                // A flag that is not set.
                DeValue::Boolean(false) => FileLeaf::new("").set(key.get_ref(), None),
                DeValue::Boolean(true) => file.set(key.get_ref(), None),
                _ => scalar(value).and_then(|text| file.set(key.get_ref(), Some(&text))),
            };
            set.map_err(|problem| Problem::at(key.span(), problem))?;
        }
        Ok(file)
    }

    /// The options of a delay, at `place`.
    fn slowness<'t, 'v: 't>(
        &self,
        place: Range<usize>,
        options: impl Iterator<Item = (&'t Spanned<toml::de::DeString<'v>>, &'t Spanned<DeValue<'v>>)>,
    ) -> Result<Slowness, Problem> {
        let (mut latency, mut bandwidth) = (String::new(), None);
        for (key, value) in options {
            let text = scalar(value).map_err(|problem| Problem::at(value.span(), problem))?;
            match key.get_ref().as_ref() {
                "latency" => latency = text,
                "bandwidth" => bandwidth = Some(text),
                other => {
                    let problem = format!("{other:?} is no option of delay");
                    return Err(Problem::at(key.span(), problem));
                }
            }
        }
        let texts = std::iter::once(latency.as_str()).chain(bandwidth.as_deref());
        options::slowness(texts).map_err(|problem| Problem::at(place, problem))
    }

    fn legs(
        &self,
        name: &str,
        value: &Spanned<DeValue<'_>>,
        depth: usize,
    ) -> Result<Vec<Description>, Problem> {
        let legs = value.get_ref().as_array().filter(|legs| !legs.is_empty()).ok_or_else(|| {
            Problem::at(value.span(), format!("{name} is a list of one or more devices"))
        })?;
        legs.iter().map(|leg| self.device(leg, depth + 1)).collect()
    }
}

/// The text of a string, or the digits of a number.
fn scalar(value: &Spanned<DeValue<'_>>) -> Result<String, String> {
    match value.get_ref() {
        DeValue::String(text) => Ok(text.clone().into_owned()),
        DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().to_owned()),
        _ => Err("expected a number or a text such as \"64k\"".into()),
    }
}
