//! Paths with patterns: * ? and [ ] stand for names that are there, as in shells.

use super::Session;
use crate::failure::Usage;
use anyhow::Result;
use globset::{Candidate, Glob, GlobMatcher};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use undercroft_fs::{ErrorKind, PathError};

impl Session<'_> {
    /// As [`matching`](Self::matching), of no paths the current directory.
    pub(crate) fn matching_or_here(&self, paths: &[OsString]) -> Result<Vec<OsString>> {
        if paths.is_empty() { Ok(vec![self.here()]) } else { self.matching(paths) }
    }

    /// The current directory, by its path from the root.
    pub(crate) fn here(&self) -> OsString {
        self.fs.current_directory().into()
    }

    /// These paths; instead of one with a pattern, all paths that are like it, sorted. One that is there
    /// as it is written stands for itself, and so does one that nothing is like.
    pub(crate) fn matching(&self, paths: &[OsString]) -> Result<Vec<OsString>> {
        let mut all = Vec::with_capacity(paths.len());
        for path in paths {
            if !is_pattern(path.as_bytes()) || self.is_there(path)? {
                all.push(path.clone());
                continue;
            }
            let mut found = self.like(path)?;
            if found.is_empty() {
                found.push(path.clone());
            }
            all.extend(found);
        }
        Ok(all)
    }

    fn is_there(&self, path: &OsStr) -> Result<bool, PathError> {
        match self.fs.symlink_metadata(path) {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotDirectory) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// The paths that are like a pattern: component by component, each list the names below the last.
    fn like(&self, pattern: &OsStr) -> Result<Vec<OsString>> {
        let bytes = pattern.as_bytes();
        let top: &[u8] = if bytes.starts_with(b"/") { b"/" } else { b"" };
        let mut found = vec![top.to_vec()];
        for part in bytes.split(|byte| *byte == b'/').filter(|part| !part.is_empty()) {
            let mut next = Vec::new();
            let matcher = is_pattern(part).then(|| matcher(part)).transpose()?;
            for above in found {
                let Some(matcher) = &matcher else {
                    next.push(below(&above, part));
                    continue;
                };
                for name in self.names_like(&above, part, matcher)? {
                    next.push(below(&above, &name));
                }
            }
            found = next;
        }
        let mut paths = Vec::new();
        for path in found.into_iter().map(OsString::from_vec) {
            if self.is_there(&path)? {
                paths.push(path);
            }
        }
        Ok(paths)
    }

    /// The names in a directory that are like a pattern, sorted; none if it is no directory. Names with
    /// a dot in front are only like those with one.
    fn names_like(
        &self,
        directory: &[u8],
        pattern: &[u8],
        matcher: &GlobMatcher,
    ) -> Result<Vec<Vec<u8>>, PathError> {
        let directory = if directory.is_empty() { b"." } else { directory };
        let path = Path::new(OsStr::from_bytes(directory));
        match self.fs.metadata(path) {
            Ok(found) if found.is_dir() => {}
            _ => return Ok(Vec::new()),
        }
        let with_dots = pattern.starts_with(b".");
        let mut names = Vec::new();
        for entry in self.fs.read_dir(path)? {
            let name = entry?.file_name().as_bytes().to_vec();
            let may_match = with_dots || !name.starts_with(b".");
            if may_match && matcher.is_match_candidate(&Candidate::new(OsStr::from_bytes(&name))) {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }
}

fn is_pattern(bytes: &[u8]) -> bool {
    bytes.iter().any(|byte| b"*?[".contains(byte))
}

fn matcher(part: &[u8]) -> Result<GlobMatcher> {
    let wrong = |why: &dyn std::fmt::Display| Usage(format!("{}: {why}", part.escape_ascii()));
    let text = std::str::from_utf8(part).map_err(|error| wrong(&error))?;
    let glob = Glob::new(text).map_err(|error| wrong(&error.kind()))?;
    Ok(glob.compile_matcher())
}

fn below(directory: &[u8], name: &[u8]) -> Vec<u8> {
    match directory {
        b"" => name.to_vec(),
        _ => crate::text::join(directory, name),
    }
}
