//! `undercroft upgrade`.

use crate::image::{self, ImageArgs};
use crate::report::{self, Outcome};
use crate::{text, value};
use anyhow::Result;
use clap::ValueHint;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;
use undercroft_repair::{UndoFile, Upgrade, Wanted};
use undercroft_xfs::mkfs::{Feature, Preset};

/// Turn features of a volume on, as newer kernels know them, without making it anew.
///
/// Contents of files are neither moved nor written. Parent pointers, reverse mappings, reference counts and trees
/// of free inodes are made from the directories and maps that are there, in free space. The volume is checked
/// first, and one that is damaged is left alone. A journal that is not empty is replayed.
///
/// A power cut leaves the old volume or the new one: what changes at once is one transaction of the journal, which
/// the next mount or `undercroft replay` completes. Parent pointers of many files do not fit it; then name a file
/// with --undo, from which a change that was cut is taken back: `undercroft upgrade --undo-with FILE IMAGE`.
///
/// An older kernel may not mount the volume then, and most features are never turned off again. Volumes of
/// version 4 are not converted: `undercroft copy` or `undercroft build` puts their files on a new one.
#[derive(clap::Args)]
#[command(mut_arg("no_replay", image::hidden), after_help = EXAMPLES)]
#[group(id = "change", required = true, multiple = true, args = ["to", "features", "undo_with"])]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) image: ImageArgs,

    /// Turn on what `mkfs` with this preset turns on; all other features stay as they are.
    #[arg(long, value_name = "PRESET", value_parser = presets())]
    to: Option<Preset>,

    /// Turn single features on and off, such as +rmapbt,-reflink; they go before the preset. The features are
    /// finobt, sparse, rmapbt, reflink, bigtime, inobtcount, nrext64, exchange and parent. bigtime, nrext64 and
    /// parent are never turned off; reflink only if no blocks are shared.
    #[arg(long, value_name = "LIST", value_parser = feature, value_delimiter = ',', allow_hyphen_values = true)]
    features: Vec<(Feature, bool)>,

    /// Print what would change, and write nothing.
    #[arg(long, short = 'n', conflicts_with_all = ["undo", "undo_with"])]
    dry_run: bool,

    /// Keep what the changed blocks held in FILE, which must not exist.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    undo: Option<PathBuf>,

    /// Take a change back: write what the undo file FILE holds.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["to", "features", "undo"])]
    undo_with: Option<PathBuf>,

    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  undercroft upgrade --to lts-6.12 --dry-run disk.img     what would change
  undercroft upgrade --to lts-6.12 disk.img               do it
  undercroft upgrade --features +rmapbt,+reflink disk.img
  undercroft upgrade --to default --undo disk.undo disk.img
  undercroft upgrade --undo-with disk.undo disk.img";

/// The presets, but the one that follows a tree.
fn presets() -> impl TypedValueParser<Value = Preset> {
    let names = value::PRESETS.into_iter().filter(|name| *name != "auto");
    PossibleValuesParser::new(names).try_map(|name| value::preset(&name))
}

/// A feature with the sign in front of it.
fn feature(text: &str) -> Result<(Feature, bool), String> {
    let (name, on) = match text.as_bytes().first() {
        Some(b'+') => (&text[1..], true),
        Some(b'-') => (&text[1..], false),
        _ => return Err("write +NAME to turn a feature on, -NAME to turn it off".into()),
    };
    let feature = name.parse().map_err(|error: undercroft_xfs::mkfs::MkfsError| error.to_string());
    feature.map(|feature| (feature, on))
}

/// The result, as JSON.
#[derive(Serialize)]
struct Report {
    changed: bool,
    on: Vec<String>,
    off: Vec<String>,
    parent_pointers: usize,
    more_blocks: i64,
    free_space_bytes: u64,
    journal_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_journal_size: Option<u64>,
    fits_journal: bool,
    replayed: bool,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    if let Some(file) = &args.undo_with {
        let undo = UndoFile::open(file)?;
        let bytes = undo.take_back(&args.image.writable_device()?)?;
        if args.json {
            report::json_line(out, &serde_json::json!({ "taken_back_bytes": bytes }))?;
        } else {
            writeln!(out, "the upgrade is taken back: {bytes} bytes are as they were")?;
        }
        return Ok(Outcome::Done);
    }
    let wanted = Wanted { preset: args.to, features: args.features.clone() };
    let device = if args.dry_run { args.image.device()? } else { args.image.writable_device()? };
    let upgrade = Upgrade::find(device, &wanted);
    let upgrade = upgrade.map_err(|error| anyhow::Error::from(error).context(args.image.name()))?;
    let is_changed = !args.dry_run && !upgrade.is_done();
    if is_changed {
        upgrade.commit(args.undo.as_deref()).map_err(|error| args.image.explain(error.into()))?;
    }
    tell(args, &upgrade, is_changed, out)
}

fn tell(args: &Args, upgrade: &Upgrade, changed: bool, out: &mut dyn Write) -> Result<Outcome> {
    let named = |wanted: bool| {
        let of = upgrade.changes.iter().filter(move |(_, on)| *on == wanted);
        of.map(|(feature, _)| feature.to_string()).collect::<Vec<_>>()
    };
    let (on, off) = (named(true), named(false));
    let (free_space_bytes, journal_bytes) = upgrade.bytes();
    if args.json {
        let report = Report {
            changed,
            on,
            off,
            parent_pointers: upgrade.parents,
            more_blocks: upgrade.more_blocks,
            free_space_bytes,
            journal_bytes,
            new_journal_size: upgrade.journal(),
            fits_journal: upgrade.fits_journal(),
            replayed: upgrade.is_dirty,
        };
        report::json_line(out, &report)?;
        return Ok(Outcome::Done);
    }
    if upgrade.is_done() {
        writeln!(out, "nothing to change")?;
        return Ok(Outcome::Done);
    }
    let turned = if changed { "turned" } else { "to be turned" };
    for (names, how) in [(on, "on"), (off, "off")] {
        if !names.is_empty() {
            writeln!(out, "{turned} {how}: {}", names.join(", "))?;
        }
    }
    if upgrade.is_dirty {
        writeln!(out, "the journal {} replayed", if changed { "was" } else { "would be" })?;
    }
    if upgrade.parents > 0 {
        writeln!(out, "parent pointers: {}", upgrade.parents)?;
    }
    if let Some(bytes) = upgrade.journal() {
        let moves = if changed { "moved" } else { "moves" };
        writeln!(out, "the journal {moves} into free space, and has {} there", text::bytes(bytes))?;
    }
    let comparison = if upgrade.more_blocks < 0 { "fewer" } else { "more" };
    writeln!(out, "{} blocks {comparison} in use", upgrade.more_blocks.unsigned_abs())?;
    let sizes = [free_space_bytes, journal_bytes].map(text::bytes);
    let [free_space, journal] = &sizes;
    writeln!(out, "{free_space} into free space, {journal} through the journal, no data of files")?;
    if !changed && !upgrade.fits_journal() {
        writeln!(out, "that is more than the journal takes: an undo file is needed (--undo FILE)")?;
    }
    Ok(Outcome::Done)
}
