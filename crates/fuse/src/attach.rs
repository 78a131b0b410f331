//! A FUSE file system attached to a directory.
//!
//! The library of the protocol could do it, but it unmounts by path when it ends: whatever is there.

use crate::point::MountPoint;
use crate::settings::Settings;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount, mount_remount};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{getgid, getuid};
use std::ffi::CString;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use undercroft_fs::AccessTimes;

/// Options that are one bit, with the names that `fusermount3` has for them.
fn flags(settings: &Settings) -> [(bool, MountFlags, &'static str); 6] {
    let is_untimed = settings.access_times == AccessTimes::Never;
    [
        (settings.read_only, MountFlags::RDONLY, "ro"),
        (!settings.devices, MountFlags::NODEV, "nodev"),
        (!settings.set_id, MountFlags::NOSUID, "nosuid"),
        (!settings.execute, MountFlags::NOEXEC, "noexec"),
        (is_untimed, MountFlags::NOATIME, "noatime"),
        (settings.synchronous, MountFlags::SYNCHRONOUS, "sync"),
    ]
}

fn bits(settings: &Settings) -> MountFlags {
    let set = flags(settings).into_iter().filter(|(is_set, ..)| *is_set);
    // A remount without any of the three leaves what there is.
    let times = match settings.access_times {
        AccessTimes::Never => MountFlags::NOATIME,
        AccessTimes::Relative => MountFlags::RELATIME,
        AccessTimes::Always => MountFlags::STRICTATIME,
    };
    set.fold(times, |flags, (_, flag, _)| flags | flag)
}

/// Options for the kernel's FUSE. The kind that the list of mounts shows is made of the subtype.
fn words(settings: &Settings) -> Vec<&'static str> {
    let mut words = vec!["subtype=undercroft"];
    if !settings.fake_root {
        words.push("default_permissions");
    }
    if settings.allow_other {
        words.push("allow_other");
    }
    words
}

/// Attaches a file system that waits for its server: the mount, and the connection to the kernel.
pub(crate) fn attach(at: &Path, settings: &Settings) -> io::Result<(MountPoint, OwnedFd)> {
    let connection = match attach_self(at, settings) {
        Err(Errno::PERM) => attach_by_helper(at, settings)?,
        attached => attached?,
    };
    Ok((MountPoint::at(at)?, connection))
}

fn attach_self(at: &Path, settings: &Settings) -> Result<OwnedFd, Errno> {
    let mode = at.metadata().map_err(|error| errno(&error))?.mode();
    let connection = open("/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let mut data = format!(
        "fd={},rootmode={mode:o},user_id={},group_id={}",
        connection.as_raw_fd(),
        getuid().as_raw(),
        getgid().as_raw()
    );
    for word in words(settings) {
        data.push(',');
        data.push_str(word);
    }
    let data = CString::new(data).map_err(|_| Errno::INVAL)?;
    mount(settings.name.as_str(), at, "fuse", bits(settings), data.as_c_str())?;
    Ok(connection)
}

impl MountPoint {
    /// Gives it the options of `settings` that the kernel alone sees to: whether it is read-only, has
    /// devices and programs, and the like. Before it becomes read-only the kernel sends what it held back.
    ///
    /// # Errors
    /// The caller may not; a file is open for writing.
    pub fn remount(&self, settings: &Settings) -> io::Result<()> {
        Ok(mount_remount(self.directory(), bits(settings), c"")?)
    }
}

fn errno(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)
}

/// Lets the program with the rights for it mount: users may not do it themselves. It hands the
/// connection back through its standard input.
fn attach_by_helper(at: &Path, settings: &Settings) -> io::Result<OwnedFd> {
    let (ours, its) = UnixStream::pair()?;
    // Its options are a list with commas.
    let mut options = format!("fsname={}", settings.name.replace(',', ";"));
    let set = flags(settings).into_iter().filter(|(is_set, ..)| *is_set);
    for word in words(settings).into_iter().chain(set.map(|(.., name)| name)) {
        options.push(',');
        options.push_str(word);
    }
    let mut helper = Command::new("fusermount3");
    helper.arg("-o").arg(options).arg("--").arg(at).env("_FUSE_COMMFD", "0");
    helper.stdin(Stdio::from(OwnedFd::from(its))).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = helper.spawn()?;
    // It has the only other end.
    drop(helper);
    let received = receive(&ours);
    let said = child.wait_with_output()?;
    match received? {
        Some(connection) if said.status.success() => Ok(connection),
        _ => Err(io::Error::other(String::from_utf8_lossy(&said.stderr).trim().to_owned())),
    }
}

fn receive(socket: &UnixStream) -> io::Result<Option<OwnedFd>> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut messages = RecvAncillaryBuffer::new(&mut space);
    let mut pieces = [IoSliceMut::new(&mut byte)];
    recvmsg(socket, &mut pieces, &mut messages, RecvFlags::CMSG_CLOEXEC)?;
    let descriptors = messages.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    Ok(descriptors.flatten().next())
}
