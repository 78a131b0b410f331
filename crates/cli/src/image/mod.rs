//! The choice of a volume: an image file or block device, whole or a part of it.

#[cfg(feature = "objects")]
mod cache;
pub(crate) mod contents;
mod format;
mod image_name;
mod keys;
mod part;
pub(crate) mod salvaged;

use crate::mounts;
use crate::report;
use crate::stats::{IMAGE_HEADING, StatsArgs};
use crate::text;
use anyhow::{Result, anyhow, bail};
use clap::{Arg, ValueHint};
use std::cell::{OnceCell, RefCell};
use std::error::Error;
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use undercroft_block::stack::{
    Description, DeviceReport, DiskFormat, LeafDescription, MirrorEvent, StackError,
};
use undercroft_block::{BlockDevice, Engine, Unchanging, mounted_at};
use undercroft_fs::{FileSystem, OpenOptions};
#[cfg(feature = "network")]
use undercroft_nbd::client::ClientError;
#[cfg(feature = "objects")]
use undercroft_store::StoreError;
use undercroft_xfs::format::FileType;
use undercroft_xfs::inode::{ForkContent, InodeState};
use undercroft_xfs::ops;
use undercroft_xfs::recovery::LogState;
use undercroft_xfs::volume::LiveOptions;
use undercroft_xfs::{Error as VolumeError, Volume};
use uuid::Uuid;

#[cfg(feature = "objects")]
pub(crate) use cache::CacheArgs;
pub(crate) use format::FormatArgs;
pub(crate) use image_name::ImageName;
use keys::KeyRing;
use part::Opened;
pub(crate) use part::{Part, PartArgs};
use undercroft_container::ContainerError;
pub(crate) use undercroft_container::layers::PartitionChoice;
use undercroft_container::layers::{Choice, Depth, Layers, Place};

/// An option that no help shows: a command that changes a volume replays its journal, so that
/// --no-replay only refuses volumes.
pub(crate) fn hidden(option: Arg) -> Arg {
    option.hide(true)
}

/// A volume. Commands that read never write to it.
#[derive(clap::Args)]
pub(crate) struct ImageArgs {
    /// Image file or block device, a network disk such as nbd://host/export or s3://bucket/disk.img, or
    /// a device stacked on several, such as 'stripe:64k(a.img,b.img)' or @stack.toml; salvage: before it is
    /// what can be read of a damaged one.
    #[arg(value_parser = ImageName::parser(), value_hint = ValueHint::AnyPath)]
    image: ImageName,

    #[command(flatten)]
    part: PartArgs,

    /// Leave the journal alone: see a volume that was not unmounted as it is on the disk. Without
    /// this, its journal is replayed in memory.
    #[arg(long, help_heading = IMAGE_HEADING)]
    no_replay: bool,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten)]
    stats: StatsArgs,

    /// The engine of files for which the image has none.
    #[arg(skip)]
    engine: Engine,

    /// Devices that were opened, for the statistics at the end.
    #[arg(skip)]
    opened: RefCell<Vec<Arc<dyn BlockDevice>>>,

    /// The part, if no argument says it.
    #[arg(skip)]
    otherwise: Part,

    /// What was opened in the image, from the outside to the volume.
    #[arg(skip)]
    chosen: OnceCell<Vec<Place>>,

    /// Passphrases, once they were needed.
    #[arg(skip)]
    key_ring: OnceCell<Rc<KeyRing>>,
}

impl ImageArgs {
    /// A volume that fills a part of an image.
    pub(crate) fn part_of(image: impl Into<ImageName>, part: Part) -> Self {
        Self {
            image: image.into(),
            part: PartArgs::default(),
            otherwise: part,
            chosen: OnceCell::new(),
            key_ring: OnceCell::new(),
            no_replay: false,
            format: FormatArgs::default(),
            stats: StatsArgs::default(),
            engine: Engine::Auto,
            opened: RefCell::default(),
        }
    }

    /// The passphrases that are known.
    fn key_ring(&self) -> Result<Rc<KeyRing>> {
        if let Some(ring) = self.key_ring.get() {
            return Ok(Rc::clone(ring));
        }
        let ring = Rc::new(self.format.key_ring()?);
        Ok(Rc::clone(self.key_ring.get_or_init(|| ring)))
    }

