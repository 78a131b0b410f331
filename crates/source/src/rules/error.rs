//! Errors of rules.

use crate::SourceError;
use crate::selinux::LabelError;
use std::io;
use std::path::PathBuf;

/// Why rules cannot be used, or do not fit the tree.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// A file of rules cannot be read.
    #[error("cannot read the rules in {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A rule is wrong, or cannot be followed in this tree.
    #[error("{place}: {problem}")]
    Rule {
        /// The option as it was written, or the file and the line.
        place: String,
        /// Its defect.
        problem: RuleProblem,
    },
    /// There are warnings, and warnings were forbidden.
    #[error("{first}{}", more(*.others))]
    Strict {
        /// The first of them.
        first: String,
        /// How many more there are.
        others: usize,
    },
}

impl From<RuleError> for SourceError {
    fn from(error: RuleError) -> Self {
        Self::Fault(Box::new(error))
    }
}

fn more(others: usize) -> String {
    if others == 0 { String::new() } else { format!("; and {others} more warnings of rules") }
}

/// The defect of a rule.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuleProblem {
    /// No rule begins with this word.
    #[error("there is no rule {keyword}; the rules are {known}")]
    Keyword {
        /// The word.
        keyword: String,
        /// The words that rules begin with.
        known: String,
    },
    /// Another number of words.
    #[error("write {0}")]
    Words(String),
    /// A quote without its partner.
    #[error("a quote is not closed")]
    Quote,
    /// A line that is no text.
    #[error("a pattern and a name of a rule must be UTF-8")]
    NotText,
    /// A value that cannot be.
    #[error("{0}")]
    Value(String),
    /// A pattern that is no glob.
    #[error("the pattern {0}")]
    Glob(globset::Error),
    /// A file of a policy that is wrong.
    #[error(transparent)]
    Label(#[from] LabelError),
    /// A path in the image that cannot be.
    #[error("the path {path} {defect}")]
    Path {
        /// The path.
        path: String,
        /// Its defect.
        defect: &'static str,
    },
    /// The file to be added cannot be read.
    #[error("cannot {action} {}: {source}", path.display())]
    Read {
        /// What failed.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The file to be added is something else.
    #[error("{} is no regular file; only those are added, directories are made with mkdir", .0.display())]
    NotFile(PathBuf),
    /// The file to be added does not say how large it is.
    #[error("{} has contents although its size is 0, as files of /proc and /sys do; add a copy of it", .0.display())]
    NoSize(PathBuf),
    /// The file to be added has too many holes.
    #[error("{} has more than {} separate data ranges; copy it with cp --sparse=never", .0.display(), crate::entry::MAX_DATA_RANGES)]
    Fragmented(PathBuf),
    /// The file to be added changed during the build.
    #[error("{} changed while the image was built; stop what writes to it and build again", .0.display())]
    Changed(PathBuf),
    /// Two rules make the same path.
    #[error("{path} is made by {other}, too; leave one of them out")]
    Duplicate {
        /// The path.
        path: String,
        /// The other rule.
        other: String,
    },
    /// A path goes through something that is not a directory.
    #[error("{parent} is {what}, and nothing can be below it{remedy}")]
    ParentNotDirectory {
        /// The path above.
        parent: String,
        /// What it is.
        what: &'static str,
        /// What to do.
        remedy: String,
    },
    /// A directory would be replaced.
    #[error("{0} is a directory in the source; leave it out with an exclude rule first")]
    IsDirectory(String),
    /// A directory is to be made where there is something else.
    #[error(
        "{path} is {what} in the source, no directory; leave it out with an exclude rule first"
    )]
    IsNoDirectory {
        /// The path.
        path: String,
        /// What it is.
        what: &'static str,
    },
    /// The replaced file has further names.
    #[error(
        "{link} is another name of {path}, which this rule replaces; leave {link} out with an \
         exclude rule, or in a directory {path}, so that the other name has the contents"
    )]
    Linked {
        /// The replaced path.
        path: String,
        /// The other name.
        link: String,
    },
    /// A symbolic link leads to itself.
    #[error(
        "the symbolic link {0} leads back to itself; give one of the links on its way another target"
    )]
    Cycle(String),
}
