//! A load of several processes whose every acknowledged sync is known, to be cut off by a crash: the
//! processes keep a log outside of the volume, and what is left must be what the logs allow.
//!
//! The promises are those of the kernel's XFS: fsync of a file makes its data, its length and its
//! names durable, fdatasync data and length, fsync of a directory the names in it; a rename is there
//! or not; data that was cut off does not come back; a sector is of one version.

mod history;
mod noise;
mod operation;
mod sector;
mod verify;
mod worker;

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::{Error, Report};
use verify::Log;

/// The environment variable that makes a process a worker: `worker seed root log`, by new lines.
const VARIABLE: &str = "UNDERCROFT_LOAD";

/// Works as a process of a load when the environment says so; true if it did. The program that a
/// [`Load`] is started with calls this first.
///
/// # Errors
/// The environment or the log is wrong.
pub fn work_if_asked() -> Result<bool, Error> {
    let Some(text) = std::env::var_os(VARIABLE) else { return Ok(false) };
    let text = text.to_string_lossy().into_owned();
    let lines: Vec<&str> = text.lines().collect();
    let number = |index: usize| lines.get(index).and_then(|line| line.parse::<u64>().ok());
    let path = |index: usize| lines.get(index).map(Path::new);
    match (number(0), number(1), path(2), path(3)) {
        (Some(worker), Some(seed), Some(root), Some(log)) => {
            worker::work(root, log, worker, seed).map_err(Error::io("cannot write", log))?;
            Ok(true)
        }
        _ => Err(Error::Missing {
            program: format!("the load of {VARIABLE}={text:?}"),
            remedy: "it is set by `Load::start` alone",
        }),
    }
}

/// Processes at work on a volume.
#[derive(Debug)]
pub struct Load {
    workers: Vec<Child>,
    logs: Logs,
}

/// The logs of a load that has ended.
#[derive(Debug)]
pub struct Logs(Vec<PathBuf>);

/// What a load did, in numbers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Work {
    /// Operations that returned.
    pub operations: u64,
    /// Those among them that were syncs.
    pub syncs: u64,
}

impl Load {
    /// Makes directories below `root`, which are durable before anything else begins, and starts
    /// `count` processes there. `program` makes the command of one: a program that calls
    /// [`work_if_asked`]. The logs are in `logs`.
    ///
    /// # Errors
    /// The volume or the system refuses.
    pub fn start(
        root: &Path,
        logs: &Path,
        count: u64,
        seed: u64,
        program: &dyn Fn() -> Command,
    ) -> Result<Self, Error> {
        let paths = (0..count).map(|worker| logs.join(format!("log-{worker}"))).collect();
        let mut load = Self { workers: Vec::new(), logs: Logs(paths) };
        for worker in 0..count {
            for directory in worker::directories(root, worker) {
                fs::create_dir_all(&directory).map_err(Error::io("cannot make", &directory))?;
            }
            let noise = root.join(format!("w{worker}/noise"));
            fs::create_dir_all(&noise).map_err(Error::io("cannot make", &noise))?;
        }
        for worker in 0..count {
            for directory in worker::directories(root, worker) {
                sync(&directory)?;
            }
        }
        sync(root)?;
        root.parent().map_or(Ok(()), sync)?;
        for (worker, log) in (0..).zip(&load.logs.0) {
            File::create(log).map_err(Error::io("cannot create", log))?;
            let mut text = OsString::from(format!("{worker}\n{}\n", seed.wrapping_add(worker)));
            text.push(root);
            text.push("\n");
            text.push(log);
            let mut command = program();
            command.env(VARIABLE, text).stdin(Stdio::null()).stdout(Stdio::null());
            load.workers.push(command.spawn().map_err(Error::io("cannot start", log))?);
        }
        Ok(load)
    }

    /// Fails when a process has ended by itself: before the crash nothing may fail.
    ///
    /// # Errors
    /// Such a process, with what its log says about the end.
    pub fn alive(&mut self) -> Result<(), Error> {
        for (worker, log) in self.workers.iter_mut().zip(&self.logs.0) {
            let status = worker.try_wait().map_err(Error::io("cannot await", log))?;
            if let Some(status) = status {
                let said = Log::read(log)?.ended.unwrap_or_default();
                return Err(complaint("a worker ended", &status.to_string(), vec![said]));
            }
        }
        Ok(())
    }

    /// Kills all processes in the middle of their work.
    ///
    /// # Errors
    /// The system refuses.
    pub fn stop(mut self) -> Result<Logs, Error> {
        for (worker, log) in self.workers.iter_mut().zip(&self.logs.0) {
            worker.kill().map_err(Error::io("cannot kill the process of", log))?;
        }
        self.join()
    }

    /// Waits for all processes: after a crash each ends by itself.
    ///
    /// # Errors
    /// The system refuses.
    pub fn join(mut self) -> Result<Logs, Error> {
        for (worker, log) in self.workers.iter_mut().zip(&self.logs.0) {
            worker.wait().map_err(Error::io("cannot await", log))?;
        }
        Ok(Logs(std::mem::take(&mut self.logs.0)))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            // One that has ended already is no matter.
            let _ = worker.kill();
            let _ = worker.wait();
        }
    }
}

impl Logs {
    /// Compares what is below `root` now with what the logs allow.
    ///
    /// # Errors
    /// [`Error::Complaint`] with everything that is lost, came back or is torn.
    pub fn verify(&self, root: &Path) -> Result<Work, Error> {
        let mut work = Work::default();
        let mut faults = Vec::new();
        for (worker, path) in (0..).zip(&self.0) {
            let log = Log::read(path)?;
            work.operations += log.operations;
            work.syncs += log.syncs;
            faults.extend(verify::faults(root, worker, &log.history)?);
        }
        if faults.is_empty() {
            return Ok(work);
        }
        Err(complaint("the logs of the load", "faults", faults))
    }
}

fn sync(directory: &Path) -> Result<(), Error> {
    let opened = File::open(directory).map_err(Error::io("cannot open", directory))?;
    opened.sync_all().map_err(Error::io("cannot sync", directory))
}

fn complaint(command: &str, status: &str, complaints: Vec<String>) -> Error {
    Error::Complaint(Report { command: command.to_owned(), status: status.to_owned(), complaints })
}
