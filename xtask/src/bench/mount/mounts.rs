//! The mounts that are measured: each on a fresh volume in an image of its own.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use rustix::process::{Resource, getrlimit};
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Xfsprogs, cache};

use crate::{shell, system, workspace};

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// One way to have a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(super) enum Peer {
    Ours,
    /// Answers at once; the kernel asks each time.
    Null,
    /// Answers at once; the kernel keeps attributes and names.
    NullCached,
    /// XFS by the kernel on a loop device.
    Kernel,
    /// ext4 by e2fsprogs.
    Fuse2fs,
    /// The example of libfuse, over XFS by the kernel on a loop device.
    Passthrough,
}

impl Peer {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Null => "null",
            Self::NullCached => "null-cached",
            Self::Kernel => "kernel",
            Self::Fuse2fs => "fuse2fs",
            Self::Passthrough => "passthrough",
        }
    }

    /// Whether it keeps what is written.
    pub(super) fn stores(self) -> bool {
        !matches!(self, Self::Null | Self::NullCached)
    }
}

/// A mounted peer; gone when dropped.
pub(super) struct Mounted {
    peer: Peer,
    image: PathBuf,
    directory: PathBuf,
    /// That of the kernel's own, or what lies below the passthrough.
    kernel: Option<LoopMount>,
    server: Option<Child>,
}

impl Mounted {
    /// Makes a volume of so many MiB in `work`, and mounts it.
    pub(super) fn new(peer: Peer, work: &Path, mebibytes: u64) -> Result<Self> {
        let (image, directory) = (work.join("mount.img"), work.join("mount"));
        fs::create_dir_all(&directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
        let mut mounted = Self { peer, image, directory, kernel: None, server: None };
        mounted.format(mebibytes)?;
        mounted.mount()?;
        Ok(mounted)
    }

    pub(super) fn peer(&self) -> Peer {
        self.peer
    }

    /// The root of the mounted volume.
    pub(super) fn path(&self) -> PathBuf {
        match (self.peer, &self.kernel) {
            (Peer::Kernel, Some(mount)) => mount.path().to_owned(),
            _ => self.directory.clone(),
        }
    }

    /// An image whose blocks are there: its host has nothing to allocate any more.
    fn format(&self, mebibytes: u64) -> Result<()> {
        if !self.peer.stores() {
            return Ok(());
        }
        let bytes = mebibytes << 20;
        if self.image.metadata().map_or(0, |found| found.blocks() * 512) < bytes {
            let file = File::create(&self.image)
                .with_context(|| format!("cannot create {}", self.image.display()))?;
            let flags = rustix::fs::FallocateFlags::empty();
            rustix::fs::fallocate(&file, flags, 0, bytes).with_context(|| {
                format!("no room for {mebibytes} MiB in {}; see --work", self.image.display())
            })?;
        }
        let mut command = if self.peer == Peer::Fuse2fs {
            let mut command = Command::new("mke2fs");
            command.args(["-q", "-F", "-t", "ext4", "-E", "nodiscard"]);
            command
        } else {
            let mut command = Command::new(Xfsprogs::newest()?.tool("mkfs.xfs")?);
            command.args(["-q", "-f", "-K"]);
            command
        };
        shell::output(command.arg(&self.image)).map(drop)
    }

    /// Mounts it; the volume is there.
    fn mount(&mut self) -> Result<()> {
        if matches!(self.peer, Peer::Kernel | Peer::Passthrough) {
            self.kernel = Some(LoopMount::new(&self.image, Access::ReadWrite, &[])?);
        }
        let mut command = match self.peer {
            Peer::Kernel => return Ok(()),
            Peer::Ours => {
                let mut command = Command::new(workspace::target("release/undercroft"));
                command.args(["mount", "--foreground"]).arg(&self.image).arg(&self.directory);
                command
            }
            Peer::Null | Peer::NullCached => {
                let mut command = Command::new(workspace::target("release/examples/null_mount"));
                command.arg(&self.directory);
                command.args((self.peer == Peer::NullCached).then_some("--cached"));
                command
            }
            Peer::Fuse2fs => {
                let mut command = Command::new("fuse2fs");
                command.arg("-f").arg(&self.image).arg(&self.directory);
                command
            }
            Peer::Passthrough => {
                // It keeps a descriptor for each file that the kernel knows.
                let mut command = Command::new("prlimit");
                command.arg(format!("--nofile={}", descriptors())).arg(passthrough()?);
                let below = self.kernel.as_ref().map(|mount| mount.path().display().to_string());
                let source = format!("source={}", below.unwrap_or_default());
                command.args(["-f", "-o", "cache=always,writeback", "-o", &source]);
                command.arg(&self.directory);
                command
            }
        };
        let outside = fs::metadata(self.directory.join(".."))?.dev();
        let output = Stdio::null();
        let server = command.stdin(Stdio::null()).stdout(output).spawn();
        let server = server.with_context(|| format!("cannot start `{}`", shell::line(&command)))?;
        let server = self.server.insert(server);
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Some(status) = server.try_wait()? {
                bail!("`{}` ended with {status}", shell::line(&command));
            }
            if fs::metadata(&self.directory).is_ok_and(|root| root.dev() != outside) {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(2));
        }
        bail!("`{}` does not answer", shell::line(&command))
    }

    /// Unmounts, and waits for the server, whose image then holds everything.
    pub(super) fn unmount(&mut self) -> Result<()> {
        if let Some(mut server) = self.server.take() {
            let mut command = if self.peer == Peer::Ours {
                let mut command = Command::new(workspace::target("release/undercroft"));
                command.arg("unmount");
                command
            } else {
                Command::new("umount")
            };
            shell::output(command.arg(&self.directory))?;
            server.wait()?;
        }
        self.kernel.take().map_or(Ok(()), |mount| Ok(mount.unmount()?))
    }

    /// Mounts a volume that is not mounted, with nothing of it in memory.
    pub(super) fn mount_cold(&mut self) -> Result<()> {
        rustix::fs::sync();
        fs::write("/proc/sys/vm/drop_caches", "3").context("cannot drop caches")?;
        self.mount()
    }

    /// Mounts it anew, with nothing in memory but the image.
    pub(super) fn mount_again_warm(&mut self) -> Result<()> {
        self.unmount()?;
        self.mount_cold()?;
        let mut image = File::open(&self.image)?;
        std::io::copy(&mut image, &mut std::io::sink())?;
        Ok(())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Only after an error is anything left to do here.
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
            let _ = Command::new("umount").arg("--lazy").arg(&self.directory).status();
        }
    }
}

/// Descriptors that a process may have.
pub(super) fn descriptors() -> u64 {
    // Without a limit the kernel has one, of as many by default.
    getrlimit(Resource::Nofile).maximum.unwrap_or(1 << 20)
}

/// The passthrough example of libfuse: Debian packages its source, which the compiler of the machine
/// builds once.
fn passthrough() -> Result<PathBuf> {
    let program = cache::programs().join("bin/passthrough_ll");
    if program.is_file() {
        return Ok(program);
    }
    let source = Path::new("/usr/share/doc/libfuse3-dev/examples/passthrough_ll.c");
    if !source.is_file() {
        system::install_packages(&["libfuse3-dev"])?;
    }
    let directory = cache::programs().join("bin");
    fs::create_dir_all(&directory)?;
    let flags = shell::output(Command::new("pkg-config").args(["--cflags", "--libs", "fuse3"]))?;
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-w", "-o"]).arg(&program).arg(source);
    shell::output(compiler.args(flags.split_whitespace()))?;
    Ok(program)
}
