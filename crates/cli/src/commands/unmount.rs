//! `undercroft unmount`.

use crate::mounts::{is_own, may_be_own, place_of, status_of};
use crate::report::{self, Outcome};
use anyhow::{Context, Result, anyhow, bail};
use clap::ValueHint;
use rustix::io::Errno;
use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use undercroft_fuse::{EndOfServer, Ended, InUse, MountPoint, UnmountFailure};

/// Unmount a volume; returns when its journal is clean and the image free.
///
/// Containers and services that were started meanwhile have a copy of each mount. After --timeout those
/// that still keep the volume see errors, and it is free. The same counts for other directories that it
/// is bound to, and with --lazy for programs that use it.
///
/// For example: undercroft mount root.img /mnt/xfs && undercroft unmount /mnt/xfs
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// Directory that the volume is mounted at, or its image.
    #[arg(value_name = "DIRECTORY|IMAGE", value_hint = ValueHint::AnyPath)]
    place: PathBuf,

    /// If programs use it: let no new ones in, and wait until those have ended.
    #[arg(short, long)]
    lazy: bool,

    /// Wait so long for others that keep it mounted [default: 10, with --lazy until they end].
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
}

/// How long others may keep a volume that was unmounted, in seconds.
pub(super) const PATIENCE: u64 = 10;

/// How long they may do so without a word.
const SILENCE: Duration = Duration::from_secs(1);

pub(super) fn run(args: &Args, _: &mut dyn Write) -> Result<Outcome> {
    let place = args.place.canonicalize().with_context(|| no_mount(&args.place))?;
    // The server of a mount may have gone: what is at its directory cannot be asked then.
    let directory = place_of(&place).unwrap_or(place);
    let point = MountPoint::at(&directory).with_context(|| no_mount(&args.place))?;
    let Some(unmounting) = Unmounting::of(point)? else { return Ok(Outcome::Done) };
    unmounting.detach(if args.lazy { InUse::Detach } else { InUse::Refuse })?;
    let patience = if args.lazy { args.timeout } else { args.timeout.or(Some(PATIENCE)) };
    unmounting.wait(patience.map(Duration::from_secs))?;
    Ok(Outcome::Done)
}

/// A mount that goes, and the end of its server.
pub(super) struct Unmounting {
    point: MountPoint,
    image: String,
    end: EndOfServer,
    /// Its server sees another mount of the volume.
    is_copy: bool,
}

impl Unmounting {
    /// `None` where the server has gone: then the mount is removed already.
    pub(super) fn of(point: MountPoint) -> Result<Option<Self>> {
        let directory = point.directory();
        let at = directory.display();
        let status = match status_of(directory) {
            Ok(status) if may_be_own(&point) => status,
            Err(Errno::NOTCONN) if is_own(&point) => {
                // The kernel has the mount, but its server has gone.
                point.unmount(InUse::Detach)?;
                report::note(format_args!(
                    "the server of {at} had ended before it was unmounted; the volume is not \
                     clean, and the next mount replays its journal (so does `undercroft replay`)"
                ));
                return Ok(None);
            }
            Ok(_) => bail!(no_mount(directory)),
            Err(error) => return Err(error).with_context(|| no_mount(directory)),
        };
        let end = EndOfServer::of(&status.socket).with_context(|| {
            format!(
                "the server of {at} is not in this network name space: unmount it there, or with \
                 umount"
            )
        })?;
        let is_copy = end.process().is_some_and(|process| {
            !point.is_seen_by(process) && point.place_seen_by(process).is_some()
        });
        Ok(Some(Self { image: status.image, point, end, is_copy }))
    }

    /// Takes the mount away.
    pub(super) fn detach(&self, in_use: InUse) -> Result<(), UnmountFailure> {
        // Others may keep the volume, and be cut off in the end: what was written so far is kept.
        let directory = rustix::fs::open(
            self.point.directory(),
            rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY,
            rustix::fs::Mode::empty(),
        );
        // Whether it can be written is told by the end of the server.
        let _ = directory.and_then(rustix::fs::syncfs);
        self.point.unmount(in_use)
    }

    /// Waits until the volume is clean and the image free. Those that still keep it are cut off when
    /// the time is over.
    pub(super) fn wait(mut self, patience: Option<Duration>) -> Result<()> {
        let at = self.point.directory().display().to_string();
        if self.is_copy
            && let Some(process) = self.end.process()
            && let Some(place) = self.point.place_seen_by(process)
        {
            bail!(
                "{at} is unmounted in this mount name space; {} goes on being mounted at {} in that of \
                 its server, process {process}: unmount it there",
                self.image,
                place.display()
            );
        }
        let silence = patience.map_or(SILENCE, |patience| patience.min(SILENCE));
        if !self.end.has_begun(Some(silence)) {
            let rest = patience.map(|patience| patience.saturating_sub(silence));
            report::note(format_args!(
                "{at} is unmounted, but others keep its volume: {}",
                self.holders()
            ));
            if let Some(rest) = rest.filter(|rest| !rest.is_zero()) {
                report::note(format_args!("they see errors in {} s (--timeout)", rest.as_secs()));
            }
            if !self.end.has_begun(rest) {
                self.cut_off(&at)?;
            }
        }
        match self.end.wait() {
            Ended::Clean => Ok(()),
            Ended::Failed(why) => bail!("{} was unmounted, but is not clean: {why}", self.image),
            Ended::Gone => bail!(
                "the server of {at} ended without a word; if the volume is not clean, the next mount \
                 replays its journal"
            ),
        }
    }

    /// What keeps the volume, in words.
    fn holders(&self) -> String {
        let holders = self.point.holders();
        if holders.is_empty() {
            return "they cannot be seen from here (a process of another container, or a file that is \
                    open there)"
                .into();
        }
        let mut words = String::new();
        for (number, holder) in holders.iter().enumerate() {
            let between = if number == 0 { "" } else { "; " };
            // Writing to a string cannot fail.
            let _ = write!(words, "{between}{holder}");
        }
        words
    }

    fn cut_off(&mut self, at: &str) -> Result<()> {
        for holder in self.point.holders() {
            holder.end_changes(&self.point);
        }
        self.end.ask().map_err(|error| {
            anyhow!(
                "{at} is unmounted, but its server goes on for {}, and cannot be ended from here: \
                 {error}",
                self.holders()
            )
        })?;
        report::note(format_args!("the volume of {at} was taken from those that still had it"));
        Ok(())
    }
}

fn no_mount(directory: &Path) -> String {
    format!("{} is not the root of a volume that undercroft has mounted", directory.display())
}
