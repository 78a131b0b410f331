//! The system call `listxattrat` (Linux 6.13), which neither rustix nor the C library has: without
//! it, a name in an open directory costs a walk through /proc.
#![allow(unsafe_code, reason = "a system call without a safe wrapper")]

use rustix::fd::{AsFd, AsRawFd};
use rustix::io::{Errno, Result};
use rustix::path::Arg;
use std::sync::atomic::{AtomicBool, Ordering};

/// Its number, the same on all architectures that number calls alike since Linux 5.1.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
const NUMBER: Option<libc::c_long> = Some(465);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
const NUMBER: Option<libc::c_long> = None;

/// Whether this system has refused the call. Relaxed: a late reader only asks once more.
static REFUSED: AtomicBool = AtomicBool::new(false);

/// Bytes of the list of attributes of `name` in `directory`, not following a symbolic link; `None`
/// where the system has no such call or does not allow it.
pub(super) fn listed_bytes(directory: impl AsFd, name: &[u8]) -> Option<Result<usize>> {
    let number = NUMBER.filter(|_| !REFUSED.load(Ordering::Relaxed))?;
    let result = name.into_with_c_str(|name| {
        // SAFETY: `name` is a string that ends with a zero byte and outlives the call; the kernel
        // writes nothing when the size of the list is 0.
        let length = unsafe {
            libc::syscall(
                number,
                directory.as_fd().as_raw_fd(),
                name.as_ptr(),
                libc::AT_SYMLINK_NOFOLLOW,
                std::ptr::null_mut::<libc::c_char>(),
                0_usize,
            )
        };
        usize::try_from(length).map_err(|_| {
            let error = std::io::Error::last_os_error();
            Errno::from_io_error(&error).unwrap_or(Errno::IO)
        })
    });
    // Filters of system calls answer in either way to a call that they do not know.
    if matches!(result, Err(Errno::NOSYS | Errno::PERM)) {
        REFUSED.store(true, Ordering::Relaxed);
        return None;
    }
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{XattrFlags, setxattr};
    use std::fs::File;

    #[test]
    fn a_list_is_as_long_as_its_names_and_links_are_not_followed() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = directory.path().join("file");
        File::create(&path).unwrap();
        std::os::unix::fs::symlink("file", directory.path().join("link")).unwrap();
        setxattr(&path, "user.name", b"value", XattrFlags::empty()).unwrap();
        let open = File::open(directory.path()).unwrap();
        // Where the call is missing, all names are without an answer.
        let answers = [&b"file"[..], b"link", b"none"].map(|name| listed_bytes(&open, name));
        if answers.iter().any(Option::is_some) {
            let with_label = rustix::fs::llistxattr_query(directory.path().join("link")).unwrap();
            let file = rustix::fs::llistxattr_query(&path).unwrap();
            assert_eq!(answers, [Some(Ok(file)), Some(Ok(with_label)), Some(Err(Errno::NOENT))]);
            assert!(file >= b"user.name\0".len());
        }
    }
}
