//! Load on a mounted volume that ends in the middle: the kernel stops all of it at once, as a loss
//! of power does.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{XattrFlags, ioctl_ficlone, removexattr, setxattr};
use undercroft_judges::random::Random;

/// A time that no load takes.
const LONG: Duration = Duration::from_secs(300);

/// Between two looks at whether it is enough.
const PAUSE: Duration = Duration::from_millis(2);

/// How a load ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The journal is written first.
    Flushed,
    /// It is not: operations under way are lost, or cut off.
    Cut,
}

/// Works on the volume mounted at `root` from four threads until the kernel shuts it down behind so
/// many operations. Files that are deleted while they are open stay so to the end.
pub fn run(root: &Path, operations: u64, seed: u64, end: End) {
    run_until(root, seed, end, |done| done >= operations);
}

/// As [`run`], until `is_enough` says so, which is told the number of operations now and then.
pub fn run_until(root: &Path, seed: u64, end: End, is_enough: impl Fn(u64) -> bool) {
    let open = Mutex::new(Vec::new());
    let done = AtomicU64::new(0);
    let is_down = AtomicBool::new(false);
    thread::scope(|scope| {
        for number in 0..4 {
            let (open, done, is_down) = (&open, &done, &is_down);
            scope.spawn(move || {
                let directory = root.join(format!("{seed}-{number}"));
                let mut worker = Worker::new(directory, seed * 16 + number, open);
                // A worker whose directory was never made does not see the error of a shutdown.
                while !is_down.load(Relaxed)
                    && !matches!(worker.step(), Err(error) if error.raw_os_error() == Some(5))
                {
                    done.fetch_add(1, Relaxed);
                }
            });
        }
        let started = Instant::now();
        let mut came = false;
        while !came && started.elapsed() < LONG {
            thread::sleep(PAUSE);
            came = is_enough(done.load(Relaxed));
        }
        shut_down(root, end);
        is_down.store(true, Relaxed);
        assert!(came, "{} operations within minutes were not enough", done.load(Relaxed));
    });
}

/// Makes the kernel give the volume up, as after a failure of its device.
pub fn shut_down(root: &Path, end: End) {
    let command = if end == End::Flushed { "shutdown -f" } else { "shutdown" };
    let status = Command::new("xfs_io").args(["-x", "-c", command]).arg(root).status();
    assert!(status.expect("xfs_io of the distribution").success());
}

struct Worker<'l> {
    random: Random,
    directory: PathBuf,
    names: Vec<PathBuf>,
    count: u64,
    open: &'l Mutex<Vec<File>>,
}

impl<'l> Worker<'l> {
    fn new(directory: PathBuf, seed: u64, open: &'l Mutex<Vec<File>>) -> Self {
        let _ = fs::create_dir(&directory);
        Self { random: Random::new(seed), directory, names: Vec::new(), count: 0, open }
    }

    fn fresh(&mut self) -> PathBuf {
        self.count += 1;
        let long = "x".repeat([0, 5, 60, 150][self.random.below(4) as usize]);
        self.directory.join(format!("{}{long}", self.count))
    }

    fn pick(&mut self) -> io::Result<(usize, PathBuf)> {
        if self.names.is_empty() {
            self.create()?;
        }
        let index = self.random.below(self.names.len() as u64) as usize;
        Ok((index, self.names[index].clone()))
    }

    fn create(&mut self) -> io::Result<()> {
        let path = self.fresh();
        let len = [0, 10, 4096, 20_000, 100_000][self.random.below(5) as usize];
        fs::write(&path, vec![self.count as u8; len])?;
        self.names.push(path);
        Ok(())
    }

    /// One operation.
    fn step(&mut self) -> io::Result<()> {
        match self.random.below(24) {
            0..=6 => self.create(),
            7 => {
                let path = self.fresh();
                fs::create_dir(&path)?;
                (0..[1, 5, 80][self.random.below(3) as usize])
                    .try_for_each(|n| File::create(path.join(format!("{n}"))).map(drop))
            }
            8..=9 => {
                let path = self.fresh();
                symlink("y".repeat([5, 100, 500, 900][self.random.below(4) as usize]), path)
            }
            10 => {
                let (_, path) = self.pick()?;
                fs::hard_link(path, self.fresh())
            }
            11..=12 => {
                let ((index, path), new) = (self.pick()?, self.fresh());
                fs::rename(path, &new)?;
                self.names[index] = new;
                Ok(())
            }
            13..=15 => {
                let (index, path) = self.pick()?;
                if self.random.one_in(20) {
                    let file = File::open(&path)?;
                    self.open.lock().expect("nobody panics with it").push(file);
                }
                fs::remove_file(path)?;
                self.names.swap_remove(index);
                Ok(())
            }
            16..=17 => {
                let (_, path) = self.pick()?;
                let name = format!("user.a{}", self.random.below(20));
                let len = [3, 50, 300, 2000, 9000][self.random.below(5) as usize];
                let value = vec![self.count as u8; len];
                Ok(setxattr(path, name, &value, XattrFlags::empty())?)
            }
            18 => {
                let (_, path) = self.pick()?;
                let _ = removexattr(path, format!("user.a{}", self.random.below(20)));
                Ok(())
            }
            19 => {
                let (_, path) = self.pick()?;
                let len = [0, 100, 50_000, 300_000][self.random.below(4) as usize];
                OpenOptions::new().write(true).open(path)?.set_len(len)
            }
            20..=21 => self.scatter(),
            22 => {
                let (_, path) = self.pick()?;
                let new = self.fresh();
                // Formats without shared blocks refuse.
                let _ = ioctl_ficlone(File::create(&new)?, File::open(path)?);
                self.names.push(new);
                Ok(())
            }
            _ => {
                let (_, path) = self.pick()?;
                let mode = self.random.below(0o1000) as u32;
                fs::set_permissions(path, fs::Permissions::from_mode(mode))
            }
        }
    }

    /// Writes blocks all over a file, so that its mapping becomes a tree.
    fn scatter(&mut self) -> io::Result<()> {
        let (_, path) = self.pick()?;
        let mut file = OpenOptions::new().write(true).open(path)?;
        for _ in 0..[1, 30][self.random.below(2) as usize] {
            file.seek(SeekFrom::Start(self.random.below(1 << 18) * 8192))?;
            file.write_all(&vec![7; [100, 4096][self.random.below(2) as usize]])?;
        }
        if self.random.one_in(2) { file.sync_all() } else { Ok(()) }
    }
}
