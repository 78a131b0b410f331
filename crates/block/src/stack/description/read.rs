//! Descriptions from arguments and files.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::str::FromStr;

use super::error::DescriptionError;
use super::tree::Description;
use super::{text, toml};

/// Bytes of the longest description.
const LONGEST: u64 = 1 << 20;

impl Description {
    /// The device that an argument of a command names: a path, a description, or `@` and the path
    /// of a TOML file.
    ///
    /// # Errors
    /// The text is wrong, or the TOML file is or cannot be read.
    pub fn from_argument(argument: &OsStr) -> Result<Self, DescriptionError> {
        match argument.as_bytes().strip_prefix(b"@") {
            Some(path) => Self::from_toml_file(Path::new(OsStr::from_bytes(path))),
            None => text::parse(argument.as_bytes()),
        }
    }

    /// Reads the TOML file at `path`.
    ///
    /// # Errors
    /// It cannot be read, or is wrong.
    pub fn from_toml_file(path: &Path) -> Result<Self, DescriptionError> {
        let failed = |source| DescriptionError::Read { path: path.to_owned(), source };
        let mut text = String::new();
        let file = File::open(path).map_err(failed)?;
        file.take(LONGEST + 1).read_to_string(&mut text).map_err(failed)?;
        if text.len() as u64 > LONGEST {
            let what = format!("it is longer than {LONGEST} bytes");
            return Err(failed(io::Error::new(io::ErrorKind::FileTooLarge, what)));
        }
        toml::parse(&text, path)
    }
}

impl FromStr for Description {
    type Err = DescriptionError;

    fn from_str(text: &str) -> Result<Self, DescriptionError> {
        Self::from_argument(text.as_ref())
    }
}
