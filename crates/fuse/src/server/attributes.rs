//! Metadata of files, asked for and changed.

use super::{Caller, Server};
use crate::failure::Failure;
use rustix::io::Errno;
use undercroft_fs::{Change, InodeNumber, Metadata, SetTime, Timestamp};

const SET_USER: u16 = 0o4000;
const SET_GROUP: u16 = 0o2000;
const GROUP_EXECUTE: u16 = 0o010;

/// Changes of the metadata of a file, as the kernel asks for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

impl Attributes {
    /// Whether nothing is changed but the time of changes.
    fn is_idle(&self) -> bool {
        Self { changed: None, ..*self } == Self::default()
    }

    /// Whether the volume could not hold the times that were set, and the file has others now.
    fn has_times_out_of_range(&self, now: &Metadata) -> bool {
        let modified = matches!(self.modified, Some(SetTime::To(time)) if time != now.modified);
        modified || self.changed.is_some_and(|time| time != now.changed)
    }
}

impl Server {
    pub(crate) fn get_attributes(&self, number: InodeNumber) -> Result<Metadata, Failure> {
        self.nodes.expect(number)?;
        Ok(self.shown(self.fs.nodes().stat(number)?))
    }

    pub(crate) fn set_attributes(
        &self,
        number: InodeNumber,
        set: &Attributes,
        caller: Caller,
    ) -> Result<Metadata, Failure> {
        self.nodes.expect(number)?;
        let mut set = *set;
        if set.is_idle() && set.changed.is_some() {
            // The kernel's write-back says both times. This is a change of the owner to no other, by which a
            // file loses what it loses by any. The kernel has not asked for the right to that.
            let metadata = self.fs.nodes().stat(number)?;
            let is_allowed = caller.uid == 0 || caller.uid == metadata.uid;
            if !is_allowed && loses_set_id(&metadata, caller) {
                return Err(Errno::PERM.into());
            }
            set.uid = Some(metadata.uid);
        }
        let Attributes { mode, uid, gid, size, accessed, modified, changed } = set;
        let change =
            Change { mode, uid, gid, size, accessed, modified, changed, ..Change::default() };
        let says_times_only = (mode, uid, gid, size, accessed) == (None, None, None, None, None);
        if says_times_only && self.nodes.is_nameless(number) {
            // The kernel says what it has shown before it forgets a file. This one ends with that.
            let mut metadata = self.fs.nodes().stat(number)?;
            metadata.changed = changed.unwrap_or(metadata.changed);
            if let Some(SetTime::To(time)) = modified {
                metadata.modified = time;
            }
            return Ok(self.shown(metadata));
        }
        let metadata = if size.is_none() {
            let mode = mode.or(self.mode_of_stranger(number, &set, caller)?);
            self.fs.nodes().set_attributes(number, &Change { mode, ..change })?
        } else {
            let opening = self.nodes.open(&self.fs, number)?;
            self.drop_privileges(&opening.file, |group| caller.writer(group))?;
            opening.file.set_attributes(&change)?
        };
        if set.has_times_out_of_range(&metadata) {
            self.tell_of_times(&metadata);
        }
        Ok(self.shown(metadata))
    }

    /// The mode of a file whose owner or group is set by one who is not of its group: then a setgid bit
    /// goes that would stay, as it is none for programs.
    fn mode_of_stranger(
        &self,
        number: InodeNumber,
        set: &Attributes,
        caller: Caller,
    ) -> Result<Option<u16>, Failure> {
        if set.uid.is_none() && set.gid.is_none() {
            return Ok(None);
        }
        let metadata = self.fs.nodes().stat(number)?;
        let is_lock = metadata.mode & (SET_GROUP | GROUP_EXECUTE) == SET_GROUP;
        if !metadata.is_file() || !is_lock {
            return Ok(None);
        }
        let writer = caller.writer(metadata.gid);
        let is_stranger = !writer.keeps_set_id && !writer.is_in_group;
        Ok(is_stranger.then_some(metadata.mode & !(SET_USER | SET_GROUP)))
    }
}

/// Whether a file loses a set-id bit when this caller changes its owner to no other.
fn loses_set_id(metadata: &Metadata, caller: Caller) -> bool {
    let writer = caller.writer(metadata.gid);
    let is_program = metadata.mode & GROUP_EXECUTE != 0;
    let group = is_program || (!writer.keeps_set_id && !writer.is_in_group);
    metadata.is_file()
        && (metadata.mode & SET_USER != 0 || (metadata.mode & SET_GROUP != 0 && group))
}
