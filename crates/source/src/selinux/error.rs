//! Errors of the files of a policy.

use std::io;
use std::path::PathBuf;

/// Why the labels of a policy cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabelError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}; name the file_contexts of a policy, or its directory, such as /etc/selinux/targeted", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A line is wrong.
    #[error("{}, line {line}: {problem}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
        /// Its defect.
        problem: LabelProblem,
    },
}

/// The defect of a line of `file_contexts`.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum LabelProblem {
    /// Fewer words than an entry has.
    #[error("an entry is an expression, perhaps a kind, and a label; there is one word")]
    MissingFields,
    /// A byte outside of ASCII.
    #[error("a byte is outside of ASCII; write \\x and two hexadecimal digits for it")]
    NotAscii,
    /// A kind that there is not.
    #[error("\"{0}\" is no kind; the kinds are -- -b -c -d -l -p -s")]
    Kind(String),
    /// A label of another form.
    #[error("\"{0}\" is no label; write USER:ROLE:TYPE or USER:ROLE:TYPE:RANGE, or <<none>>")]
    Label(String),
    /// An expression that cannot be understood.
    #[error("expression {expression}: {defect}")]
    Expression {
        /// The expression.
        expression: String,
        /// Its defect.
        defect: String,
    },
}
