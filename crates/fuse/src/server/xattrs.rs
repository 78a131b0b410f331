//! Extended attributes.

use super::{Caller, Server};
use crate::failure::Failure;
use crate::status::STATUS_ATTRIBUTE;
use rustix::io::Errno;
use undercroft_fs::{InodeNumber, SetMode};

const TRUSTED: &[u8] = b"trusted.";
const CREATE: i32 = 1;
const REPLACE: i32 = 2;

impl Server {
    pub(crate) fn get_xattr(&self, number: InodeNumber, name: &[u8]) -> Result<Vec<u8>, Failure> {
        self.nodes.expect(number)?;
        if name == STATUS_ATTRIBUTE.as_bytes() && number == self.fs.root() {
            return Ok(self.status().to_json());
        }
        Ok(self.fs.get_xattr(number, name)?.ok_or(Errno::NODATA)?)
    }

    pub(crate) fn set_xattr(
        &self,
        number: InodeNumber,
        name: &[u8],
        value: &[u8],
        flags: i32,
    ) -> Result<(), Failure> {
        self.nodes.expect(number)?;
        let mode = match flags {
            0 => SetMode::Either,
            CREATE => SetMode::Create,
            REPLACE => SetMode::Replace,
            _ => return Err(Errno::INVAL.into()),
        };
        Ok(self.fs.set_xattr(number, name, value, mode)?)
    }

    pub(crate) fn remove_xattr(&self, number: InodeNumber, name: &[u8]) -> Result<(), Failure> {
        self.nodes.expect(number)?;
        if self.fs.remove_xattr(number, name)? { Ok(()) } else { Err(Errno::NODATA.into()) }
    }

    /// The names of all attributes that the caller may see, each with a zero byte at its end.
    pub(crate) fn list_xattrs(
        &self,
        number: InodeNumber,
        caller: Caller,
    ) -> Result<Vec<u8>, Failure> {
        self.nodes.expect(number)?;
        let mut list = Vec::new();
        for name in self.fs.list_xattrs(number)? {
            if caller.uid == 0 || !name.starts_with(TRUSTED) {
                list.extend_from_slice(&name);
                list.push(0);
            }
        }
        Ok(list)
    }
}
