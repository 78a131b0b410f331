//! File systems whose files have the size that they say.
//!
//! Those of the kernel's own file systems have contents although their size is 0, and of file systems
//! in user space nothing is known: there an empty file has to be read.

use super::handle;
use rustix::fd::OwnedFd;
use rustix::fs::{Stat, fstatfs};

/// Magic numbers of ext2 to ext4, XFS, btrfs, tmpfs, overlayfs, F2FS, bcachefs and ZFS.
const KNOWN: [u32; 8] = [
    0x0000_ef53,
    0x5846_5342,
    0x9123_683e,
    0x0102_1994,
    0x794c_7630,
    0xf2f5_2010,
    0xca45_1a4e,
    0x2fc1_2fc1,
];

/// What is known of the file system that the last file was on.
#[derive(Default)]
pub(crate) struct TrueSizes {
    last: Option<(u64, bool)>,
}

impl TrueSizes {
    /// Whether the size of a file is true. `open` opens it.
    pub(crate) fn are_true<E>(
        &mut self,
        stat: &Stat,
        open: impl FnOnce() -> Result<OwnedFd, E>,
    ) -> Result<bool, E> {
        let device = handle::identity(stat).device;
        if let Some((last, known)) = self.last
            && last == device
        {
            return Ok(known);
        }
        let magic = fstatfs(open()?).map(|status| status.f_type);
        // Numbers of 32 bits in a field of another width.
        let known = magic.is_ok_and(|magic| KNOWN.contains(&(magic as u32)));
        self.last = Some((device, known));
        Ok(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Mode, OFlags, fstat, open};
    use rustix::io::Errno;

    #[test]
    fn each_file_system_is_judged_by_itself() {
        let mut sizes = TrueSizes::default();
        let mut are_true = |path: &str| {
            let opened = || open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
            let stat = fstat(opened().unwrap()).unwrap();
            sizes.are_true::<Errno>(&stat, opened).unwrap()
        };
        let program = std::env::current_exe().unwrap();
        let program = program.to_str().unwrap();
        for _ in 0..2 {
            assert!(are_true(program));
            assert!(!are_true("/proc/version"));
            assert!(!are_true("/proc/uptime"));
        }
    }
}
