//! Which of the removed files are wanted.

use crate::value;
use anyhow::{Context, Result};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use globset::{Glob, GlobMatcher};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use undercroft_recover::{FoundFile, State};
use undercroft_xfs::format::Timestamp;

/// A state by its name.
fn state_parser() -> impl TypedValueParser<Value = State> {
    let names = PossibleValuesParser::new(State::ALL.map(State::name));
    names.try_map(|name| {
        State::ALL.into_iter().find(|state| state.name() == name).ok_or("no such state")
    })
}

/// Which files.
#[derive(clap::Args)]
pub(crate) struct FilterArgs {
    /// Only files that were removed at this time or later: @SECONDS since 1970 or RFC 3339.
    #[arg(long, value_parser = value::time, value_name = "TIME")]
    since: Option<Timestamp>,

    /// Only files with a name like this; * ? [ ] stand for others.
    #[arg(long, value_name = "GLOB")]
    name: Option<String>,

    /// Only files of this user.
    #[arg(long, value_name = "UID")]
    owner: Option<u32>,

    /// Only files with more bytes than this.
    #[arg(long, value_parser = value::size, value_name = "SIZE")]
    larger: Option<u64>,

    /// Only files in this state; may be given more than once.
    #[arg(long, value_name = "STATE", value_parser = state_parser())]
    state: Vec<State>,
}

/// What is wanted.
pub(crate) struct Selection<'f> {
    filter: &'f FilterArgs,
    name: Option<GlobMatcher>,
    /// Names of the files, or of directories above them; all files if there is none.
    below: Vec<Vec<Vec<u8>>>,
}

impl FilterArgs {
    /// The files at or below `paths`, all if there is none, that pass the filters.
    pub(crate) fn selection<'p>(
        &self,
        paths: impl Iterator<Item = &'p OsStr>,
    ) -> Result<Selection<'_>> {
        let names = |path: &OsStr| {
            let names = path.as_bytes().split(|byte| *byte == b'/');
            names.filter(|name| !name.is_empty() && name != b".").map(<[u8]>::to_vec).collect()
        };
        let name = self.name.as_deref().map(Glob::new).transpose();
        let name = name.context("--name is no pattern")?.map(|glob| glob.compile_matcher());
        Ok(Selection { filter: self, name, below: paths.map(names).collect() })
    }
}

impl Selection<'_> {
    /// Whether a file is wanted.
    pub(crate) fn takes(&self, file: &FoundFile) -> bool {
        let filter = self.filter;
        let since = filter
            .since
            .is_none_or(|since| file.removed_at.is_some_and(|removed| removed >= since));
        since
            && filter.owner.is_none_or(|owner| file.uid == owner)
            && filter.larger.is_none_or(|size| file.size > size)
            && (filter.state.is_empty() || filter.state.contains(&file.state))
            && self.has_name(file)
            && self.is_below(file)
    }

    fn has_name(&self, file: &FoundFile) -> bool {
        let Some(glob) = &self.name else { return true };
        let mut names = file.paths.iter().filter_map(|path| path.names.last());
        names.any(|name| glob.is_match(OsStr::from_bytes(name)))
    }

    fn is_below(&self, file: &FoundFile) -> bool {
        let is_at = |names: &[Vec<u8>]| self.below.iter().any(|top| names.starts_with(top));
        self.below.is_empty()
            || file.paths.iter().any(|path| path.is_complete && is_at(&path.names))
    }
}
