//! Extended attributes.

use super::{Caller, Server};
use crate::failure::Failure;
use crate::status::STATUS_ATTRIBUTE;
use rustix::io::Errno;
use undercroft_fs::{Change, InodeNumber, Metadata, SetMode};

const TRUSTED: &[u8] = b"trusted.";
const LISTS: &[u8] = b"system.posix_acl_";
const ACCESS_LIST: &[u8] = b"system.posix_acl_access";
const SET_GROUP: u16 = 0o2000;
const CREATE: i32 = 1;
const REPLACE: i32 = 2;

impl Server {
    pub(crate) fn get_xattr(&self, number: InodeNumber, name: &[u8]) -> Result<Vec<u8>, Failure> {
        self.nodes.expect(number)?;
        if name == STATUS_ATTRIBUTE.as_bytes() && number == self.fs.root() {
            return Ok(self.status().to_json());
        }
        Ok(self.fs.nodes().get_xattr(number, name)?.ok_or(Errno::NODATA)?)
    }

    pub(crate) fn set_xattr(
        &self,
        number: InodeNumber,
        (name, value): (&[u8], &[u8]),
        flags: i32,
        caller: Caller,
    ) -> Result<(), Failure> {
        self.nodes.expect(number)?;
        let mode = match flags {
            0 => SetMode::Either,
            CREATE => SetMode::Create,
            REPLACE => SetMode::Replace,
            _ => return Err(Errno::INVAL.into()),
        };
        self.telling_of_space(number, || {
            Ok(self.fs.nodes().set_xattr(number, name, value, mode)?)
        })?;
        if name == ACCESS_LIST { self.end_of_lock(number, caller) } else { Ok(()) }
    }

    /// A setgid bit ends when one who is not of the group sets the access list.
    fn end_of_lock(&self, number: InodeNumber, caller: Caller) -> Result<(), Failure> {
        let Metadata { mode, gid, .. } = self.fs.nodes().stat(number)?;
        if mode & SET_GROUP == 0 {
            return Ok(());
        }
        let writer = caller.writer(gid);
        if !writer.keeps_set_id && !writer.is_in_group {
            let mode = Some(mode & !SET_GROUP);
            self.fs.nodes().set_attributes(number, &Change { mode, ..Change::default() })?;
        }
        Ok(())
    }

    /// Attributes may need blocks, and the kernel does not know how many.
    fn telling_of_space<T>(
        &self,
        number: InodeNumber,
        change: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let before = self.fs.nodes().stat(number)?.blocks;
        let changed = change()?;
        if self.fs.nodes().stat(number)?.blocks != before {
            self.tell_of_change(number);
        }
        Ok(changed)
    }

    pub(crate) fn remove_xattr(&self, number: InodeNumber, name: &[u8]) -> Result<(), Failure> {
        self.nodes.expect(number)?;
        let is_removed =
            self.telling_of_space(number, || Ok(self.fs.nodes().remove_xattr(number, name)?))?;
        // To have no access list is a state of a file, and not an attribute that it lacks.
        if is_removed || name.starts_with(LISTS) { Ok(()) } else { Err(Errno::NODATA.into()) }
    }

    /// The names of all attributes that the caller may see, each with a zero byte at its end.
    pub(crate) fn list_xattrs(
        &self,
        number: InodeNumber,
        caller: Caller,
    ) -> Result<Vec<u8>, Failure> {
        self.nodes.expect(number)?;
        let mut list = Vec::new();
        for name in self.fs.nodes().list_xattrs(number)? {
            if caller.uid == 0 || !name.starts_with(TRUSTED) {
                list.extend_from_slice(&name);
                list.push(0);
            }
        }
        Ok(list)
    }
}
