//! `undercroft mount`.

mod background;
mod capabilities;
mod confine;
mod log;
mod notify;
mod one_cpu;
mod private_place;
mod program;
mod remount;
mod serve;
mod target;

use crate::failure::Usage;
use crate::image::{ImageArgs, MountWish, Part, PartitionChoice};
use crate::mounts::status_of;
use crate::remedy;
use crate::report::{self, Outcome};
use crate::value::{self, Stretch};
use anyhow::{Context, Result};
use clap::ValueHint;
use std::ffi::OsString;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;
use undercroft_fs::OpenOptions;
use undercroft_fuse::Settings;
use undercroft_fuse::options::MountOptions;

/// Mount a volume: every program can use it, and the kernel's XFS is not needed.
///
/// A volume that was not unmounted is replayed first; with `-o ro` in memory, and the image stays as
/// it is. The command returns when the mount answers, and a server goes on in the background. It
/// ends when the volume is unmounted: `undercroft unmount DIR` returns when the journal is clean and
/// the image free, after `umount DIR` or `fusermount3 -u DIR` that takes a moment longer. SIGTERM
/// unmounts, too. After a crash the next mount replays.
///
/// Root mounts by itself, and others have access as permissions say (-o noallow_other: only root).
/// Other users need `fusermount3` (package fuse3), or a user namespace: `unshare -Urm`. /dev/fuse
/// must be there in any case.
///
/// Options of -o:
///   ro, rw                          read only, or change it (default)
///   noatime, relatime, strictatime  which reads set times of access. Without any of them it is as with relatime,
///                                   but those that the kernel's cache answers set none, and opening is faster
///   nodev, nosuid (default), noexec, and dev, suid, exec
///   allow_other, noallow_other      whether other users have access (default: if root mounts)
///   uid=N, gid=N                    show all files as belonging to N; with ro
///   discard                         what becomes free is given back to the file or the disk, seconds later;
///                                   `fstrim DIR` gives all free space back
///   fakeroot                        who mounts is root in the volume: nothing is refused, and what is
///                                   made belongs to root; without access for other users
///   norecovery                      leave the journal alone, as --no-replay
///   stale                           with ro: although the image is being changed by a mount or another
///                                   program; what is read can be old, or not fit together
///   partition=N|NAME, lv=GROUP/VOLUME, key-file=FILE
///                                   as the options of these names
///   offset=BYTES, sizelimit=BYTES   as --offset; the words are those of mount(8)
///   commit=SECONDS                  make everything durable that often (default 5)
///   writethrough                    no data waits in the kernel: a full volume is seen by the write
///                                   itself; otherwise by fsync or close. Slower
///   sync                            every write is durable when it returns, and every change of a name
///   dirsync                         every change of a name is
///   remount                         give the mount at DIR other options: ro, which leaves the volume clean,
///                                   rw, and those of the kernel; the others stay as they were
///   nofail                          an image that is not there is no failure
/// Those of the kernel's XFS that mean nothing here (nouuid, inode64, logbsize=...) are taken with a note.
/// Under the names that mount(8) runs (below) dev and suid are the default for root, as they are there.
///
/// In /etc/fstab, with a link of the name mount.fuse.undercroft or mount.undercroft in /sbin:
///   /srv/disk.img  /mnt/disk  fuse.undercroft  rw,nofail  0 0
///
/// Examples:
///   undercroft mount root.img /mnt/xfs && cp motd /mnt/xfs && undercroft unmount /mnt/xfs
///   undercroft mount -o ro --partition 2 disk.img --exec ls -l etc
///   undercroft mount root.img --exec sh -c 'mkdir srv && chmod 700 srv'
///   unshare -Urm undercroft mount root.img --exec ls
#[derive(clap::Args)]
#[command(verbatim_doc_comment, override_usage = USAGE)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) image: ImageArgs,

    /// Directory to mount at, or /dev/fd/N: descriptor N is a mount that waits for its server.
    #[arg(value_hint = ValueHint::DirPath, required_unless_present = "exec")]
    directory: Option<PathBuf>,

    /// Mount options, separated by commas.
    #[arg(short, value_name = "OPTIONS")]
    options: Vec<String>,

    /// Do not change the volume; as -o ro.
    #[arg(short, long)]
    read_only: bool,

    /// Stay, and write the log to standard error. With Type=notify this is what systemd wants.
    #[arg(short, long, conflicts_with = "exec")]
    foreground: bool,

    /// Run this, unmount, and exit as it did. Without DIR the volume is mounted at a private place,
    /// where the program starts; UNDERCROFT_MOUNT names it. Everything behind this belongs to the
    /// program.
    #[arg(long, value_name = "PROGRAM", num_args = 1.., allow_hyphen_values = true)]
    exec: Vec<OsString>,

    /// Bind the program and the server to one processor, where none has to be woken for the other. For
    /// programs that make one call after the other (tar, cp, rsync): half the time. Those that work in
    /// parallel, or compute much, get slower.
    #[arg(long, requires = "exec")]
    one_cpu: bool,

    /// When the program has ended, wait so long for others that keep the volume: a mount name space
    /// that was made meanwhile, programs that were left behind. Then they see errors, and it is free.
    #[arg(long, value_name = "SECONDS", requires = "exec", default_value_t = super::unmount::PATIENCE)]
    timeout: u64,

    /// Memory for metadata; dirty data comes on top, 64 MiB of it at most.
    #[arg(long, value_name = "BYTES", value_parser = value::size, default_value = "256M")]
    memory: u64,

    /// Requests that the device does not answer in this time fail; without this they are waited for.
    /// A write that fails makes the volume read-only.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    device_timeout: Option<u64>,

    /// Threads that answer [default: two for each processor, 4 to 16].
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,

    /// Add the log of a server in the background to this file, instead of the system's log.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "foreground")]
    log: Option<PathBuf>,

    /// Print the state of the mount as JSON when it answers, as `undercroft status --json` does.
    #[arg(long, conflicts_with_all = ["exec", "foreground"])]
    pub(super) json: bool,
}

