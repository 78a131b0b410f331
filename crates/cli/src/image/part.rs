//! The part of an image that is the volume.

use super::contents;
use super::keys::{HOW, KeyRing};
use crate::failure::Usage;
use crate::stats::IMAGE_HEADING;
use crate::value::{self, Stretch};
use anyhow::{Context, Result, anyhow};
use std::sync::Arc;
use undercroft_block::{BlockDevice, Sector, Window};
use undercroft_container::layers::{
    Choice, Depth, Layers, Node, PartitionChoice, Place, Selected, Unselected,
};

/// The part of an image that is the volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// What the choice means; without one the only volume, or all of the image.
    Found(Choice),
    /// All of the image, or what the choice means, whatever is in it, as a server of devices takes it.
    Exactly(Choice),
    /// A stretch that is said by hand.
    Stretch(Stretch),
}

impl Default for Part {
    fn default() -> Self {
        Self::Found(Choice::default())
    }
}

impl Part {
    /// All of the image.
    pub(crate) fn whole() -> Self {
        Self::Exactly(Choice::default())
    }

    /// Of the values of options, of which the first goes without the others.
    pub(crate) fn of(
        stretch: Option<Stretch>,
        partition: Option<&PartitionChoice>,
        logical: Option<&str>,
    ) -> Self {
        let (partition, logical) = (partition.cloned(), logical.map(str::to_owned));
        stretch.map_or(Self::Found(Choice { partition, logical }), Self::Stretch)
    }

    /// The same, whatever is in it.
    #[cfg(feature = "network")]
    /// The same, whatever is in it.
    #[cfg(feature = "network")]
    pub(crate) fn exactly(self) -> Self {
        match self {
            Self::Found(choice) => Self::Exactly(choice),
            other => other,
        }
    }
}

/// The options that say which part of an image is the volume.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct PartArgs {
    /// The volume starts at this byte of the image (suffixes such as K, M, G).
    ///
    /// With `,size=BYTES` behind that it has so many bytes, such as 1M,size=10G; else all to the end.
    #[arg(long, value_name = "BYTES", value_parser = value::stretch,
        conflicts_with_all = ["partition", "lv"], help_heading = IMAGE_HEADING)]
    offset: Option<Stretch>,

    /// The volume is this partition of a disk image (GPT or MBR), or in it: its number, its name, or the
    /// label of the volume.
    ///
    /// Numbers are those of Linux. Without this, the only XFS volume is taken.
    #[arg(long, value_name = "N|NAME", help_heading = IMAGE_HEADING)]
    partition: Option<PartitionChoice>,

    /// The volume is this logical volume of LVM, or in it, such as vg/root.
    ///
    /// Without this, the only XFS volume is taken. Several physical volumes are named as 'lvm(a.img,b.img)'.
    #[arg(long, value_name = "GROUP/VOLUME", value_parser = value::logical_volume,
        help_heading = IMAGE_HEADING)]
    lv: Option<String>,
}

impl PartArgs {
    /// What they say; `None` if they say nothing.
    pub(crate) fn part(&self) -> Option<Part> {
        let part = Part::of(self.offset, self.partition.as_ref(), self.lv.as_deref());
        (part != Part::default()).then_some(part)
    }
}

/// A device that a part of a disk is.
pub(super) struct Opened {
    pub(super) device: Arc<dyn BlockDevice>,
    /// From the disk to it.
    pub(super) way: Vec<Place>,
    /// What is odd about that.
    pub(super) notes: Vec<String>,
}

