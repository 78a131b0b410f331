//! The operations of the load, as they are written to the log of a worker.

use std::fmt;
use std::str::FromStr;

/// A name of a file: the number of its directory, and the name there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    pub(super) directory: usize,
    pub(super) name: String,
}

/// How data is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Into the page cache.
    Cached,
    /// Durable when the call returns.
    Durable,
    /// Around the page cache, and durable when the call returns.
    Direct,
}

impl Way {
    pub(super) const ALL: [Self; 3] = [Self::Cached, Self::Durable, Self::Direct];

    fn name(self) -> &'static str {
        match self {
            Self::Cached => "cached",
            Self::Durable => "durable",
            Self::Direct => "direct",
        }
    }
}

/// An operation on a file, or on the directory with a number. Places and lengths are in sectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Operation {
    Create {
        file: u64,
        name: Name,
    },
    Write {
        file: u64,
        first: u64,
        count: u64,
        version: u64,
        way: Way,
    },
    Truncate {
        file: u64,
        count: u64,
    },
    Punch {
        file: u64,
        first: u64,
        count: u64,
    },
    Rename {
        file: u64,
        name: Name,
    },
    /// The file takes the name of another one, which goes.
    Replace {
        file: u64,
        victim: u64,
    },
    Unlink {
        file: u64,
    },
    /// fsync of a file.
    Sync {
        file: u64,
    },
    /// fdatasync of a file.
    DataSync {
        file: u64,
    },
    /// fsync of a directory.
    DirectorySync {
        directory: usize,
    },
}

impl fmt::Display for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create { file, name } => write!(formatter, "create {file} {name}"),
            Self::Write { file, first, count, version, way } => {
                write!(formatter, "write {file} {first} {count} {version} {}", way.name())
            }
            Self::Truncate { file, count } => write!(formatter, "truncate {file} {count}"),
            Self::Punch { file, first, count } => {
                write!(formatter, "punch {file} {first} {count}")
            }
            Self::Rename { file, name } => write!(formatter, "rename {file} {name}"),
            Self::Replace { file, victim } => write!(formatter, "replace {file} {victim}"),
            Self::Unlink { file } => write!(formatter, "unlink {file}"),
            Self::Sync { file } => write!(formatter, "fsync {file}"),
            Self::DataSync { file } => write!(formatter, "fdatasync {file}"),
            Self::DirectorySync { directory } => write!(formatter, "fsync-directory {directory}"),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.directory, self.name)
    }
}

impl FromStr for Operation {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let mut words = line.split(' ');
        let verb = words.next().unwrap_or_default();
        let mut word = || words.next().ok_or_else(|| format!("too short: {line:?}"));
        let number = |word: &str| {
            word.parse::<u64>().map_err(|error| format!("{error}: {word:?} in {line:?}"))
        };
        let file = number(word()?)?;
        let directory = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let operation = match verb {
            "create" | "rename" => {
                let directory = directory(number(word()?)?);
                let name = Name { directory, name: word()?.to_owned() };
                match verb {
                    "create" => Self::Create { file, name },
                    _ => Self::Rename { file, name },
                }
            }
            "write" => {
                let (first, count) = (number(word()?)?, number(word()?)?);
                let version = number(word()?)?;
                let name = word()?;
                let way = Way::ALL.into_iter().find(|way| way.name() == name);
                let way = way.ok_or_else(|| format!("no way of writing: {line:?}"))?;
                Self::Write { file, first, count, version, way }
            }
            "truncate" => Self::Truncate { file, count: number(word()?)? },
            "punch" => Self::Punch { file, first: number(word()?)?, count: number(word()?)? },
            "replace" => Self::Replace { file, victim: number(word()?)? },
            "unlink" => Self::Unlink { file },
            "fsync" => Self::Sync { file },
            "fdatasync" => Self::DataSync { file },
            "fsync-directory" => Self::DirectorySync { directory: directory(file) },
            _ => return Err(format!("no operation: {line:?}")),
        };
        Ok(operation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_read_as_they_were_written() {
        let name = Name { directory: 2, name: "f-1".to_owned() };
        for operation in [
            Operation::Create { file: 1, name: name.clone() },
            Operation::Write { file: 1, first: 2, count: 3, version: 4, way: Way::Direct },
            Operation::Truncate { file: 1, count: 2 },
            Operation::Punch { file: 1, first: 0, count: 8 },
            Operation::Rename { file: 1, name },
            Operation::Replace { file: 1, victim: 2 },
            Operation::Unlink { file: 1 },
            Operation::Sync { file: 1 },
            Operation::DataSync { file: 1 },
            Operation::DirectorySync { directory: 0 },
        ] {
            assert_eq!(operation.to_string().parse(), Ok(operation));
        }
        for bad in ["", "create", "create x 1 y", "write 1 2 3 4 fast", "fly 3"] {
            assert!(bad.parse::<Operation>().is_err(), "{bad}");
        }
    }
}
