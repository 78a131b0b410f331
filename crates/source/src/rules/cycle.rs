//! Symbolic links among the added entries that lead back to themselves, and added entries below
//! something that is no directory.

use super::addition::{Addition, Made};
use super::error::{RuleError, RuleProblem};
use crate::EntryPath;
use std::collections::BTreeMap;

/// Links that a kernel follows on one way.
const MOST_LINKS: usize = 40;

/// Checks additions among themselves.
pub(super) fn check(additions: &BTreeMap<EntryPath, Addition>) -> Result<(), RuleError> {
    for (path, addition) in additions {
        for parent in parents(path) {
            let what = match additions.get(&parent).map(|above| &above.made) {
                None | Some(Made::Directory) => continue,
                Some(Made::Symlink(_)) => "an added symbolic link",
                Some(Made::File(_)) => "an added file",
            };
            let (parent, remedy) = (parent.to_string(), String::new());
            let problem = RuleProblem::ParentNotDirectory { parent, what, remedy };
            return Err(addition.error(problem));
        }
        if matches!(addition.made, Made::Symlink(_)) && !has_end(additions, path) {
            return Err(addition.error(RuleProblem::Cycle(path.to_string())));
        }
    }
    Ok(())
}

/// The paths above a path, from the top down, without the root.
pub(super) fn parents(path: &EntryPath) -> impl Iterator<Item = EntryPath> {
    let bytes = path.as_bytes();
    let slashes = bytes.iter().enumerate().filter(|&(_, &byte)| byte == b'/');
    slashes.map(move |(slash, _)| EntryPath::from_checked(bytes[..slash].to_vec()))
}

/// Whether the way from a path through added links ends. Other links of the tree are not known.
fn has_end(additions: &BTreeMap<EntryPath, Addition>, path: &EntryPath) -> bool {
    let mut ahead: Vec<Vec<u8>> = path.components().rev().map(<[u8]>::to_vec).collect();
    let mut way = EntryPath::root();
    let mut links = 0;
    while let Some(component) = ahead.pop() {
        match component.as_slice() {
            b"" | b"." => continue,
            b".." => {
                let parent = way.split_last().map_or(Vec::new(), |(parent, _)| parent.to_vec());
                way = EntryPath::from_checked(parent);
                continue;
            }
            name => way = way.join(name),
        }
        let Some(Addition { made: Made::Symlink(target), .. }) = additions.get(&way) else {
            continue;
        };
        links += 1;
        if links > MOST_LINKS {
            return false;
        }
        let parent = way.split_last().map_or(Vec::new(), |(parent, _)| parent.to_vec());
        let absolute = target.first() == Some(&b'/');
        way = EntryPath::from_checked(if absolute { Vec::new() } else { parent });
        ahead.extend(target.split(|&byte| byte == b'/').rev().map(<[u8]>::to_vec));
    }
    true
}