const USAGE: &str = "undercroft mount [OPTIONS] <IMAGE> [DIR] [--exec <PROGRAM> [ARGUMENT]...]";

/// What to mount, and how.
struct Plan {
    settings: Settings,
    wish: MountWish,
    memory: usize,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    if !args.exec.is_empty() && std::env::args_os().next_back().as_ref() != args.exec.last() {
        let what = "--exec takes all that follows: undercroft mount IMAGE [DIR] --exec PROGRAM ARGUMENT...";
        return Err(Usage(what.into()).into());
    }
    let options = options(args)?;
    if options.remount {
        return remount::run(args);
    }
    if !background::is_server() && !options.without_meaning.is_empty() {
        let names = options.without_meaning.join(",");
        eprintln!("note: mount options that mean nothing here are left out: {names}");
    }
    if options.no_fail && args.image.is_missing() {
        eprintln!("note: there is no {}: nothing is mounted (nofail)", args.image.name());
        return Ok(Outcome::Done);
    }
    let plan = plan(args, &options)?;
    if background::is_server() {
        return serve::in_background(args, &plan);
    }
    if args.one_cpu {
        one_cpu::bind()?;
    }
    let Some(directory) = &args.directory else {
        return program::run(args);
    };
    match args.exec.is_empty() {
        false => program::run(args),
        true if args.foreground => serve::in_foreground(args, &plan, directory),
        true => {
            if let Err(ended) = background::start(&directory.display().to_string(), false)? {
                return Ok(ended);
            }
            if args.json {
                let status = status_of(directory).context("the mount does not say its state")?;
                report::json_line(out, &status)?;
            }
            Ok(Outcome::Done)
        }
    }
}

fn options(args: &Args) -> Result<MountOptions> {
    let mut options = MountOptions::default();
    for text in &args.options {
        options.add(text).map_err(|error| match remedy::of(&error) {
            Some(remedy) => Usage(format!("{error}; {remedy}")),
            None => Usage(error.to_string()),
        })?;
    }
    Ok(options)
}

fn plan(args: &Args, options: &MountOptions) -> Result<Plan> {
    let mut settings = Settings::new(args.image.name());
    // The kernel checks permissions, so others may come, as they do to mounts of the kernel's own.
    settings.allow_other = rustix::process::geteuid().is_root() && !options.fake_root;
    settings.read_only = args.read_only;
    options.apply(&mut settings);
    settings.read_only |= args.read_only;
    if settings.fake_root && settings.allow_other {
        let what = "fakeroot makes root of whoever asks, and does not go with allow_other";
        return Err(Usage(what.into()).into());
    }
    if let Some(threads) = args.threads {
        settings.threads = threads;
    }
    if !settings.read_only && (settings.shown_uid.is_some() || settings.shown_gid.is_some()) {
        let what = "uid= and gid= only show another owner, and go with -o ro";
        return Err(Usage(what.into()).into());
    }
    let mut open =
        if settings.read_only { OpenOptions::read_only() } else { OpenOptions::writable() };
    open.access_times = settings.access_times;
    let bytes = |text: &Option<String>| text.as_deref().map(value::size).transpose().map_err(Usage);
    let (start, bytes) = (bytes(&options.offset)?, bytes(&options.size_limit)?);
    let is_by_hand = start.is_some() || bytes.is_some();
    let stretch = is_by_hand.then(|| Stretch { start: start.unwrap_or_default(), bytes });
    let partition = options.partition.as_deref().map(PartitionChoice::of);
    if let Some(file) = &options.key_file {
        args.image.add_key_file(Path::new(file))?;
    }
    let logical = options.lv.as_deref().map(value::logical_volume).transpose().map_err(Usage)?;
    let part = Part::of(stretch, partition.as_ref(), logical.as_deref());
    // Half of it for buffers; the rest is for the files that the kernel knows, and requests.
    let memory = usize::try_from(args.memory / 2).unwrap_or(usize::MAX);
    let time_limit = args.device_timeout.map(Duration::from_secs);
    let (no_replay, is_stale) = (options.no_replay, options.stale);
    let wish = MountWish { options: open, part, no_replay, is_stale, time_limit };
    Ok(Plan { settings, wish, memory })
}
