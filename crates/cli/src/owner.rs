//! Owners as they are written: numbers, or names that the volume knows.

use crate::failure::Usage;
use crate::session::Session;
use anyhow::{Context, Result, bail};
use std::str::FromStr;
use undercroft_fs::Owner;

/// A new owner, a new group, or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewOwner {
    user: Option<String>,
    group: Option<Group>,
}

/// A new group.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Group {
    Named(String),
    /// That of the user.
    Login,
}

impl FromStr for NewOwner {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = |name: &str| Some(name.to_owned()).filter(|name| !name.is_empty());
        let owner = match text.split_once(':') {
            None => Self { user: named(text), group: None },
            Some((user, "")) => Self { user: named(user), group: Some(Group::Login) },
            Some((user, group)) => {
                Self { user: named(user), group: Some(Group::Named(group.to_owned())) }
            }
        };
        let is_one = owner.user.is_some() || matches!(owner.group, Some(Group::Named(_)));
        if is_one && !text.ends_with("::") && text.matches(':').count() < 2 {
            return Ok(owner);
        }
        Err("write numbers or names: USER:GROUP, USER, :GROUP, or USER: for the group of the user"
            .into())
    }
}

impl NewOwner {
    /// Owner and group of new files: the given ones, the others from `otherwise`.
    pub(crate) fn of_new(
        given: Option<&Self>,
        session: &Session<'_>,
        otherwise: Owner,
    ) -> Result<Owner> {
        let Some(owner) = given else { return Ok(otherwise) };
        let (uid, gid) = owner.resolve(session)?;
        Ok(Owner { uid: uid.unwrap_or(otherwise.uid), gid: gid.unwrap_or(otherwise.gid) })
    }

    /// The numbers of owner and group. Names are those of /etc/passwd and /etc/group of the volume;
    /// any other word is a number.
    pub(crate) fn resolve(&self, session: &Session<'_>) -> Result<(Option<u32>, Option<u32>)> {
        let user = self.user.as_deref();
        let uid = user.map(|user| number(session, USERS, user)).transpose()?;
        let gid = match &self.group {
            None => None,
            Some(Group::Named(group)) => Some(number(session, GROUPS, group)?),
            Some(Group::Login) => {
                let user = user.unwrap_or_default();
                let group = look_up(session, USERS, user, LOGIN_GROUP)?;
                Some(group.with_context(|| format!("{USERS} of the volume has no user {user}"))?)
            }
        };
        Ok((uid, gid))
    }
}

const USERS: &str = "/etc/passwd";
const GROUPS: &str = "/etc/group";
/// Fields of their lines, behind the name and the password.
const NUMBER: usize = 2;
const LOGIN_GROUP: usize = 3;
/// Largest of these files that is read.
const FILE_MAX: u64 = 64 << 20;

/// The number of a name, or the one that is written.
fn number(session: &Session<'_>, path: &str, name: &str) -> Result<u32> {
    let digits = name.bytes().all(|byte| byte.is_ascii_digit());
    match look_up(session, path, name, NUMBER) {
        Ok(Some(number)) => Ok(number),
        // A file that cannot be read has no names.
        _ if digits => Ok(name
            .parse()
            .map_err(|_| Usage(format!("{name}: the largest number is {}", u32::MAX)))?),
        Ok(None) => bail!("{path} of the volume has no {name}; write its number"),
        Err(error) => Err(error),
    }
}

/// A field of the line of a name.
fn look_up(session: &Session<'_>, path: &str, name: &str, field: usize) -> Result<Option<u32>> {
    let Ok(metadata) = session.fs.metadata(path) else { return Ok(None) };
    if metadata.size > FILE_MAX {
        bail!("{path} of the volume has {} bytes, too many to look for {name}", metadata.size);
    }
    let bytes = session.fs.read(path)?;
    let mut lines = bytes.split(|byte| *byte == b'\n').map(String::from_utf8_lossy);
    Ok(lines.find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        (fields[0] == name).then(|| fields.get(field)?.parse().ok())?
    }))
}
