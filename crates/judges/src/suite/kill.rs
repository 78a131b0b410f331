//! A server that is killed at random under load: its volume must replay, here and by the kernel, and
//! hold everything that was synced.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use super::ends;
use crate::load::{Load, Logs, Work};
use crate::mount::Access;
use crate::random::Random;
use crate::{Error, LoopMount, ServedMount, Xfsprogs, image, program};

/// Bytes of the volume.
const SIZE: u64 = 1 << 30;
/// Processes of the load.
const PROCESSES: u64 = 8;
/// The longest time from the start of the load to the kill.
const LONGEST: u64 = 1500;
/// A volume is used for so many rounds, each on what the one before left.
const ROUNDS_OF_A_VOLUME: u64 = 20;

/// Volumes, and the programs that work on them.
pub struct Kills<'a> {
    program: &'a Path,
    worker: &'a dyn Fn() -> Command,
    random: Random,
    scratch: TempDir,
}

impl<'a> Kills<'a> {
    /// `program` is the command `undercroft`; `worker` makes the command of a process of the load,
    /// as [`Load::start`] needs it. The rounds follow from `seed`, but for how processes interleave.
    ///
    /// # Errors
    /// There is no room for temporary files.
    pub fn new(
        program: &'a Path,
        worker: &'a dyn Fn() -> Command,
        seed: u64,
    ) -> Result<Self, Error> {
        let scratch = tempfile::tempdir()
            .map_err(Error::io("cannot make a directory in", &std::env::temp_dir()))?;
        Ok(Self { program, worker, random: Random::new(seed), scratch })
    }

    /// Kills `count` servers, one after the other; `see` gets the number of each round and its work.
    ///
    /// # Errors
    /// Something is lost, or a judge finds fault: the volume as it was left is named, and kept.
    pub fn run(mut self, count: u64, mut see: impl FnMut(u64, Work)) -> Result<(), Error> {
        let newest = Xfsprogs::newest()?;
        let image = self.path("image");
        let mut left: Option<Logs> = None;
        for round in 0..count {
            if round % ROUNDS_OF_A_VOLUME == 0 {
                if let Some(logs) = left.take() {
                    self.last_look(&image, round, &logs)?;
                }
                newest.mkfs(&image, SIZE, &[])?;
            }
            let logs = self.round(&image, round, left.take().as_ref());
            let work = logs.and_then(|logs| {
                let work = self.judge(&image, round, &logs)?;
                left = Some(logs);
                Ok(work)
            });
            match work {
                Ok(work) => see(round, work),
                Err(error) => return Err(self.keep(round, &error)),
            }
        }
        left.map_or(Ok(()), |logs| self.last_look(&image, count, &logs))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// Mounts the volume, which the round before left dirty, looks at what was left, and kills the
    /// server in the middle of work.
    fn round(&mut self, image: &Path, round: u64, left: Option<&Logs>) -> Result<Logs, Error> {
        let mut mount = ServedMount::new(self.program, image, &[])?;
        if let Some(logs) = left {
            let before = mount.path().join(format!("round-{}", round - 1));
            logs.verify(&before)?;
            fs::remove_dir_all(&before).map_err(Error::io("cannot remove", &before))?;
        }
        let root = mount.path().join(format!("round-{round}"));
        fs::create_dir(&root).map_err(Error::io("cannot make", &root))?;
        let logs = self.path(&format!("logs-{round}"));
        fs::create_dir(&logs).map_err(Error::io("cannot make", &logs))?;
        let seed = self.random.bits();
        let mut load = Load::start(&root, &logs, PROCESSES, seed, self.worker)?;
        thread::sleep(Duration::from_millis(20 + self.random.below(LONGEST)));
        load.alive()?;
        mount.kill()?;
        load.join()
    }

    /// Has the kernel replay one copy and our command another one.
    fn judge(&self, image: &Path, round: u64, logs: &Logs) -> Result<Work, Error> {
        let newest = Xfsprogs::newest()?;
        let below = format!("round-{round}");
        let kernels = self.path("kernels");
        image::copy(image, &kernels)?;
        let mount = LoopMount::new(&kernels, Access::ReadWrite, &[])?;
        logs.verify(&mount.join(&below))?;
        mount.unmount()?;
        newest.repair_check(&kernels)?;
        let ours = self.path("ours");
        image::copy(image, &ours)?;
        program::run(Command::new(self.program).arg("replay").arg(&ours))?.success()?;
        ends::check(self.program, &ours)?;
        let mount = LoopMount::new(&ours, Access::ReadOnly, &[])?;
        let work = logs.verify(&mount.join(&below))?;
        mount.unmount()?;
        Ok(work)
    }

    /// Mounts what the last round left, and ends in order.
    fn last_look(&self, image: &Path, rounds: u64, logs: &Logs) -> Result<(), Error> {
        let mount = ServedMount::new(self.program, image, &[])?;
        let looked = logs.verify(&mount.path().join(format!("round-{}", rounds - 1)));
        looked.and_then(|_| ends::accept(self.program, image, mount)).map(drop)
    }

    /// Keeps everything of a round that failed, and says where it is.
    fn keep(self, round: u64, error: &Error) -> Error {
        let kept = self.scratch.keep();
        Error::Failed {
            command: format!("round {round} of the kills"),
            status: format!("a fault; images and logs are in {}", kept.display()),
            output: error.to_string(),
        }
    }
}
