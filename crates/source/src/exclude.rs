//! Patterns that leave entries out.

use crate::{SourceError, glob};
use globset::{Candidate, Glob, GlobSet, GlobSetBuilder};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a pattern does with the entries that it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// They are kept, although a pattern before left them out.
    Include,
    /// They are left out.
    Exclude,
}

/// A list of patterns. An entry that matches is left out with everything below it; of several
/// patterns that match an entry or a directory above it, the last counts. The directories above an
/// entry that is kept are kept, too.
///
/// `*` and `?` match within a component, `**` across components, `[a-z]` one of a set, `{a,b}` either.
/// A pattern without a slash is compared with the last component at any depth (`*.o`), one with a
/// slash with the whole path relative to the root (`src/*.o`, `/build`). A trailing slash is ignored.
#[derive(Debug, Clone, Default)]
pub struct Exclude {
    /// Consecutive patterns, each set with the place of its first.
    sets: Vec<(usize, GlobSet)>,
    /// For each pattern that includes: its place, and where what it matches begins.
    includes: Vec<(usize, Vec<u8>)>,
    /// The patterns as they were written.
    texts: Arc<[String]>,
    /// For each, whether anything matched it; `None` where nobody asks.
    met: Option<Arc<[AtomicBool]>>,
}

impl Exclude {
    /// Compiles patterns that all exclude.
    ///
    /// # Errors
    /// [`SourceError::Pattern`] names the first pattern that is not a valid glob.
    pub fn new<S: AsRef<str>>(patterns: impl IntoIterator<Item = S>) -> Result<Self, SourceError> {
        Self::in_order(patterns.into_iter().map(|pattern| (Choice::Exclude, pattern)))
    }

    /// Compiles patterns of both kinds.
    ///
    /// # Errors
    /// [`SourceError::Pattern`] names the first pattern that is not a valid glob.
    pub fn in_order<S: AsRef<str>>(
        patterns: impl IntoIterator<Item = (Choice, S)>,
    ) -> Result<Self, SourceError> {
        let mut globs = Vec::new();
        let mut texts = Vec::new();
        let mut includes = Vec::new();
        for (place, (choice, pattern)) in patterns.into_iter().enumerate() {
            let text = pattern.as_ref();
            let glob = glob::compile(text)
                .map_err(|source| SourceError::Pattern { pattern: text.to_owned(), source })?;
            if choice == Choice::Include {
                includes.push((place, glob::leading(&glob)));
            }
            texts.push(text.to_owned());
            globs.push(glob);
        }
        let mut sets = Vec::new();
        build(&globs, 0, &mut sets)?;
        Ok(Self { sets, includes, texts: texts.into(), met: None })
    }

    /// The same patterns, which note what they match. Clones note it together.
    #[must_use]
    pub fn noting(&self) -> Self {
        let met = self.texts.iter().map(|_| AtomicBool::new(false)).collect();
        Self { met: Some(self.met.clone().unwrap_or(met)), ..self.clone() }
    }

    /// The patterns that nothing matched so far, where that is noted: of names below a directory that is
    /// left out nobody asks.
    pub fn unmatched(&self) -> impl Iterator<Item = &str> {
        let met = self.met.iter().flat_map(|met| met.iter());
        let unmet = self.texts.iter().zip(met).filter(|(_, met)| !met.load(Ordering::Relaxed));
        unmet.map(|(text, _)| text.as_str())
    }

    /// Whether it notes what its patterns match.
    pub(crate) fn notes(&self) -> bool {
        self.met.is_some() && !self.is_empty()
    }

    fn note(&self, place: usize) {
        if let Some(met) = self.met.as_ref().and_then(|met| met.get(place)) {
            met.store(true, Ordering::Relaxed);
        }
    }