    /// Takes the passphrase in a file, too.
    pub(crate) fn add_key_file(&self, file: &Path) -> Result<()> {
        let ring = Rc::new(self.format.key_ring_with(file)?);
        // Nothing was opened before.
        self.key_ring.get_or_init(|| ring);
        Ok(())
    }

    /// What is in the disk that the image is, for reading.
    pub(crate) fn layers(&self) -> Result<Layers> {
        self.note_mounted();
        let disk = self.open_disk(true, None)?;
        let keys = self.key_ring()?;
        let look = || Layers::look(&disk, &Choice::default(), Depth::Everything, &keys.keys());
        let layers = look()?;
        Ok(if layers.is_locked() && keys.ask(&layers)? { look()? } else { layers })
    }

    /// All of an image.
    pub(crate) fn disk_of(image: Description) -> Self {
        Self::part_of(image, Part::whole())
    }

    /// The same; its files get this engine, unless the image says another.
    #[cfg(feature = "network")]
    pub(crate) fn with_engine(self, engine: Engine) -> Self {
        Self { engine, ..self }
    }

    /// The same, with what is made of files that hold a disk in a format of their own.
    pub(crate) fn with_format(self, format: FormatArgs) -> Self {
        Self { format, ..self }
    }

    /// The same, with pieces of object stores kept there.
    #[cfg(feature = "objects")]
    pub(crate) fn with_cache(self, cache: CacheArgs) -> Self {
        Self { format: self.format.with_cache(cache), ..self }
    }

    /// The device that the volume fills, for reading, with a note when the kernel has it.
    pub(crate) fn device(&self) -> Result<Arc<dyn BlockDevice>> {
        self.note_mounted();
        self.open_device(true, &self.part(), None)
    }

    /// Notes that the kernel, or a mount of this command, has the image.
    fn note_mounted(&self) {
        for file in self.image.device.files() {
            if let Some(at) = mounted_at(&file.path) {
                report::note(format_args!(
                    "{} is mounted at {}: what is read may be changing",
                    file.path.display(),
                    at.display()
                ));
            }
        }
        if let Some(at) = mounts::place_of(Path::new(&self.device_name())) {
            report::note(format_args!(
                "{} is mounted at {} (undercroft mount): what is read may be changing",
                self.image.device,
                at.display()
            ));
        }
    }

    /// The device that the volume fills, for change.
    ///
    /// # Errors
    /// Its journal has something to replay that must not be replayed, among others.
    pub(crate) fn writable_device(&self) -> Result<Arc<dyn BlockDevice>> {
        self.writable_disk().map(|[_, device]| device)
    }

    /// All of the image, and the device in it that the volume fills, for change.
    ///
    /// # Errors
    /// As [`ImageArgs::writable_device`].
    pub(crate) fn writable_disk(&self) -> Result<[Arc<dyn BlockDevice>; 2]> {
        if self.is_view() {
            bail!(
                "{} is what can be read of a damaged volume, and cannot be changed; `undercroft salvage` copies \
                 it to a directory, an archive or a new volume",
                self.image
            );
        }
        let disk = self.open_disk(false, None)?;
        let device = self.part_of_disk(Arc::clone(&disk), &self.part())?;
        self.check_replay(&device)?;
        Ok([disk, device])
    }

    /// The number of the partition of the image that the device is which was opened, if it is one.
    pub(crate) fn partition(&self) -> Option<u32> {
        match self.chosen.get()?.as_slice() {
            [Place::Partition(partition)] => Some(partition.number),
            _ => None,
        }
    }

