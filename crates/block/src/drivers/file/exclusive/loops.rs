//! Loop devices: disks that are files.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::ioctl;

use super::mounts;

/// What tells files apart: device and inode.
pub(super) type Identity = (u64, u64);

/// A loop device in use.
pub(super) struct LoopDevice {
    pub(super) path: PathBuf,
    pub(super) number: u64,
}

/// The loop devices over a file.
pub(super) fn over(file: Identity) -> Vec<LoopDevice> {
    let Ok(entries) = fs::read_dir("/sys/block") else { return Vec::new() };
    let loops =
        entries.flatten().filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"loop"));
    loops
        .filter_map(|entry| {
            let place = entry.path();
            let path = Path::new("/dev").join(entry.file_name());
            if backing_of(&place, &path)? != file {
                return None;
            }
            let number = mounts::number_of(&place)?;
            Some(LoopDevice { path, number })
        })
        .collect()
}

/// The file below the loop device at `path`, about which the kernel tells at `place`; `None` if it
/// has none.
fn backing_of(place: &Path, path: &Path) -> Option<Identity> {
    let told = backing_path(place)?;
    if let Some(identity) = status(path) {
        return Some(identity);
    }
    // The next best: the path, which may be one of another namespace.
    let metadata = told.metadata().ok()?;
    Some((metadata.dev(), metadata.ino()))
}

fn backing_path(place: &Path) -> Option<PathBuf> {
    let text = fs::read_to_string(place.join("loop/backing_file")).ok()?;
    Some(PathBuf::from(text.trim_end_matches('\n')))
}

/// The file below a loop device or a partition of one, open, and the number of the loop device.
/// `None` if the disk is no such thing, or the file cannot be found.
pub(super) fn backing(number: u64) -> Option<(u64, File)> {
    let mut place = mounts::sysfs(number);
    if place.join("partition").exists() {
        place = place.join("..").canonicalize().ok()?;
    }
    let told = backing_path(&place)?;
    let device = mounts::number_of(&place)?;
    let path = Path::new("/dev").join(place.canonicalize().ok()?.file_name()?);
    let file = File::options()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(told)
        .ok()?;
    let metadata = file.metadata().ok()?;
    let is_same = status(&path).is_none_or(|found| found == (metadata.dev(), metadata.ino()));
    is_same.then_some((device, file))
}

/// `struct loop_info64` as far as it is needed (loop(4)): numbers of the file, then all the rest.
#[repr(C)]
#[derive(Clone, Copy)]
struct LoopInfo {
    device: u64,
    inode: u64,
    rest: [u64; 27],
}

/// `LOOP_GET_STATUS64` of loop(4).
const GET_STATUS: ioctl::Opcode = 0x4c05;

/// What the kernel says is below a loop device; `None` if this process may not ask.
fn status(path: &Path) -> Option<Identity> {
    let file = File::open(path).ok()?;
    // SAFETY: `LOOP_GET_STATUS64` fills a `struct loop_info64`, whose 232 bytes `LoopInfo` has; any
    // bytes are a valid one. Other kinds of files refuse the number.
    #[allow(unsafe_code, reason = "a request of the kernel that no library wraps")]
    let info = unsafe {
        let request = ioctl::Getter::<GET_STATUS, LoopInfo>::new();
        ioctl::ioctl(&file, request)
    };
    info.ok().map(|info| (info.device, info.inode))
}

const _: () = assert!(size_of::<LoopInfo>() == 232);
