//! Directories for volumes. They go when they are dropped, and when a signal ends the process.

use crate::error::LabError;
use nix::sys::signal::{SigSet, Signal, raise};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// Signals that end a process which does nothing about them.
const ENDS: [Signal; 3] = [Signal::SIGHUP, Signal::SIGINT, Signal::SIGTERM];

/// How often the removal is tried: threads and programs may be making files meanwhile.
const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(10);

/// What a signal removes.
static DIRECTORIES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Held over what must not end in the middle.
static LASTING: Mutex<()> = Mutex::new(());

/// A directory for volumes. From the first one on, signals that end the process remove all of them
/// first: those that reach the thread that made it, or threads that it starts later.
#[derive(Debug)]
pub struct Scratch {
    directory: TempDir,
}

impl Scratch {
    /// A new directory in `parent`.
    ///
    /// # Errors
    /// It cannot be made, or signals cannot be waited for.
    pub fn new_in(parent: &Path) -> Result<Self, LabError> {
        watch().map_err(LabError::Signals)?;
        let mut all = lock(&DIRECTORIES);
        let directory = tempfile::tempdir_in(parent)
            .map_err(|source| LabError::File { path: parent.to_owned(), source })?;
        all.push(directory.path().to_owned());
        Ok(Self { directory })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It is on the list until it is gone.
        let mut all = lock(&DIRECTORIES);
        let path = self.directory.path();
        // What is left then is for the directory's own drop.
        let _ = fs::remove_dir_all(path);
        all.retain(|other| other != path);
    }
}

/// As long as the result lives, no signal ends the process.
pub(crate) fn lasting() -> MutexGuard<'static, ()> {
    lock(&LASTING)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A thread that panicked has left nothing half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has a thread wait for the signals that end the process. Programs that it starts get theirs.
fn watch() -> io::Result<()> {
    static STARTED: Mutex<bool> = Mutex::new(false);
    let mut started = lock(&STARTED);
    let ignored = ignored();
    let ends = ENDS.into_iter().filter(|end| ignored >> (*end as u32 - 1) & 1 == 0);
    let ends: SigSet = ends.collect();
    ends.thread_block()?;
    if !*started {
        thread::Builder::new().name("signals".into()).spawn(move || end(&ends))?;
        *started = true;
    }
    Ok(())
}

/// The signals that the process was started to ignore, as nohup does it: bit 0 is signal 1. One that
/// is waited for would come nevertheless.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Waits for a signal, removes what would be left, and ends the process by it.
fn end(ends: &SigSet) {
    let Ok(signal) = ends.wait() else { return };
    // Both for good: nothing is made any more.
    let (_lasting, directories) = (lasting(), lock(&DIRECTORIES));
    for directory in &*directories {
        for _ in 0..ATTEMPTS {
            if fs::remove_dir_all(directory).is_ok() || !directory.exists() {
                break;
            }
            thread::sleep(PAUSE);
        }
    }
    // They fail for wrong arguments only.
    let _ = ends.thread_unblock();
    let _ = raise(signal);
}
