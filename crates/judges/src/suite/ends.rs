//! The end of a suite on a mount of ours: our check, the newest `xfs_repair -n` and a kernel mount
//! accept the volume, and the kernel sees the tree that our mount showed.

use std::path::Path;
use std::process::Command;

use crate::mount::Access;
use crate::tree::Listing;
use crate::{Error, LoopMount, Report, ServedMount, Xfsprogs, program};

/// Most differences between the trees that an error carries.
const MOST_LINES: usize = 20;

/// Unmounts `mount`, whose volume is in the file `image`, and has all judges look at it; `program`
/// is the command `undercroft`. Returns the number of entries that the kernel saw.
///
/// # Errors
/// A judge that finds fault, or that cannot be asked.
pub fn accept(program: &Path, image: &Path, mount: ServedMount) -> Result<usize, Error> {
    let shown = Listing::of(&mount.path())?;
    mount.unmount()?;
    check(program, image)?;
    let kernel = LoopMount::new(image, Access::ReadOnly, &[])?;
    let seen = Listing::of(kernel.path())?;
    kernel.unmount()?;
    let mut complaints = shown.differences(&seen);
    if complaints.is_empty() {
        return Ok(seen.len());
    }
    let status = format!("{} differences, ours / the kernel's", complaints.len());
    complaints.truncate(MOST_LINES);
    Err(Error::Complaint(Report { command: "comparison of trees".to_owned(), status, complaints }))
}

/// Has our check and the newest `xfs_repair -n` look at the volume in `image`.
///
/// # Errors
/// A judge that finds fault, or that cannot be asked.
pub fn check(program: &Path, image: &Path) -> Result<(), Error> {
    program::run(Command::new(program).arg("check").arg(image))?.success()?;
    Xfsprogs::newest()?.repair_check(image)
}
