//! `undercroft set`.

use crate::image::{self, ImageArgs};
use crate::report::{self, Outcome};
use crate::text;
use crate::value;
use anyhow::Result;
use serde::Serialize;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use undercroft_xfs::Volume;
use undercroft_xfs::maintain;
use undercroft_xfs::volume::LiveOptions;
use uuid::Uuid;

/// Change the UUID and the label of a volume, by which it is found.
///
/// Linux does not mount two volumes of one UUID at a time, so a copy needs another one. The blocks
/// of the volume go on to carry the UUID that it was made with, which the superblock remembers;
/// Linux knows this since 4.3. A journal that is not empty is replayed first.
///
/// An interruption leaves the old UUID or the new one, and a volume that mounts; the next command that
/// changes the volume, or `undercroft replay`, brings the copies of the superblock in line.
///
/// For example: undercroft set --uuid generate --label copy copy.img
#[derive(clap::Args)]
#[command(mut_arg("no_replay", image::hidden))]
#[group(id = "change", required = true, multiple = true, args = ["uuid", "label"])]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) image: ImageArgs,

    /// The new UUID: `generate` makes a random one, `restore` takes the one that the volume was made
    /// with, `nil` takes it away (Linux mounts no volume without a UUID).
    #[arg(long, value_name = "UUID", value_parser = choice)]
    uuid: Option<Choice>,

    /// The new label, of at most 12 bytes; empty for none.
    #[arg(long, value_name = "NAME", value_parser = value::label())]
    label: Option<OsString>,

    /// Print UUID and label as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

/// A UUID to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Given(Uuid),
    Restore,
}

fn choice(text: &str) -> Result<Choice, String> {
    match text {
        "generate" => Ok(Choice::Given(Uuid::new_v4())),
        "restore" => Ok(Choice::Restore),
        "nil" => Ok(Choice::Given(Uuid::nil())),
        _ => Uuid::try_parse(text).map(Choice::Given).map_err(|_| {
            "write 32 hexadecimal digits, such as c1b9d5a2-f162-11cf-9ece-0020afc76f16, or \
             generate, restore or nil"
                .into()
        }),
    }
}

/// The identity of the volume now.
#[derive(Serialize)]
struct Identity {
    uuid: Uuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    meta_uuid: Option<Uuid>,
    label: text::Name,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let (device, volume) = args.image.open_to_replace()?;
    if let Some(choice) = args.uuid {
        let uuid = match choice {
            Choice::Given(uuid) => uuid,
            Choice::Restore => volume.geometry().meta_uuid,
        };
        maintain::set_uuid(&device, uuid)?;
    }
    if let Some(label) = &args.label {
        let volume = Volume::open_live(Arc::clone(&device), &LiveOptions::default())?;
        maintain::set_label(&volume, label.as_bytes())?;
        volume.close()?;
    }
    let volume = Volume::open(device)?;
    let (uuid, meta_uuid) = (volume.superblock().uuid, volume.geometry().meta_uuid);
    let meta_uuid = (meta_uuid != uuid).then_some(meta_uuid);
    let label = text::Name::new(volume.superblock().label_bytes());
    if args.json {
        report::json_line(out, &Identity { uuid, meta_uuid, label })?;
    } else {
        writeln!(out, "label       {label}")?;
        writeln!(out, "UUID        {uuid}")?;
        if let Some(uuid) = meta_uuid {
            writeln!(out, "            {uuid} in metadata")?;
        }
    }
    Ok(Outcome::Done)
}