    /// The file system, to be mounted. What is to be changed and does not let it is only read.
    pub(crate) fn open_for_mount(&self, wish: &MountWish) -> Result<OpenToMount> {
        let own = self.part();
        let part = if own == Part::default() { &wish.part } else { &own };
        let mut options = wish.options.clone();
        if self.no_replay || wish.no_replay {
            options = options.without_replay();
        }
        if options.writable && self.is_view() {
            report::note(format_args!("{}: mounted read-only", self.image));
            options.writable = false;
        }
        let mut device = self.open_device(!options.writable, part, wish.time_limit);
        if options.writable
            && let Some(what) = device.as_ref().err().and_then(protection)
        {
            report::note(format_args!("{what}: mounted read-only"));
            options.writable = false;
            device = self.open_device(true, part, wish.time_limit);
        }
        let unchanging = match options.writable || wish.is_stale {
            true => Ok(Vec::new()),
            false => self.unchanging(),
        };
        let unchanging = unchanging.map_err(|error| self.explain_mounted(error).context(STALE))?;
        let fs = device
            .and_then(|device| Ok(FileSystem::open(device, &options)?))
            .map_err(|error| self.explain_mounted(error))?;
        if fs.volume().recovery().is_some() {
            let how = if options.writable { "" } else { " in memory" };
            report::note(format_args!(
                "{} was not unmounted cleanly; its journal was replayed{how}",
                self.image
            ));
        }
        Ok(OpenToMount { fs, unchanging })
    }

    /// Keeps others from changing the files and disks of it.
    fn unchanging(&self) -> Result<Vec<Unchanging>> {
        self.image.device.files().iter().map(|file| Ok(Unchanging::at(&file.path)?)).collect()
    }

    /// The image as the list of mounts names it: a file or disk by its whole path.
    pub(crate) fn name(&self) -> String {
        if self.is_view() { self.image.to_string() } else { self.device_name() }
    }

    /// What it is on, as the list of mounts names it.
    fn device_name(&self) -> String {
        let path = self.path().and_then(|path| path.canonicalize().ok());
        path.map_or_else(|| self.image.device.to_string(), |path| path.display().to_string())
    }

    /// Whether it is what can be read of a damaged volume.
    pub(crate) const fn is_view(&self) -> bool {
        self.image.salvaged.is_some()
    }

    /// Whether it is one file or disk that is not there.
    pub(crate) fn is_missing(&self) -> bool {
        self.path().is_some_and(|path| !path.exists())
    }

    /// Names the mount that has the image, if it is one of this command.
    fn explain_mounted(&self, error: anyhow::Error) -> anyhow::Error {
        match self.mounted() {
            Some(mounted) => error.context(mounted),
            None => self.explain(error),
        }
    }

    /// That the image is mounted by this command, where and by which process.
    fn mounted(&self) -> Option<String> {
        let place = mounts::place_of(Path::new(&self.name()))?;
        let by = mounts::status_of(&place).map_or_else(
            |_| "a server that does not answer".into(),
            |status| format!("process {}", status.pid),
        );
        let at = place.display();
        Some(format!(
            "cannot open {}: it is mounted at {at} by {by} (undercroft mount); `undercroft unmount \
             {at}` ends that",
            self.image
        ))
    }

    /// The URI of an image that is one export of a server.
    #[cfg(feature = "network")]
    pub(crate) fn uri(&self) -> Option<&str> {
        match &self.image.device {
            Description::Network(leaf)
                if leaf.kind() == undercroft_block::stack::NetworkKind::Export =>
            {
                Some(&leaf.uri)
            }
            _ => None,
        }
    }

    /// Whether a part of the image is behind a network.
    pub(crate) fn uses_networks(&self) -> bool {
        self.image.device.leaves().iter().any(|leaf| matches!(leaf, LeafDescription::Network(_)))
    }

    fn part(&self) -> Part {
        self.part.part().unwrap_or_else(|| self.otherwise.clone())
    }

    /// Whether the journal may be replayed.
    pub(crate) const fn may_replay(&self) -> bool {
        !self.no_replay
    }

    /// The device of a volume with its journal replayed in memory; `None` if there is nothing to replay, or
    /// it is not to be replayed.
    ///
    /// # Errors
    /// No volume can be opened there.
    pub(crate) fn replayed(
        &self,
        device: &Arc<dyn BlockDevice>,
    ) -> Result<Option<Arc<dyn BlockDevice>>, VolumeError> {
        if self.no_replay {
            return Ok(None);
        }
        let volume = Volume::open(Arc::clone(device))?;
        Ok(volume.recovery().map(|_| Arc::clone(volume.device())))
    }

