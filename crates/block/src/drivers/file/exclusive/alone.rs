//! Disks that are opened for one holder.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

use super::loops::LoopDevice;
use crate::driver::Holder;

/// Opens a loop device for this process alone; `None` if it may not be opened at all.
pub(super) fn hold(device: &LoopDevice) -> Result<Option<File>, Holder> {
    match open_alone(&device.path, false) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
            Err(Holder::Device(device.path.clone()))
        }
        Err(_) => Ok(None),
    }
}

/// Opens a disk for one holder: a mount, an array, swap, or this.
pub(super) fn open_alone(path: &Path, write: bool) -> io::Result<File> {
    let exclusive = OFlags::EXCL.bits().cast_signed();
    File::options().read(true).write(write).custom_flags(exclusive).open(path)
}
