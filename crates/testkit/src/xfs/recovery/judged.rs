//! One dirty volume, replayed by us and by the kernel.

use std::fmt::{Display, Formatter};
use std::path::Path;
use std::sync::Arc;

use undercroft_block::{BlockDevice, FileDevice};
use undercroft_judges::mount::Access;
use undercroft_judges::tree::{self, Options};
use undercroft_judges::{LoopMount, Xfsprogs, image};
use undercroft_xfs::Volume;
use undercroft_xfs::check::{CheckOptions, Severity, check};
use undercroft_xfs::recovery::RecoveryReport;
use undercroft_xfs::recovery::recover;

/// Why both replays do not agree.
#[derive(Debug)]
pub enum Disagreement {
    /// The kernel does not mount the volume that it left itself. `xfs_repair -n` has nothing
    /// against our replay.
    KernelFails(String),
    /// The defect of our replay.
    OursIsWrong(String),
}

impl From<String> for Disagreement {
    fn from(what: String) -> Self {
        Self::OursIsWrong(what)
    }
}

impl Display for Disagreement {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::KernelFails(why) => write!(f, "the kernel refuses its own volume: {why}"),
            Self::OursIsWrong(what) => f.write_str(what),
        }
    }
}

/// Replays copies of the dirty volume `image` by us, in memory and in place, and by the kernel.
/// Fails unless ours is clean by `xfs_repair -n` and by our check, and both give the same tree.
pub fn judge(image: &Path) -> Result<Option<RecoveryReport>, Disagreement> {
    let text = |error: &dyn Display| error.to_string();
    let (ours, theirs) = (image.with_extension("ours"), image.with_extension("theirs"));
    image::copy(image, &ours).map_err(|error| text(&error))?;
    image::copy(image, &theirs).map_err(|error| text(&error))?;

    // In memory: the device cannot be written to.
    let device: Arc<dyn BlockDevice> =
        Arc::new(FileDevice::open(&ours, true).map_err(|error| text(&error))?);
    let volume = Volume::open(Arc::clone(&device)).map_err(|error| text(&error))?;
    let in_memory = volume.recovery().cloned();
    drop(volume);
    let mut findings = Vec::new();
    let options = CheckOptions::default();
    let report = check(device, &options, &mut |finding| {
        // What the kernel leaves behind after a crash, too, is a warning.
        if finding.severity == Severity::Error {
            findings.push(finding.to_string());
        }
    });
    report.map_err(|error| text(&error))?;
    if !findings.is_empty() {
        return Err(format!("replayed in memory: {findings:#?}").into());
    }

    let device: Arc<dyn BlockDevice> =
        Arc::new(FileDevice::open(&ours, false).map_err(|error| text(&error))?);
    let report = recover(&device, &mut |_| {}).map_err(|error| text(&error))?;
    drop(device);
    if report != in_memory {
        return Err(format!("in place {report:?}, in memory {in_memory:?}").into());
    }
    let newest = Xfsprogs::newest().map_err(|error| text(&error))?;
    if let Err(error) = newest.repair_check(&ours) {
        let complaint = text(&error);
        // A large attribute that was being replaced: the kernel's replay leaves it so, too.
        if !complaint.lines().skip(1).all(|line| line.ends_with("is INCOMPLETE")) {
            return Err(complaint.into());
        }
    }
    let mount = |image: &Path, access| LoopMount::new(image, access, &["noatime"]);
    let kernel = mount(&theirs, Access::ReadWrite);
    let kernel = kernel.map_err(|error| Disagreement::KernelFails(text(&error)))?;
    kernel.unmount().map_err(|error| text(&error))?;
    let kernel = mount(&theirs, Access::ReadOnly).map_err(|error| text(&error))?;
    let replayed = mount(&ours, Access::ReadOnly).map_err(|error| text(&error))?;
    // The work of an intent about attributes stamps its file with the time of the replay.
    let ctime = report.as_ref().is_none_or(|report| report.intents == 0);
    let options = Options { ctime, ..Options::default() };
    let compared = tree::compare(replayed.path(), kernel.path(), &options);
    let compared = compared.map_err(|error| text(&error))?;
    if compared.same() { Ok(report) } else { Err(text(&compared).into()) }
}
