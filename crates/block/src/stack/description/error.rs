//! Why a description cannot be understood.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a description cannot be understood.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DescriptionError {
    /// The text on the command line is wrong.
    #[error("{text}: character {character}: {problem}")]
    Text {
        /// The whole text, with replacements for what is not UTF-8.
        text: String,
        /// Where, counted from 1.
        character: usize,
        /// What is wrong there, and what would be right.
        problem: String,
    },
    /// The TOML file is wrong.
    #[error("{}:{line}:{column}: {problem}", path.display())]
    Toml {
        /// The file.
        path: PathBuf,
        /// Line, counted from 1.
        line: usize,
        /// Character in the line, counted from 1.
        column: usize,
        /// What is wrong there, and what would be right.
        problem: String,
    },
    /// The TOML file cannot be read.
    #[error("cannot read the description {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}