    fn open_device(
        &self,
        read_only: bool,
        part: &Part,
        time_limit: Option<Duration>,
    ) -> Result<Arc<dyn BlockDevice>> {
        let device = self.part_of_disk(self.open_disk(read_only, time_limit)?, part)?;
        match self.image.salvaged {
            None => Ok(device),
            Some(what) => self.found(device, what.uuid, Vec::new())?.view(),
        }
    }

    /// What it names of a damaged volume.
    pub(crate) fn salvaged(&self) -> Result<salvaged::Found> {
        let device = self.part_of_disk(self.open_disk(true, None)?, &self.part())?;
        let uuid = self.image.salvaged.and_then(|what| what.uuid);
        let found = self.found(device, uuid, Vec::new())?;
        found.note_losses();
        Ok(found)
    }

    /// What can be salvaged from a device of it, but for ranges of sectors that are lost: of the volume with the
    /// UUID, or of the only one. Where that can still be opened, its journal is replayed in memory before.
    pub(crate) fn found(
        &self,
        device: Arc<dyn BlockDevice>,
        uuid: Option<Uuid>,
        lost: Vec<Range<u64>>,
    ) -> Result<salvaged::Found> {
        // A volume that cannot be opened is looked through as it is.
        let replayed = self.replayed(&device).ok().flatten();
        let (name, file) = (&self.device_name(), self.path().zip(self.start()));
        salvaged::Device { name, device, replayed, file }.search(uuid, lost)
    }

    fn open_disk(
        &self,
        read_only: bool,
        time_limit: Option<Duration>,
    ) -> Result<Arc<dyn BlockDevice>> {
        let note = |event: &MirrorEvent| {
            report::note(event);
            if let MirrorEvent::Dropped { leg, .. } = event {
                report::note(format_args!(
                    "{leg} is out of date: leave it out of the mirror until `undercroft \
                     resync` has filled it"
                ));
            }
        };
        let image = self.image.device.clone().with_engine(self.engine);
        let image = image.with_format(self.format.disk_format());
        let image = image.with_snapshot(self.format.snapshot());
        self.format.use_cache();
        let disk = image.open_with_limit(read_only, time_limit, Some(Arc::new(note)));
        let disk = disk.map_err(|error| match self.mounted().filter(|_| !read_only) {
            Some(mounted) => anyhow!(error).context(mounted),
            None => error.into(),
        })?;
        if self.stats.are_wanted() {
            self.opened.borrow_mut().push(Arc::clone(&disk));
        }
        Ok(disk)
    }

    /// A part of the image as a device, with a note if nobody has named it.
    fn part_of_disk(
        &self,
        disk: Arc<dyn BlockDevice>,
        part: &Part,
    ) -> Result<Arc<dyn BlockDevice>> {
        let keys = self.key_ring()?;
        let Opened { device, way, notes } =
            part::open(disk, part, &keys).map_err(|error| error.context(self.cannot_open()))?;
        let is_first = self.chosen.set(way.clone()).is_ok();
        if !is_first {
            return Ok(device);
        }
        for note in notes {
            report::note(format_args!("{}: {note}", self.image));
        }
        if let ([outer, ..], true) = (way.as_slice(), *part == Part::default()) {
            let what = match outer {
                Place::Partition(_) => "is a disk with partitions",
                Place::Decrypted => "is encrypted",
                Place::Array { .. } => "belongs to a RAID",
                _ => "belongs to LVM",
            };
            let way: Vec<_> = way.iter().rev().map(ToString::to_string).collect();
            report::note(format_args!(
                "{} {what}; the volume is in {}",
                self.image,
                way.join(" of ")
            ));
        }
        Ok(device)
    }

    /// Lets the devices go that were opened, without their statistics, so that the image can be opened anew.
    pub(crate) fn let_go(&self) {
        self.opened.borrow_mut().clear();
    }

    fn cannot_open(&self) -> String {
        format!("cannot open {}", self.image)
    }

    /// Prints what passed through the devices, if wanted.
    pub(crate) fn print_stats(&self, json: bool, out: &mut dyn Write) -> Result<()> {
        for device in &*self.opened.borrow() {
            self.stats.print(&DeviceReport::of_stack(&**device), json, out)?;
        }
        #[cfg(feature = "objects")]
        self.stats.print_traffic(json, out)?;
        Ok(())
    }

