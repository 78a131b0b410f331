//! A mount that gets other options (`mount -o remount`).
//!
//! The kernel keeps changes away from then on, or lets them through. The server sees that in the list of
//! mounts, whatever program did it, and leaves the volume clean; this waits for it.

use super::Args;
use crate::failure::Usage;
use crate::mounts::{is_own, status_of};
use crate::report::Outcome;
use anyhow::{Context, Result, anyhow, bail};
use std::io::{Error, ErrorKind};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};
use undercroft_fs::AccessTimes;
use undercroft_fuse::options::MountOptions;
use undercroft_fuse::{MountPoint, Settings};

/// How long the server may take to write what is dirty.
const PATIENCE: Duration = Duration::from_secs(60);

/// Time between two questions.
const PAUSE: Duration = Duration::from_millis(5);

pub(super) fn run(args: &Args) -> Result<Outcome> {
    let Some(directory) = args.directory.as_deref().filter(|_| args.exec.is_empty()) else {
        return Err(Usage("remount is for the mount at DIR, and takes no --exec".into()).into());
    };
    let at = directory.display();
    let no_mount = || format!("{at} is not the root of a volume that undercroft has mounted");
    let directory = directory.canonicalize().with_context(no_mount)?;
    let point = MountPoint::at(&directory).with_context(no_mount)?;
    let status = status_of(&directory).with_context(no_mount)?;
    let listed = point.listed().filter(|_| is_own(&point)).with_context(no_mount)?;
    if status.image != args.image.name() {
        bail!("{at} has {} mounted, and not {}", status.image, args.image.name());
    }
    // What the kernel lists goes on, and no name for it means times for all reads.
    let mut options = MountOptions::default();
    (options.access_times, options.sloppy) = (Some(AccessTimes::Always), true);
    for text in std::iter::once(&listed.options).chain(&args.options) {
        options.add(text)?;
    }
    let mut settings = Settings::new(status.image);
    options.apply(&mut settings);
    settings.read_only |= args.read_only;
    let may_change = !status.read_only || status.at_rest;
    if !settings.read_only && !may_change {
        let why = status.failed.unwrap_or_else(|| "it was mounted to be read".into());
        bail!("{at} cannot be changed: {why}. Unmount it, and mount it again");
    }
    point.remount(&settings).map_err(|error| refused(&point, &error))?;
    if may_change {
        wait(&directory, settings.read_only)?;
    }
    Ok(Outcome::Done)
}

fn refused(point: &MountPoint, error: &Error) -> anyhow::Error {
    let at = point.directory().display();
    match error.kind() {
        ErrorKind::ResourceBusy => anyhow!(
            "{at} stays as it is: a file is open for writing, or one without a name is in use; \
             `fuser -vm {at}` lists the programs"
        ),
        ErrorKind::PermissionDenied => anyhow!("cannot remount {at}: only root may"),
        _ => anyhow!("cannot remount {at}: {error}"),
    }
}

/// Waits until the server has left the volume clean, or knows that it is changed again.
fn wait(directory: &Path, at_rest: bool) -> Result<()> {
    let start = Instant::now();
    loop {
        let at = directory.display();
        let status = status_of(directory)
            .with_context(|| format!("{at} was remounted, but its server does not answer"))?;
        if status.at_rest == at_rest {
            return Ok(());
        }
        if let Some(why) = status.failed {
            bail!("{at} is read-only, but its volume is not clean: {why}");
        }
        if start.elapsed() > PATIENCE {
            bail!(
                "{at} was remounted, but process {}, its server, has not followed: is it in another mount \
                 name space, or its device slow? `undercroft status {at}` says more",
                status.pid
            );
        }
        sleep(PAUSE);
    }
}
