//! Entries of `file_contexts`.

use super::error::LabelProblem;
use super::expression::{Compiler, Expression};
use crate::Kind;

/// The kind of a labelled file, as entries tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LabelledKind {
    /// `--`
    Regular,
    /// `-d`
    Directory,
    /// `-l`
    Symlink,
    /// `-c`
    CharDevice,
    /// `-b`
    BlockDevice,
    /// `-p`
    Fifo,
    /// `-s`
    Socket,
}

impl LabelledKind {
    /// The kind of an entry; a hard link has that of its file.
    pub(crate) fn of(kind: &Kind) -> Option<Self> {
        Some(match kind {
            Kind::Regular { .. } => Self::Regular,
            Kind::Directory => Self::Directory,
            Kind::Symlink(_) => Self::Symlink,
            Kind::CharDevice(_) => Self::CharDevice,
            Kind::BlockDevice(_) => Self::BlockDevice,
            Kind::Fifo => Self::Fifo,
            Kind::Socket => Self::Socket,
            Kind::HardLink(_) => return None,
        })
    }

    fn parse(word: &[u8]) -> Result<Self, LabelProblem> {
        Ok(match word {
            b"--" => Self::Regular,
            b"-d" => Self::Directory,
            b"-l" => Self::Symlink,
            b"-c" => Self::CharDevice,
            b"-b" => Self::BlockDevice,
            b"-p" => Self::Fifo,
            b"-s" => Self::Socket,
            other => return Err(LabelProblem::Kind(text(other))),
        })
    }
}

/// What an entry gives to its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Context {
    Label(Box<[u8]>),
    /// `<<none>>`: the file is left as it is.
    None,
}

/// An entry.
#[derive(Debug)]
pub(super) struct Spec {
    pub(super) expression: Expression,
    kind: Option<LabelledKind>,
    context: Context,
}

impl Spec {
    /// Whether the entry is for a file of this kind whose path goes on with `rest` behind the prefix
    /// of the expression.
    pub(super) fn matches(&self, rest: &[u8], kind: LabelledKind) -> bool {
        self.kind.is_none_or(|own| own == kind) && self.expression.matches_rest(rest)
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }
}

/// Reads entries line by line.
#[derive(Default)]
pub(super) struct Reader {
    compiler: Compiler,
    expressions: Vec<Spec>,
    literals: Vec<Spec>,
}

impl Reader {
    /// Words behind the label mean nothing, as to libselinux.
    pub(super) fn line(&mut self, line: &[u8]) -> Result<(), LabelProblem> {
        let mut words = line.split(|&byte| is_space(byte)).filter(|word| !word.is_empty());
        let Some(expression) = words.next().filter(|word| word[0] != b'#') else { return Ok(()) };
        let (kind, context) = match (words.next(), words.next()) {
            (None, _) => return Err(LabelProblem::MissingFields),
            (Some(context), None) => (None, context),
            (Some(kind), Some(context)) => (Some(kind), context),
        };
        if !expression.is_ascii() {
            return Err(LabelProblem::NotAscii);
        }
        let kind = kind.map(LabelledKind::parse).transpose()?;
        let context = label(context)?;
        let expression = self
            .compiler
            .compile(expression)
            .map_err(|defect| LabelProblem::Expression { expression: text(expression), defect })?;
        let literal = expression.is_literal();
        let list = if literal { &mut self.literals } else { &mut self.expressions };
        list.push(Spec { expression, kind, context });
        Ok(())
    }

    /// All entries in the order of precedence: literal ones come last.
    pub(super) fn finish(mut self) -> Vec<Spec> {
        self.expressions.append(&mut self.literals);
        self.expressions
    }
}

/// Bytes that separate words, as `isspace` has them.
pub(super) const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | 0x0b | 0x0c)
}

fn label(word: &[u8]) -> Result<Context, LabelProblem> {
    if word == b"<<none>>" {
        return Ok(Context::None);
    }
    let parts: Vec<_> = word.splitn(4, |&byte| byte == b':').collect();
    if parts.len() < 3 || parts.iter().any(|part| part.is_empty()) || word.contains(&0) {
        return Err(LabelProblem::Label(text(word)));
    }
    Ok(Context::Label(word.into()))
}

fn text(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}
