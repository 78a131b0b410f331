//! `undercroft repair`.

use crate::failure::Usage;
use crate::image::{self, ImageArgs};
use crate::report::{self, Outcome};
use crate::text;
use anyhow::{Context, Result, bail};
use clap::ValueHint;
use serde::Serialize;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use undercroft_block::{BlockDevice, FileDevice};
use undercroft_repair::{Plan, UndoFile, UndoState};

/// Exit statuses of fsck(8).
pub(super) const CORRECTED: u8 = 1;
pub(super) const UNCORRECTED: u8 = 4;

/// Make a damaged volume sound again, in place, with its names.
///
/// Everything is worked out in memory first, with the journal replayed: superblock and headers from their copies
/// and from what files claim, inodes field by field, lost maps from reverse mappings, directories from their
/// blocks and from what their files say of themselves. What nothing leads to gets its name back, or goes to
/// lost+found. The result is checked as `check` does it; if a fault is left, nothing is written.
///
/// All changes reach the volume in one transaction of its journal: a power cut leaves it as it was, or repaired.
/// What the changed blocks held before is kept in a file beside the image, IMAGE.undo, unless --no-undo is given;
/// for a block device, name one with --undo. `repair --undo-with FILE IMAGE` takes the repair back. Changes that
/// do not fit the journal need that file: if such a repair is cut, the next one takes it back first.
///
/// A disk that fails is to be copied first: repair the copy. Before a volume that was not mounted cleanly is
/// repaired, `replay` may be all that it needs. `salvage` gets files out of what cannot be repaired.
///
/// Exit status, as of fsck(8): 0 no faults; 1 faults were repaired; 4 there are faults (with --dry-run);
/// 8 it failed, or the faults cannot be repaired, and nothing was changed; 16 wrong usage.
#[derive(clap::Args)]
#[command(mut_arg("no_replay", image::hidden), after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) image: ImageArgs,

    /// Print what would be done and what is lost by it, and write nothing.
    #[arg(long, short = 'n', conflicts_with_all = ["undo", "undo_with", "to"])]
    dry_run: bool,

    /// Keep what the changed blocks held in FILE, which must not exist.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "no_undo")]
    undo: Option<PathBuf>,

    /// Keep nothing of what the changed blocks held.
    #[arg(long)]
    no_undo: bool,

    /// Take a repair back: write what the undo file FILE holds.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["undo", "to"])]
    undo_with: Option<PathBuf>,

    /// Leave the image alone, and make the repaired volume the file NEW, sparse.
    #[arg(long, value_name = "NEW", value_hint = ValueHint::FilePath, conflicts_with_all = ["undo", "no_undo"])]
    to: Option<PathBuf>,

    /// List every fault, and everything that is done; else the first of each kind.
    #[arg(long, short)]
    verbose: bool,

    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  undercroft repair --dry-run disk.img              what is wrong, and what would be done
  undercroft repair disk.img                        do it; disk.img.undo has the old blocks
  undercroft repair --undo-with disk.img.undo disk.img
  undercroft repair --to repaired.img disk.img      leave disk.img alone
  undercroft repair --undo /root/sdb1.undo /dev/sdb1";

/// The result, as JSON.
#[derive(Serialize)]
struct Report<'p> {
    sound: bool,
    written: bool,
    faults: &'p [String],
    actions: Vec<ActionReport<'p>>,
    blocks: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    undo: Option<String>,
}

/// One thing that is done.
#[derive(Serialize)]
struct ActionReport<'p> {
    place: String,
    what: &'p str,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<&'p str>,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    if let Some(file) = &args.undo_with {
        return take_back(args, file, out);
    }
    if args.dry_run || args.to.is_some() {
        let plan = find(args, args.image.device()?)?;
        return match &args.to {
            Some(to) => copy(args, &plan, to, out),
            None => tell(args, &plan, (false, None), out),
        };
    }
    let device = args.image.writable_device()?;
    let undo = undo_file(args)?;
    let undo = match undo {
        Some(path) => finish_cut(args, &device, &path)?,
        None => None,
    };
    let plan = find(args, device)?;
    if plan.is_sound() {
        return tell(args, &plan, (false, None), out);
    }
    plan.commit(undo.as_deref()).map_err(|error| args.image.explain(error.into()))?;
    tell(args, &plan, (true, undo.as_deref()), out)
}

