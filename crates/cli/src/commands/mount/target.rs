//! Where a volume is mounted.

use crate::failure::Usage;
use crate::mounts;
use crate::report;
use anyhow::{Context, Result, bail};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::close;
use rustix::fs::statfs;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use std::os::fd::RawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fs, io, thread};
use undercroft_fuse::{InUse, MountPoint, Target};

/// The place of a mount.
pub(super) struct Place {
    /// For the library.
    pub(super) target: Target,
    /// The directory, unless another program has mounted it.
    pub(super) directory: Option<PathBuf>,
}

/// The place that an argument means.
pub(super) fn place(argument: &Path) -> Result<Place> {
    if let Some(number) = argument.to_str().and_then(|path| path.strip_prefix("/dev/fd/")) {
        let number =
            number.parse().map_err(|_| Usage(format!("{}: not a number", argument.display())))?;
        // A copy of the descriptor, by number: opened anew it would be another connection.
        let own: Pid = getpid();
        let descriptor = pidfd_open(own, PidfdFlags::empty())
            .and_then(|own| pidfd_getfd(own, number, PidfdGetfdFlags::empty()))
            .with_context(|| format!("descriptor {number} is not open in this process"))?;
        return Ok(Place { target: Target::Connection(descriptor), directory: None });
    }
    let directory = argument
        .canonicalize()
        .with_context(|| format!("cannot mount at {}", argument.display()))?;
    if directory == Path::new("/") {
        bail!(
            "cannot mount at /: it would not be seen, as all paths begin below what it covers; name \
             another directory"
        );
    }
    make_way(&directory)?;
    if !directory.is_dir() {
        bail!("cannot mount at {}: it is not a directory", directory.display());
    }
    Ok(Place { target: Target::Directory(directory.clone()), directory: Some(directory) })
}

/// Detaches a mount of this command whose server has ended: a crash leaves it behind.
fn make_way(directory: &Path) -> Result<()> {
    // The free space is asked of the server each time; attributes may still be in the kernel's cache.
    if statfs(directory).map(drop) != Err(Errno::NOTCONN) {
        return Ok(());
    }
    let at = directory.display();
    let mount = MountPoint::at(directory).with_context(|| format!("cannot look at {at}"))?;
    if !mounts::is_own(&mount) {
        bail!(
            "cannot mount at {at}: a mount is there whose server has ended; `umount {at}` removes it"
        );
    }
    mount.unmount(InUse::Detach)?;
    report::note(format_args!(
        "the server of an earlier mount at {at} had ended; that mount is removed"
    ));
    Ok(())
}

/// Waits until a mount answers, and lets the kernel read ahead as much as one request takes; returns
/// a note if it may not.
pub(super) fn settle(directory: &Path) -> Result<Option<String>> {
    let device = answer(directory)
        .with_context(|| format!("the mount at {} does not answer", directory.display()))?;
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let setting = format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb");
    if fs::write(&setting, READ_AHEAD_KIB).is_ok() {
        return Ok(None);
    }
    let had = fs::read_to_string(&setting).unwrap_or_default();
    Ok(Some(format!(
        "long reads are bound by a read-ahead of {} KiB; root can raise it: echo {READ_AHEAD_KIB} \
         >{setting}",
        had.trim()
    )))
}

/// Number of the device of a mount, as soon as it answers.
///
/// It is asked by a thread that has no descriptor of this process. Were the process killed meanwhile, a
/// thread with the connection to the kernel would keep it open, and wait for an answer of the others
/// for ever.
fn answer(directory: &Path) -> io::Result<u64> {
    let directory = directory.to_owned();
    let ask = move || {
        // Some containers do not let it.
        if unshare(CloneFlags::CLONE_FILES).is_ok() {
            for number in own_descriptors() {
                // The list itself is closed already.
                let _ = close(number);
            }
        }
        fs::metadata(directory).map(|metadata| metadata.dev())
    };
    let asked = thread::Builder::new().name("mount-settle".into()).spawn(ask)?.join();
    asked.unwrap_or_else(|_| Err(io::Error::other("the thread that asks it has panicked")))
}

/// Numbers of the descriptors of this thread, none where /proc is not mounted.
fn own_descriptors() -> Vec<RawFd> {
    let Ok(entries) = fs::read_dir("/proc/thread-self/fd") else { return Vec::new() };
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    entries.flatten().filter_map(number).collect()
}

/// Read-ahead of the kernel in KiB, as text: the length of one request.
const READ_AHEAD_KIB: &str = "1024";
