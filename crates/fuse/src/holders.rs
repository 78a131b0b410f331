//! What keeps a file system mounted when its own mount has gone.
//!
//! A mount name space that was made meanwhile, as each container and many services have one, has copies
//! of all mounts; a mount can be bound to other directories; and programs that had files open when it was
//! detached keep it until they close them.

use crate::mounts::{Listed, listed, listed_by};
use crate::point::{MountPoint, device_of};
use rustix::fs::{CWD, Mode, OFlags, open, syncfs};
use rustix::io::Errno;
use rustix::mount::{FsPickFlags, fsconfig_reconfigure, fsconfig_set_flag, fspick};
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// What keeps a file system mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The first process that has it; `None` of a mount that this process sees.
    process: Option<(u32, String)>,
    /// The directory of another mount; `None` where files are open.
    mount: Option<PathBuf>,
    /// A path that leads there from here.
    way: PathBuf,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.process, &self.mount) {
            (Some((process, name)), Some(at)) => {
                let at = at.display();
                write!(f, "process {process} ({name}), in whose mount name space it is at {at}")
            }
            (Some((process, name)), None) => {
                write!(f, "process {process} ({name}), which has files of it open")
            }
            (None, at) => {
                write!(f, "the mount at {}", at.as_deref().unwrap_or(&self.way).display())
            }
        }
    }
}

impl Holder {
    /// Ends changes by this holder, as far as this process may: what it wrote is sent by the kernel,
    /// and its mount is read-only if it has no file open for change.
    pub fn end_changes(&self, of: &MountPoint) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // To open a pipe or a device is to do more than to look; those are no way there.
        if device_of(&self.way).is_ok_and(|device| device == of.device())
            && self.way.is_dir()
            && let Ok(directory) = open(&self.way, flags, Mode::empty())
        {
            // What was lost is told to its writer.
            let _ = syncfs(directory);
            let _ = make_read_only(&self.way);
        }
    }
}

/// Makes a file system read-only, by a mount that may be one of another name space.
fn make_read_only(way: &Path) -> Result<(), Errno> {
    let context = fspick(CWD, way, FsPickFlags::FSPICK_CLOEXEC)?;
    fsconfig_set_flag(&context, "ro")?;
    fsconfig_reconfigure(&context)
}

impl MountPoint {
    /// What else keeps its file system mounted, as far as this process can see; the mount itself is
    /// not counted.
    #[must_use]
    pub fn holders(&self) -> Vec<Holder> {
        let own = listed().unwrap_or_default();
        let others = own.iter().filter(|listed| self.shares(listed));
        let mut holders: Vec<Holder> = others
            .map(|listed| Holder {
                process: None,
                mount: Some(listed.directory.clone()),
                way: listed.directory.clone(),
            })
            .collect();
        // A mount has one number in all processes of its name space.
        let mut mounts: BTreeMap<u64, ()> = own.iter().map(|listed| (listed.mount, ())).collect();
        for process in processes() {
            let list = listed_by(process).unwrap_or_default();
            let new = list.into_iter().filter(|listed| self.shares(listed));
            for listed in new.filter(|listed| mounts.insert(listed.mount, ()).is_none()) {
                holders.push(in_name_space(process, listed));
            }
            holders.extend(self.open_in(process));
        }
        holders
    }

    /// Whether a mount of the list is another one of the same file system.
    fn shares(&self, listed: &Listed) -> bool {
        listed.device == self.device() && !self.is(listed)
    }

    fn open_in(&self, process: u32) -> Option<Holder> {
        let own = PathBuf::from(format!("/proc/{process}"));
        let files = fs::read_dir(own.join("fd")).into_iter().flatten().flatten();
        let places = ["cwd", "root"].into_iter().map(|name| own.join(name));
        let is_it = |way: &PathBuf| device_of(way).is_ok_and(|device| device == self.device());
        let way = places.chain(files.map(|file| file.path())).find(is_it)?;
        Some(Holder { process: Some((process, name(process))), mount: None, way })
    }
}

fn in_name_space(process: u32, listed: Listed) -> Holder {
    let inside = listed.directory.strip_prefix("/").unwrap_or(&listed.directory);
    let way = PathBuf::from(format!("/proc/{process}/root")).join(inside);
    Holder { process: Some((process, name(process))), mount: Some(listed.directory), way }
}

fn processes() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut all: Vec<u32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    all.sort_unstable();
    all
}

/// The name of a process, without what a terminal would take for orders.
fn name(process: u32) -> String {
    let name = fs::read_to_string(Path::new("/proc").join(process.to_string()).join("comm"));
    name.unwrap_or_default().trim_end().chars().flat_map(char::escape_default).collect()
}