/// Repairs a volume if that loses nothing and is one transaction of its journal; whether it did.
pub(super) fn without_loss(image: &ImageArgs, json: bool, out: &mut dyn Write) -> Result<bool> {
    let plan = match Plan::find(image.writable_device()?) {
        Ok(plan) => plan,
        Err(error) => {
            report::note(format_args!("{}: cannot be repaired: {error}", image.name()));
            return Ok(false);
        }
    };
    let losses = plan.actions.iter().filter(|action| action.loss.is_some()).count();
    if losses > 0 || !plan.fits_journal() {
        report::note(format_args!(
            "`undercroft repair {}` repairs it, with {losses} losses; --dry-run shows them",
            image.name()
        ));
        return Ok(false);
    }
    plan.commit(None).map_err(|error| image.explain(error.into()))?;
    if json {
        report::json_line(out, &serde_json::json!({ "repaired": plan.actions.len() }))?;
    } else {
        let actions: Vec<String> = plan.actions.iter().map(line).collect();
        list(out, "repaired, and nothing is lost", &actions, false)?;
    }
    Ok(true)
}

fn find(args: &Args, device: Arc<dyn BlockDevice>) -> Result<Plan> {
    let plan = Plan::find(device);
    plan.map_err(|error| anyhow::Error::from(error).context(args.image.name()))
}

/// The undo file that is asked for, or is usual.
fn undo_file(args: &Args) -> Result<Option<PathBuf>> {
    if args.no_undo {
        return Ok(None);
    }
    if let Some(path) = &args.undo {
        return Ok(Some(path.clone()));
    }
    let Some(path) = args.image.path() else { return Ok(None) };
    let is_file = path.metadata().is_ok_and(|metadata| metadata.is_file());
    let mut name = path.as_os_str().to_owned();
    name.push(".undo");
    Ok(Some(PathBuf::from(name)).filter(|_| is_file))
}

