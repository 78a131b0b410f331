//! The capabilities on which kernel and server agree (docs/decisions/mount.md#caches).

use fuser::{InitFlags, KernelConfig};
use undercroft_fs::AccessTimes;

/// Bytes of a request.
const REQUEST_BYTES: u32 = 1 << 20;

/// Requests without a waiting program, such as those of write-back, that are sent at a time.
const BACKGROUND: u16 = 64;

/// Capabilities that are asked for where the kernel has them. Not `ASYNC_DIO`: the kernel lets readers in
/// before an asynchronous direct write has ended, and keeps the old pages that they bring
/// (docs/decisions/mount.md#direct-writes).
const WANTED: [InitFlags; 13] = [
    InitFlags::FUSE_ASYNC_READ,
    InitFlags::FUSE_PARALLEL_DIROPS,
    InitFlags::FUSE_DO_READDIRPLUS,
    InitFlags::FUSE_READDIRPLUS_AUTO,
    InitFlags::FUSE_MAX_PAGES,
    InitFlags::FUSE_EXPLICIT_INVAL_DATA,
    InitFlags::FUSE_NO_OPEN_SUPPORT,
    InitFlags::FUSE_NO_OPENDIR_SUPPORT,
    InitFlags::FUSE_POSIX_ACL,
    InitFlags::FUSE_DONT_MASK,
    InitFlags::FUSE_EXPORT_SUPPORT,
    InitFlags::FUSE_HAS_IOCTL_DIR,
    // Otherwise the kernel asks for the capabilities of a file at each write to it, not at the first alone.
    InitFlags::FUSE_HANDLE_KILLPRIV_V2,
];

/// Asks the kernel for those that it has.
pub(super) fn negotiate(
    config: &mut KernelConfig,
    write_back: bool,
    access_times: AccessTimes,
    fake_root: bool,
) {
    let write_back = write_back.then_some(InitFlags::FUSE_WRITEBACK_CACHE);
    // Each reading of a target is to come here, or none but the first needs to.
    let reads_once = access_times != AccessTimes::Always;
    let links = reads_once.then_some(InitFlags::FUSE_CACHE_SYMLINKS);
    // A kernel that knows access lists judges permissions by them.
    let is_wanted = |wanted: &InitFlags| !fake_root || *wanted != InitFlags::FUSE_POSIX_ACL;
    for wanted in WANTED.into_iter().filter(is_wanted).chain(write_back).chain(links) {
        // An old kernel lacks some: it asks more often then.
        let _ = config.add_capabilities(wanted);
    }
    // Both are in the range that the library knows.
    let _ = config.set_max_write(REQUEST_BYTES);
    let _ = config.set_max_background(BACKGROUND);
}