    /// The volume, with a note when it was not unmounted.
    pub(crate) fn open(&self) -> Result<Arc<Volume>> {
        let device = self.device()?;
        let volume =
            if self.no_replay { Volume::open_unreplayed(device) } else { Volume::open(device) };
        let volume = Arc::new(volume.map_err(|error| self.explain(error.into()))?);
        let what = match volume.recovery() {
            Some(_) => "its journal was replayed in memory",
            // A journal that cannot be read is a matter for `info` and `check`.
            None if self.no_replay && matches!(volume.log_state(), Ok(LogState::Dirty)) => {
                "its journal was not replayed, so the latest changes may be missing"
            }
            None => return Ok(volume),
        };
        report::note(format_args!("{} was not unmounted cleanly; {what}", self.image));
        Ok(volume)
    }

    /// The path of an image that is one file or device, without further options.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.image.device.as_path()
    }

    /// Where in the image file the device starts that was opened, unless it is something in it, or the
    /// disk of a file of another format.
    pub(crate) fn start(&self) -> Option<u64> {
        let is_inside = self.chosen.get().is_some_and(|way| !way.is_empty());
        if is_inside || self.container().is_some() { None } else { self.first_byte() }
    }

    /// The byte of the disk with which the device begins that was opened, if all of it follows there.
    pub(crate) fn first_byte(&self) -> Option<u64> {
        let offset = if let Part::Stretch(stretch) = self.part() { stretch.start } else { 0 };
        self.chosen.get().into_iter().flatten().try_fold(offset, |start, place| match place {
            Place::Partition(partition) => start.checked_add(partition.start.to_bytes()?),
            _ => None,
        })
    }

    /// The name of the format of its own that the image has, if it is one file that has one.
    fn container(&self) -> Option<&'static str> {
        let is_raw = self.format.disk_format() == DiskFormat::Raw;
        self.path().filter(|_| !is_raw).and_then(undercroft_container::format_of)
    }

    /// Fails if a volume has something to replay that must not be replayed.
    fn check_replay(&self, device: &Arc<dyn BlockDevice>) -> Result<()> {
        if !self.no_replay {
            return Ok(());
        }
        let unreplayed = Volume::open_unreplayed(Arc::clone(device))
            .map_err(|error| self.explain(error.into()))?;
        if unreplayed.log_state()? != LogState::Clean {
            bail!(
                "{} was not unmounted cleanly: it cannot be changed with --no-replay",
                self.image
            );
        }
        Ok(())
    }

    /// The device of a volume for a change that opens it itself and replays its journal, and the
    /// volume as it is now.
    pub(crate) fn open_to_replace(&self) -> Result<(Arc<dyn BlockDevice>, Volume)> {
        let device = self.writable_device()?;
        let volume =
            Volume::open(Arc::clone(&device)).map_err(|error| self.explain(error.into()))?;
        if volume.recovery().is_some() {
            report::note(format_args!(
                "{} was not unmounted cleanly; its journal is replayed",
                self.image
            ));
        }
        Ok((device, volume))
    }

    /// The volume for change, through its journal, which is replayed first if it must be.
    pub(crate) fn open_for_change(&self) -> Result<Edit> {
        self.edit(self.writable_device()?)
    }

    /// As [`open_for_change`](Self::open_for_change), on its [device](Self::writable_device).
    pub(crate) fn edit(&self, device: Arc<dyn BlockDevice>) -> Result<Edit> {
        let volume = Volume::open_live(device, &LiveOptions::default())
            .map_err(|error| self.explain(error.into()))?;
        if volume.recovery().is_some() {
            report::note(format_args!(
                "{} was not unmounted cleanly; its journal was replayed",
                self.image
            ));
        }
        if volume.counted_quotas() {
            report::note(format_args!(
                "{} counted quotas, which is switched off by the change; mount it with quota \
                 options to have them counted anew",
                self.image
            ));
        }
        Ok(Edit { volume: Arc::new(volume) })
    }

    /// Fails if a device holds an image of a disk in a format of its own, whose bytes are not those of
    /// the disk.
    #[cfg(feature = "network")]
    pub(crate) fn expect_raw(&self, device: &dyn BlockDevice) -> Result<()> {
        match contents::of(device).filter(contents::is_container) {
            Some(found) => Err(anyhow!(contents::unusable(&found)).context(self.cannot_open())),
            None => Ok(()),
        }
    }

    /// Names the image, what it holds instead of a volume, and the way on.
    pub(crate) fn explain(&self, error: anyhow::Error) -> anyhow::Error {
        // A device that fails is not asked again: each answer may take as long as it may.
        let is_of_device = |cause: &(dyn Error + 'static)| {
            matches!(cause.downcast_ref(), Some(VolumeError::Device(_)))
        };
        if self.is_view() || error.chain().any(is_of_device) {
            return error.context(self.cannot_open());
        }
        let disk = self.open_disk(true, None).ok();
        let keys = self.key_ring().ok();
        let why = disk.zip(keys).and_then(|(disk, keys)| {
            let opened = part::open(disk, &self.part(), &keys).ok()?;
            contents::refusal(&opened.device, &keys)
        });
        match why {
            Some(why) => anyhow!(why).context(self.cannot_open()),
            None => error.context(self.cannot_open()),
        }
    }
}