/// Takes back a repair that was cut, of which an undo file tells; returns a name that is free.
fn finish_cut(args: &Args, device: &Arc<dyn BlockDevice>, path: &Path) -> Result<Option<PathBuf>> {
    for number in 1_u32.. {
        let path = match number {
            1 => path.to_owned(),
            _ => {
                let mut name = path.as_os_str().to_owned();
                name.push(format!(".{number}"));
                PathBuf::from(name)
            }
        };
        if !path.exists() {
            return Ok(Some(path));
        }
        match UndoFile::open(&path) {
            Ok(file) if file.state() == UndoState::UnderWay => {
                file.take_back(device)?;
                report::note(format_args!(
                    "a repair of {} was cut: it was taken back with {}",
                    args.image.name(),
                    path.display()
                ));
                std::fs::remove_file(&path).with_context(|| path.display().to_string())?;
                return Ok(Some(path));
            }
            // Not whole: nothing was changed yet when it was written.
            Err(undercroft_repair::RepairError::Undo { .. }) | Ok(_) if args.undo.is_none() => {}
            Ok(_) => bail!(Usage(format!("{} exists; name another file", path.display()))),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

fn take_back(args: &Args, file: &Path, out: &mut dyn Write) -> Result<Outcome> {
    let undo = UndoFile::open(file)?;
    let bytes = undo.take_back(&args.image.writable_device()?)?;
    if args.json {
        report::json_line(out, &serde_json::json!({ "taken_back_bytes": bytes }))?;
    } else {
        writeln!(out, "the repair is taken back: {bytes} bytes are as they were")?;
    }
    Ok(Outcome::Done)
}

/// Makes a sparse copy, and repairs that.
fn copy(args: &Args, plan: &Plan, to: &Path, out: &mut dyn Write) -> Result<Outcome> {
    let from = args.image.device()?;
    let name = || to.display().to_string();
    let file = File::options().write(true).create_new(true).open(to).with_context(name)?;
    file.set_len(from.capacity().0 * 512).with_context(name)?;
    drop(file);
    let target: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(to, false)?);
    let done = copy_data(&from, &target).and_then(|()| Ok(plan.write_to(&target)?));
    if let Err(error) = done {
        let _ = std::fs::remove_file(to);
        return Err(error.context(name()));
    }
    tell(args, plan, (true, None), out)
}

/// Bytes that are copied at once.
const PIECE: u64 = 1 << 20;

fn copy_data(from: &Arc<dyn BlockDevice>, to: &Arc<dyn BlockDevice>) -> Result<()> {
    use undercroft_block::{Sector, is_zero, read_exact_at, write_all_at};
    let (end, step) = (from.capacity().0, PIECE / 512);
    let mut bytes = vec![0; PIECE as usize];
    for at in (0..end).step_by(step as usize) {
        let len = (end - at).min(step) as usize * 512;
        read_exact_at(from.as_ref(), Sector(at), &mut bytes[..len])?;
        if !is_zero(&bytes[..len]) {
            write_all_at(to.as_ref(), Sector(at), &bytes[..len])?;
        }
    }
    Ok(())
}

fn tell(
    args: &Args,
    plan: &Plan,
    (written, undo): (bool, Option<&Path>),
    out: &mut dyn Write,
) -> Result<Outcome> {
    let outcome = match (plan.is_sound(), written) {
        (true, _) => Outcome::Done,
        (false, true) => Outcome::Status(CORRECTED),
        (false, false) => Outcome::Status(UNCORRECTED),
    };
    if args.json {
        let actions = plan.actions.iter().map(|action| ActionReport {
            place: action.place.to_string(),
            what: &action.what,
            lost: action.loss.as_deref(),
        });
        let report = Report {
            sound: plan.is_sound(),
            written,
            faults: &plan.faults,
            actions: actions.collect(),
            blocks: plan.blocks(),
            undo: undo.map(|path| path.display().to_string()),
        };
        report::json_line(out, &report)?;
        return Ok(outcome);
    }
    if plan.is_sound() {
        writeln!(out, "no faults: nothing to repair")?;
        return Ok(outcome);
    }
    list(out, "faults", &plan.faults, args.verbose)?;
    if plan.fault_count > plan.faults.len() as u64 {
        writeln!(out, "  of {} faults these are the first", plan.fault_count)?;
    }
    let actions: Vec<String> = plan.actions.iter().map(line).collect();
    list(out, if written { "done" } else { "to be done" }, &actions, args.verbose)?;
    let losses = plan.actions.iter().filter(|action| action.loss.is_some()).count();
    match (losses, written) {
        (0, _) => writeln!(out, "nothing is lost")?,
        (_, true) => writeln!(out, "{losses} losses, as told above")?,
        (_, false) => writeln!(out, "{losses} losses, as told above; nothing was written")?,
    }
    if let Some(undo) = undo {
        let (undo, image) = (undo.display(), args.image.name());
        writeln!(out, "`undercroft repair --undo-with {undo} {image}` takes it back")?;
    }
    Ok(outcome)
}

fn line(action: &undercroft_repair::Action) -> String {
    match &action.loss {
        Some(loss) => format!("{}: {}; lost: {loss}", action.place, action.what),
        None => format!("{}: {}", action.place, action.what),
    }
}

/// Lines that are shown, if not all are.
const SHOWN: usize = 20;

/// Prints lines, of many the first.
fn list(out: &mut dyn Write, title: &str, lines: &[String], all: bool) -> Result<()> {
    writeln!(out, "{title}: {}", lines.len())?;
    let shown = if all { lines.len() } else { lines.len().min(SHOWN) };
    for line in &lines[..shown] {
        writeln!(out, "  {}", text::visible(line))?;
    }
    if shown < lines.len() {
        writeln!(out, "  and {} more; -v lists all", lines.len() - shown)?;
    }
    Ok(())
}
