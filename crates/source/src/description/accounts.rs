//! Numbers of users and groups that a description names.
//!
//! They are those of the tree, from `etc/passwd` and `etc/group` below the directory of contents:
//! the names of the machine that builds would make the result depend on it. `root` and `wheel`
//! are 0 anywhere.

use super::contents::{Contents, is_regular};
use crate::EntryPath;
use rustc_hash::FxHashMap;
use rustix::fs::fstat;
use std::fs::File;
use std::io::Read;

/// Longest list that is read.
const LIST_MAX: u64 = 16 << 20;

/// The users or the groups.
#[derive(Default)]
pub(super) struct Accounts(FxHashMap<Vec<u8>, u32>);

impl Accounts {
    /// Those of the list at `path` below a directory, if there is one that can be read.
    pub(super) fn read(contents: Option<&mut Contents>, path: &str) -> Self {
        let mut accounts = Self::default();
        let text = contents.and_then(|contents| list(contents, path)).unwrap_or_default();
        for line in text.split(|&byte| byte == b'\n') {
            // NAME:PASSWORD:NUMBER:...
            let mut fields = line.split(|&byte| byte == b':');
            let name = fields.next().unwrap_or_default();
            let number = fields.nth(1).and_then(|number| std::str::from_utf8(number).ok());
            if let Some(number) = number.and_then(|number| number.parse().ok()) {
                accounts.0.entry(name.to_vec()).or_insert(number);
            }
        }
        accounts
    }

    pub(super) fn number(&self, name: &[u8]) -> Option<u32> {
        match name {
            b"root" | b"wheel" => Some(0),
            name => self.0.get(name).copied(),
        }
    }
}

fn list(contents: &mut Contents, path: &str) -> Option<Vec<u8>> {
    let path = EntryPath::from_checked(path.into());
    let place = contents.file(&path).ok()?;
    let file = place.directory.file(&place.name).ok()?;
    if !is_regular(&fstat(&file).ok()?) {
        return None;
    }
    let mut text = Vec::new();
    File::from(file).take(LIST_MAX).read_to_end(&mut text).ok()?;
    Some(text)
}