/// The device that a part of a disk is.
pub(super) fn open(disk: Arc<dyn BlockDevice>, part: &Part, keys: &KeyRing) -> Result<Opened> {
    let (choice, as_it_is) = match part {
        Part::Stretch(stretch) => {
            let device = by_hand(disk, *stretch)?;
            return Ok(Opened { device, way: Vec::new(), notes: Vec::new() });
        }
        Part::Exactly(choice) if choice.is_empty() && disk.members().is_empty() => {
            return Ok(Opened { device: disk, way: Vec::new(), notes: Vec::new() });
        }
        Part::Exactly(choice) => (choice, true),
        Part::Found(choice) => (choice, false),
    };
    let look = || Layers::look(&disk, choice, Depth::Volumes, &keys.keys());
    let mut layers = look()?;
    let mut selected = layers.select(choice, as_it_is);
    let has_volume = |layers: &Layers, selected: &Result<Selected, Unselected>| {
        selected.as_ref().is_ok_and(|selected| layers.nodes()[selected.node].is_volume())
    };
    if layers.is_locked() && !as_it_is && !has_volume(&layers, &selected) && keys.ask(&layers)? {
        layers = look()?;
        selected = layers.select(choice, as_it_is);
    }
    let selected = selected.map_err(|why| refused(&disk, choice, why, keys))?;
    if selected.node == 0 && !disk.members().is_empty() {
        let why =
            contents::refusal(&disk, keys).unwrap_or_else(|| "there is nothing on them".to_owned());
        return Err(anyhow!(why));
    }
    let way = layers.way(selected.node).into_iter().map(|node: &Node| node.place.clone());
    let way = way.filter(|place| *place != Place::Whole).collect();
    let mut notes = layers.notes().to_vec();
    if layers.is_locked() && selected.node != 0 {
        notes.push(format!("a LUKS container was not looked into; {HOW}"));
    }
    Ok(Opened { device: selected.device, way, notes })
}

fn by_hand(disk: Arc<dyn BlockDevice>, stretch: Stretch) -> Result<Arc<dyn BlockDevice>> {
    let sectors = |what: &str, bytes: u64| {
        let sectors = Sector::from_bytes(bytes);
        sectors.ok_or_else(|| Usage(format!("{what} {bytes} is not a multiple of 512")))
    };
    let Stretch { start: offset, bytes } = stretch;
    let start = sectors("--offset", offset)?;
    let length = bytes.map(|bytes| sectors("--offset: size", bytes)).transpose()?;
    let capacity = disk.capacity();
    let window = match length {
        Some(length) => Window::new(disk, start, length),
        None => Window::from_sector(disk, start),
    };
    let window = window.with_context(|| match bytes {
        Some(bytes) => format!(
            "--offset {offset},size={bytes} ends behind the end of the image, which has {capacity} sectors"
        ),
        None => format!(
            "--offset {offset} is behind the end of the image, which has {capacity} sectors"
        ),
    })?;
    Ok(Arc::new(window))
}

/// Why a choice means no device, with all that there is.
fn refused(
    disk: &Arc<dyn BlockDevice>,
    choice: &Choice,
    why: Unselected,
    keys: &KeyRing,
) -> anyhow::Error {
    let named = named(choice);
    let keys = keys.keys();
    let Ok(layers) = Layers::look(disk, &Choice::default(), Depth::Everything, &keys) else {
        return anyhow!("there is no {named}");
    };
    let only_root = layers.nodes().len() == 1;
    match (why, layers.nodes().first().and_then(|root| root.contents.as_ref())) {
        (Unselected::Fault(fault), _) if layers.is_locked() => anyhow!("{named}: {fault}; {HOW}"),
        (Unselected::Fault(fault), _) => anyhow!("{named}: {fault}"),
        (Unselected::NotThere, Some(found)) if only_root && contents::is_container(found) => {
            anyhow!("it is {found}, which is not read: {}", found.way)
        }
        (Unselected::NotThere, _) if only_root => anyhow!(
            "{} has no partition table (GPT or MBR) and is no physical volume; leave the choice of a \
             part out",
            disk.name()
        ),
        (Unselected::NotThere, _) => {
            anyhow!("there is no {named}: {}", contents::list(&layers))
        }
        (_, _) => anyhow!(
            "there are several volumes in {named}, or several of that name; take a number, or --lv: {}",
            contents::list(&layers)
        ),
    }
}

/// A choice in words.
fn named(choice: &Choice) -> String {
    let partition = choice.partition.as_ref().map(|choice| format!("partition {choice}"));
    let logical = choice.logical.as_ref().map(|name| format!("logical volume {name}"));
    match (logical, partition) {
        (Some(logical), Some(partition)) => format!("{logical} in {partition}"),
        (one, other) => one.or(other).unwrap_or_else(|| "volume".to_owned()),
    }
}
