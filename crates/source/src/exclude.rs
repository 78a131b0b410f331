//! Patterns that leave entries out.

use crate::SourceError;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A set of patterns. An entry that matches is left out with everything below it.
///
/// `*` and `?` match within a component, `**` across components, `[a-z]` one of a set, `{a,b}` either.
/// A pattern without a slash is compared with the last component at any depth (`*.o`), one with a
/// slash with the whole path relative to the root (`src/*.o`, `/build`). A trailing slash is ignored.
#[derive(Debug, Clone, Default)]
pub struct Exclude {
    set: GlobSet,
}

impl Exclude {
    /// Compiles the patterns.
    ///
    /// # Errors
    /// [`SourceError::Pattern`] names the first pattern that is not a valid glob.
    pub fn new<S: AsRef<str>>(patterns: impl IntoIterator<Item = S>) -> Result<Self, SourceError> {
        let mut set = GlobSetBuilder::new();
        for pattern in patterns {
            let text = pattern.as_ref();
            let anchored = match text.trim_end_matches('/') {
                name if !name.contains('/') => format!("**/{name}"),
                path => path.trim_start_matches('/').to_owned(),
            };
            let glob = GlobBuilder::new(&anchored)
                .literal_separator(true)
                .build()
                .map_err(|source| SourceError::Pattern { pattern: text.to_owned(), source })?;
            set.add(glob);
        }
        let set = set.build().map_err(|source| SourceError::Pattern {
            pattern: "all together".to_owned(),
            source,
        })?;
        Ok(Self { set })
    }

    /// Whether nothing is left out.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    /// Whether this path itself matches; its parents are not looked at.
    pub(crate) fn matches(&self, path: &[u8]) -> bool {
        !path.is_empty() && self.set.is_match(Path::new(OsStr::from_bytes(path)))
    }

    /// Whether this path or one of its parents matches.
    pub(crate) fn matches_within(&self, path: &[u8]) -> bool {
        if self.set.is_empty() {
            return false;
        }
        let slashes = path.iter().enumerate().filter(|&(_, &byte)| byte == b'/');
        slashes.map(|(slash, _)| &path[..slash]).any(|parent| self.matches(parent))
            || self.matches(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exclude(pattern: &str) -> Exclude {
        Exclude::new([pattern]).unwrap()
    }

    #[test]
    fn a_pattern_without_a_slash_matches_the_name_at_any_depth() {
        let set = exclude("*.o");
        assert!(set.matches(b"a.o"));
        assert!(set.matches(b"deep/er/a.o"));
        assert!(!set.matches(b"a.o/b"));
        assert!(set.matches_within(b"a.o/b"));
    }

    #[test]
    fn a_pattern_with_a_slash_matches_from_the_root() {
        let set = exclude("src/*.o");
        assert!(set.matches(b"src/a.o"));
        assert!(!set.matches(b"x/src/a.o"));
        assert!(!set.matches(b"src/y/a.o"));
        assert!(exclude("/build").matches(b"build"));
        assert!(!exclude("/build").matches(b"x/build"));
    }

    #[test]
    fn names_of_any_bytes_are_compared() {
        assert!(exclude("*.bin").matches(b"\xff\xfe.bin"));
        assert!(!exclude("*").matches(b""));
    }

    #[test]
    fn a_pattern_that_is_no_glob_is_named() {
        let error = Exclude::new(["ok", "[z"]).unwrap_err().to_string();
        assert!(error.contains("[z"), "{error}");
    }
}