    /// Whether nothing is left out.
    pub fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }

    /// Whether directories that are left out may have to be there for what is below them.
    pub(crate) fn has_includes(&self) -> bool {
        !self.includes.is_empty()
    }

    /// Whether an entry need not be read: it is left out, and if it is a directory, so is everything
    /// below it. With `parents_kept` its parents were not left out.
    pub(crate) fn prunes(&self, path: &[u8], is_directory: bool, parents_kept: bool) -> bool {
        match () {
            () if self.is_empty() => false,
            () if parents_kept && !self.has_includes() => self.matches(path),
            () if !is_directory || !self.has_includes() => self.matches_within(path),
            () => self
                .last_match(path)
                .is_some_and(|last| self.excludes(last) && !self.may_include_below(path, last)),
        }
    }

    /// Whether this path itself matches a pattern; its parents are not looked at.
    fn matches(&self, path: &[u8]) -> bool {
        let path = Some(path).filter(|path| !path.is_empty()).map(Candidate::from_bytes);
        if self.met.is_some() {
            return path.is_some_and(|path| self.all_matches(&path, &mut Vec::new()).is_some());
        }
        path.is_some_and(|path| self.sets.iter().any(|(_, set)| set.is_match_candidate(&path)))
    }

    /// Whether this path is left out, by itself or one of its parents.
    pub fn matches_within(&self, path: &[u8]) -> bool {
        if self.is_empty() {
            return false;
        }
        if self.has_includes() {
            return self.last_match(path).is_some_and(|last| self.excludes(last));
        }
        with_parents(path).any(|path| self.matches(path))
    }

    /// The place of the last pattern that matches the path or one of its parents.
    fn last_match(&self, path: &[u8]) -> Option<usize> {
        let mut matching = Vec::new();
        let mut last = None;
        for path in with_parents(path).filter(|path| !path.is_empty()) {
            last = last.max(self.all_matches(&Candidate::from_bytes(path), &mut matching));
        }
        last
    }

    /// Compares a path with all patterns; returns the place of the last that matches.
    fn all_matches(&self, path: &Candidate<'_>, matching: &mut Vec<usize>) -> Option<usize> {
        let mut last = None;
        for (first, set) in &self.sets {
            set.matches_candidate_into(path, matching);
            matching.iter().for_each(|place| self.note(first + place));
            last = last.max(matching.iter().max().map(|place| first + place));
        }
        last
    }

    fn excludes(&self, place: usize) -> bool {
        self.includes.iter().all(|(include, _)| *include != place)
    }

    /// Whether a pattern behind `place` may include something below a directory.
    fn may_include_below(&self, directory: &[u8], place: usize) -> bool {
        let below = |path: &[u8], directory: &[u8]| {
            let rest = path.strip_prefix(directory);
            directory.is_empty()
                || rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'/')))
        };
        self.includes.iter().any(|(include, leading)| {
            *include > place && (below(leading, directory) || below(directory, leading))
        })
    }
}

/// Adds sets of the patterns, of which the first is at `place`: one, or as many as it takes, since the
/// machine that compares with all of a set may become too large.
fn build(
    globs: &[Glob],
    place: usize,
    sets: &mut Vec<(usize, GlobSet)>,
) -> Result<(), SourceError> {
    /// More than that are never one set: it would be built for nothing.
    const MOST: usize = 4096;
    if globs.is_empty() {
        return Ok(());
    }
    let mut builder = GlobSetBuilder::new();
    if globs.len() <= MOST {
        for glob in globs {
            builder.add(glob.clone());
        }
        match (builder.build(), globs) {
            (Ok(set), _) => {
                sets.push((place, set));
                return Ok(());
            }
            (Err(source), [glob]) => {
                return Err(SourceError::Pattern { pattern: glob.glob().to_owned(), source });
            }
            _ => {}
        }
    }
    let (front, back) = globs.split_at(globs.len() / 2);
    build(front, place, sets)?;
    build(back, place + front.len(), sets)
}

/// The parents of a path from the top down, and the path.
fn with_parents(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let slashes = path.iter().enumerate().filter(|&(_, &byte)| byte == b'/');
    slashes.map(|(slash, _)| &path[..slash]).chain([path])
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

    #[test]
    fn the_last_pattern_counts_and_directories_are_read_for_what_may_be_below() {
        use Choice::{Exclude as No, Include as Yes};
        let set = Exclude::in_order([
            (No, "/usr/share/doc"),
            (Yes, "/usr/share/doc/**/copyright"),
            (No, "*.gz"),
        ])
        .unwrap();
        for (path, left_out) in [
            (&b"usr/share/doc/x/README"[..], true),
            (b"usr/share/doc/x/copyright", false),
            (b"usr/share/doc/x/copyright/a.gz", true),
            (b"usr/share", false),
        ] {
            assert_eq!(set.prunes(path, false, false), left_out, "{}", path.escape_ascii());
        }
        assert!(!set.prunes(b"usr/share/doc/x", true, true));
        assert!(set.prunes(b"a.gz", true, true));
        let set = Exclude::in_order([(No, "*"), (Yes, "/etc/ssl")]).unwrap();
        assert!(set.prunes(b"usr", true, true) && set.prunes(b"etc/x", true, true));
        assert!(!set.prunes(b"etc", true, true) && set.prunes(b"etc/passwd", false, true));
        assert!(!set.prunes(b"etc/ssl/a/b", false, true));
    }
}
