//! Metadata of files, asked for and changed.

use super::{Caller, Server};
use crate::failure::Failure;
use undercroft_fs::{Change, InodeNumber, Metadata, SetTime, Timestamp};

/// Changes of the metadata of a file, as the kernel asks for them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attributes {
    pub(crate) mode: Option<u16>,
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
    pub(crate) size: Option<u64>,
    pub(crate) accessed: Option<SetTime>,
    pub(crate) modified: Option<SetTime>,
    /// The kernel counts the time of changes of a file whose data it holds back.
    pub(crate) changed: Option<Timestamp>,
}

impl Server {
    pub(crate) fn get_attributes(&self, number: InodeNumber) -> Result<Metadata, Failure> {
        self.nodes.expect(number)?;
        Ok(self.shown(self.fs.stat(number)?))
    }

    pub(crate) fn set_attributes(
        &self,
        number: InodeNumber,
        set: &Attributes,
        caller: Caller,
    ) -> Result<Metadata, Failure> {
        self.nodes.expect(number)?;
        let Attributes { mode, uid, gid, size, accessed, modified, changed } = *set;
        let change =
            Change { mode, uid, gid, size, accessed, modified, changed, ..Change::default() };
        let says_times_only = (mode, uid, gid, size, accessed) == (None, None, None, None, None);
        if says_times_only && self.nodes.is_nameless(number) {
            // The kernel says what it has shown before it forgets a file. This one ends with that.
            let mut metadata = self.fs.stat(number)?;
            metadata.changed = changed.unwrap_or(metadata.changed);
            if let Some(SetTime::To(time)) = modified {
                metadata.modified = time;
            }
            return Ok(self.shown(metadata));
        }
        if size.is_none() {
            return Ok(self.shown(self.fs.set_attributes(number, &change)?));
        }
        let opening = self.nodes.open(&self.fs, number)?;
        // The protocol says whether the caller may keep these bits; the library does not pass it on.
        opening.file.drop_privileges(caller.uid != 0)?;
        Ok(self.shown(opening.file.set_attributes(&change)?))
    }
}
