//! Privileges that a file gives to those who run it, and that end when others change its content.

use super::File;
use undercroft_xfs::Error;
use undercroft_xfs::ops::{self, MetadataChange};

const SET_USER: u16 = 0o4000;
const SET_GROUP: u16 = 0o2000;
const GROUP_EXECUTE: u16 = 0o010;

/// The attribute with the capabilities of a program.
const CAPABILITY: &[u8] = b"security.capability";

impl File {
    /// Takes the capabilities of a program away, and with `set_id` its setuid bit too, and its
    /// setgid bit if its group may execute it. Linux does this when a file is written to or cut:
    /// the capabilities always go, the bits unless the writer may keep them. Of a file that has none
    /// of these nothing changes.
    ///
    /// # Errors
    /// The flags of the file forbid it; no space; a damaged structure; the device failed; the volume
    /// is read-only.
    pub fn drop_privileges(&self, set_id: bool) -> Result<(), Error> {
        let (volume, now) = (self.file_system().volume(), self.file_system().now());
        let (mode, has_capability) = {
            let state = self.open_file().inode().read();
            let has = state.attr.is_some() && ops::get_xattr(volume, &state, CAPABILITY)?.is_some();
            (state.core.mode & 0o7777, has)
        };
        if has_capability {
            ops::remove_xattr(volume, self.number(), CAPABILITY, now)?;
        }
        let mut bits = SET_USER;
        if mode & GROUP_EXECUTE != 0 {
            bits |= SET_GROUP;
        }
        if !set_id || mode & bits == 0 {
            return Ok(());
        }
        let change = MetadataChange { mode: Some(mode & !bits), ..MetadataChange::default() };
        ops::change_metadata(volume, self.number(), &change, now)
    }
}
