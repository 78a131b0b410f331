//! What a file is to be: tests, joined.

use super::candidate::Candidate;
use super::test::Test;
use anyhow::Result;

/// Tests, joined.
pub(super) enum Expression {
    Test(Test),
    Not(Box<Expression>),
    All(Vec<Expression>),
    Any(Vec<Expression>),
}

impl Expression {
    /// Whether a file is so.
    pub(super) fn holds(&self, file: &Candidate<'_>) -> Result<bool> {
        match self {
            Self::Test(test) => test.holds(file),
            Self::Not(inner) => inner.holds(file).map(|holds| !holds),
            Self::All(all) => {
                for part in all {
                    if !part.holds(file)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Self::Any(any) => {
                for part in any {
                    if part.holds(file)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }
}
