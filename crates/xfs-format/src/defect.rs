//! The defect of a field.

use std::fmt;
use thiserror::Error;

/// A field that holds a value it must not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{field} is {found:#x}, must be {rule}")]
pub struct FieldDefect {
    /// Name of the field, as in docs/format.
    pub field: &'static str,
    /// Its value.
    pub found: u64,
    /// The values that are allowed.
    pub rule: Rule,
}

/// The values that a field may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Exactly this value.
    Equal(u64),
    /// This value or less.
    AtMost(u64),
    /// This value or more.
    AtLeast(u64),
    /// Something else, in words.
    Text(&'static str),
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Equal(value) => write!(f, "{value:#x}"),
            Self::AtMost(value) => write!(f, "at most {value:#x}"),
            Self::AtLeast(value) => write!(f, "at least {value:#x}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl FieldDefect {
    /// `Ok` if `holds`, else the defect.
    ///
    /// # Errors
    /// The defect described by the arguments, if `holds` is false.
    #[inline]
    pub fn unless(
        holds: bool,
        field: &'static str,
        found: impl Into<u64>,
        rule: Rule,
    ) -> Result<(), Self> {
        if holds { Ok(()) } else { Err(Self { field, found: found.into(), rule }) }
    }
}
