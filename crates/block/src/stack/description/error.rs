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
        /// The whole text, with replacements for bytes that are not UTF-8.
        text: String,
        /// Where, counted from 1.
        character: usize,
        /// The fault there, and its remedy.
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
        /// The fault there, and its remedy.
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
