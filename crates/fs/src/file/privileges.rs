//! Privileges that a file gives to those who run it, and that end when its content changes.

use super::File;
use undercroft_xfs::Error;
use undercroft_xfs::ops;

const SET_USER: u16 = 0o4000;
const SET_GROUP: u16 = 0o2000;
const GROUP_EXECUTE: u16 = 0o010;

/// The attribute with the capabilities of a program.
const CAPABILITY: &[u8] = b"security.capability";

/// What a program that changes a file may leave to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Writer {
    /// Setuid and setgid bits (`CAP_FSETID`).
    pub keeps_set_id: bool,
    /// It is of the file's group. A setgid bit without the right to execute stays then: it is none
    /// for programs.
    pub is_in_group: bool,
}

impl Writer {
    /// The bits of a mode that its change takes away.
    fn takes(self, mode: u16) -> u16 {
        if self.keeps_set_id {
            return 0;
        }
        let is_for_programs = mode & GROUP_EXECUTE != 0 || !self.is_in_group;
        mode & if is_for_programs { SET_USER | SET_GROUP } else { SET_USER }
    }
}

impl File {
    /// Takes away what the file gives to those who run it, as Linux does when it is written to,
    /// allocated or cut: its capabilities always, its setuid and setgid bits unless the writer keeps
    /// them. `writer` is asked only if there are such bits. Flags of the file do not forbid it,
    /// and its times are left to the change. Returns whether there was something.
    ///
    /// # Errors
    /// No space; a damaged structure; the device failed; the volume is read-only.
    pub fn drop_privileges(&self, writer: impl FnOnce() -> Writer) -> Result<bool, Error> {
        let volume = self.file_system().volume();
        let (mode, has_capability) = {
            let state = self.open_file().inode().read();
            let has = state.attr.is_some() && ops::get_xattr(volume, &state, CAPABILITY)?.is_some();
            (state.core.mode, has)
        };
        let has_bits = mode & (SET_USER | SET_GROUP) != 0;
        let bits = if has_bits { writer().takes(mode) } else { 0 };
        if bits == 0 && !has_capability {
            return Ok(false);
        }
        ops::drop_privileges(volume, self.number(), bits)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setgid_bit_of_no_program_stays_within_the_group() {
        let member = Writer { keeps_set_id: false, is_in_group: true };
        assert_eq!(member.takes(0o6755), 0o6000);
        assert_eq!(member.takes(0o6745), 0o4000);
        assert_eq!(Writer::default().takes(0o6745), 0o6000);
        let master = Writer { keeps_set_id: true, is_in_group: false };
        assert_eq!(master.takes(0o6755), 0);
    }
}