/// Why what is being changed is not mounted to be read.
const STALE: &str =
    "what is read by a mount would become stale (-o ro,stale mounts it nevertheless)";

/// What does not let itself be changed, though it may be read: a write-protected disk, a read-only
/// export, a file of others.
fn protection(error: &anyhow::Error) -> Option<String> {
    let is_protection = error.chain().any(|cause| match cause.downcast_ref() {
        Some(StackError::File(error)) => error.is_protection(),
        Some(StackError::Container(error)) => matches!(
            error.downcast_ref(),
            Some(ContainerError::ReadOnly { .. } | ContainerError::Past { .. })
        ),
        Some(StackError::Network(error)) => is_read_only(&**error),
        _ => false,
    });
    is_protection.then(|| report::message(error))
}

/// Whether what is behind a network only lets itself be read.
fn is_read_only(error: &(dyn Error + Send + Sync + 'static)) -> bool {
    #[cfg(feature = "network")]
    if let Some(ClientError::ReadOnly { .. }) = error.downcast_ref() {
        return true;
    }
    #[cfg(feature = "objects")]
    if let Some(StoreError::ReadOnly { .. }) = error.downcast_ref() {
        return true;
    }
    let _ = error;
    false
}

/// How a volume is to be opened for a mount.
pub(crate) struct MountWish {
    pub(crate) options: OpenOptions,
    /// Counts where the arguments name none.
    pub(crate) part: Part,
    pub(crate) no_replay: bool,
    /// It is read although others change it.
    pub(crate) is_stale: bool,
    pub(crate) time_limit: Option<Duration>,
}

/// A volume to be mounted.
pub(crate) struct OpenToMount {
    pub(crate) fs: FileSystem,
    /// What is only read stays as it is as long as this lives.
    pub(crate) unchanging: Vec<Unchanging>,
}

/// A volume open for change.
pub(crate) struct Edit {
    volume: Arc<Volume>,
}

impl Edit {
    /// The volume.
    pub(crate) fn volume(&self) -> &Arc<Volume> {
        &self.volume
    }

    /// Leaves the volume as an unmount does.
    pub(crate) fn close(self) -> Result<()> {
        Ok(self.volume.close()?)
    }
}

/// Target of a symbolic link; major and minor number of a device.
pub(crate) type TargetAndDevice = (Option<text::Name>, Option<(u32, u32)>);

/// Target of a symbolic link, and major and minor number of a device; `None` for all other files.
pub(crate) fn target_and_device(volume: &Volume, inode: &InodeState) -> Result<TargetAndDevice> {
    Ok(match (inode.file_type(), &inode.data.content) {
        (FileType::Symlink, _) => (Some(text::Name::new(&ops::read_link(volume, inode)?)), None),
        (FileType::Character | FileType::Block, ForkContent::Device(device)) => {
            (None, Some((device.major, device.minor)))
        }
        _ => (None, None),
    })
}
