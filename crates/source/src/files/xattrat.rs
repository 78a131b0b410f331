//! The system calls `listxattrat` and `getxattrat` (Linux 6.13), which neither rustix nor the C library
//! has: without them, a name in an open directory costs a walk through /proc, which must be there.
#![allow(unsafe_code, reason = "system calls without a safe wrapper")]

use rustix::fd::{AsFd, AsRawFd};
use rustix::io::{Errno, Result};
use rustix::path::Arg;
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Their numbers, the same on all architectures that number calls alike since Linux 5.1.
const GET: libc::c_long = 464;
const LIST: libc::c_long = 465;
const IS_KNOWN: bool =
    cfg!(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"));

/// Whether this system has refused one of the calls. Relaxed: a late reader only asks once more.
static REFUSED: AtomicBool = AtomicBool::new(false);

/// `struct xattr_args` of `linux/xattr.h`.
#[repr(C)]
struct Arguments {
    value: u64,
    size: u32,
    flags: u32,
}

/// Writes the list of attributes of `name` in `directory`, not following a symbolic link, and returns
/// its length; only the length where `list` is empty. `None` where the system has no such call or
/// does not allow it.
pub(crate) fn list(directory: impl AsFd, name: &[u8], list: &mut [u8]) -> Option<Result<usize>> {
    call(name, |name| {
        // SAFETY: `name` is a string that ends with a zero byte, and outlives the call as `list` does,
        // of which the kernel writes at most the length.
        unsafe {
            libc::syscall(
                LIST,
                directory.as_fd().as_raw_fd(),
                name.as_ptr(),
                libc::AT_SYMLINK_NOFOLLOW,
                list.as_mut_ptr(),
                list.len(),
            )
        }
    })
}

/// Writes the value of one attribute of `name` in `directory`, as [`list`] does, and returns its
/// length.
pub(crate) fn get(
    directory: impl AsFd,
    name: &[u8],
    attribute: &[u8],
    value: &mut [u8],
) -> Option<Result<usize>> {
    let size = u32::try_from(value.len()).unwrap_or(u32::MAX);
    let arguments = Arguments { value: value.as_mut_ptr() as u64, size, flags: 0 };
    call(name, |name| {
        let got = attribute.into_with_c_str(|attribute| {
            // SAFETY: both names are strings that end with a zero byte; they, `arguments` and `value`
            // outlive the call, and of `value` the kernel writes at most `size` bytes.
            Ok(unsafe {
                libc::syscall(
                    GET,
                    directory.as_fd().as_raw_fd(),
                    name.as_ptr(),
                    libc::AT_SYMLINK_NOFOLLOW,
                    attribute.as_ptr(),
                    &raw const arguments,
                    size_of::<Arguments>(),
                )
            })
        });
        // A name that the kernel has listed has no zero byte in it.
        got.unwrap_or(-1)
    })
}

/// Makes a call with `name`, unless the system is known to refuse it.
fn call(name: &[u8], make: impl FnOnce(&CStr) -> libc::c_long) -> Option<Result<usize>> {
    if !IS_KNOWN || REFUSED.load(Ordering::Relaxed) {
        return None;
    }
    let result = name.into_with_c_str(|name| {
        usize::try_from(make(name)).map_err(|_| {
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
        let answers = [&b"file"[..], b"link", b"none"].map(|name| list(&open, name, &mut []));
        if answers.iter().any(Option::is_some) {
            let with_label = rustix::fs::llistxattr_query(directory.path().join("link")).unwrap();
            let file = rustix::fs::llistxattr_query(&path).unwrap();
            assert_eq!(answers, [Some(Ok(file)), Some(Ok(with_label)), Some(Err(Errno::NOENT))]);
            assert!(file >= b"user.name\0".len());
            let mut value = [0; 16];
            assert_eq!(get(&open, b"file", b"user.name", &mut value), Some(Ok(5)));
            assert_eq!(&value[..5], b"value");
            let missing = get(&open, b"file", b"user.other", &mut value);
            assert_eq!(missing, Some(Err(Errno::NODATA)));
        }
    }
}
