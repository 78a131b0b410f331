//! `undercroft stat`.

use crate::commands::verbs::Verb;
use crate::image::target_and_device;
use crate::report::{self, Outcome};
use crate::session::{LastLink, Session};
use crate::text;
use anyhow::{Context, Result};
use serde::Serialize;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use undercroft_fs::{File, FileExtent};
use undercroft_xfs::Volume;
use undercroft_xfs::format::{InodeFlags, InodeFlags2};
use undercroft_xfs::inode::{Fork, InodeState};
use undercroft_xfs::ops;
use undercroft_xfs::units::InodeNumber;

/// Show everything about a file: inode, times with birth, extents, flags, attributes, parents.
///
/// Of a symbolic link at the end of the path, the link itself.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Path from the root directory of the volume.
    #[arg(required_unless_present = "inode")]
    path: Option<OsString>,

    /// Show the inode of this number, whatever its names are.
    #[arg(long, value_name = "N", conflicts_with_all = ["path", "dereference"])]
    inode: Option<u64>,

    /// Show where the data is: each extent with its bytes in the file, its first byte on the device and
    /// its length.
    #[arg(long)]
    extents: bool,

    /// Of a symbolic link at the end of the path, show what it leads to.
    #[arg(short = 'L', long)]
    dereference: bool,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  undercroft stat root.img /etc/fstab
  undercroft stat --extents root.img /etc/fstab
  undercroft stat --inode 128 root.img";

/// Everything about an inode.
#[derive(Serialize)]
struct Stat {
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<text::Name>,
    inode: u64,
    generation: u32,
    kind: &'static str,
    mode: String,
    mode_octal: String,
    uid: u32,
    gid: u32,
    project: u32,
    links: u32,
    size: u64,
    blocks: u64,
    block_size: usize,
    data_fork: String,
    extents: usize,
    /// In bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    extent_hint: Option<u64>,
    /// In bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    copy_hint: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attribute_fork: Option<String>,
    attribute_extents: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<text::Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<(u32, u32)>,
    atime: String,
    mtime: String,
    ctime: String,
    /// Version 5 only.
    #[serde(skip_serializing_if = "Option::is_none")]
    birth: Option<String>,
    changes: u64,
    flags: Vec<String>,
    attributes: Vec<Attribute>,
    parents: Vec<Parent>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extent_list: Option<Vec<Extent>>,
}

/// A part of the data, in bytes.
#[derive(Serialize)]
struct Extent {
    offset: u64,
    place: u64,
    bytes: u64,
    unwritten: bool,
    shared: bool,
}

#[derive(Serialize)]
struct Attribute {
    #[serde(flatten)]
    name: text::Name,
    bytes: usize,
}

#[derive(Serialize)]
struct Parent {
    #[serde(flatten)]
    name: text::Name,
    directory: u64,
}

impl Verb for Args {
    const CHANGES: bool = false;

    fn run(&self, session: &Session<'_>, out: &mut dyn Write) -> Result<Outcome> {
        let file = self.file(session)?;
        let named = || match (&self.path, self.inode) {
            (Some(path), _) => ops::path_text(path.as_bytes()),
            (None, number) => format!("inode {}", number.unwrap_or_default()),
        };
        let mut stat = self.stat(session.volume, &file).with_context(named)?;
        if self.extents {
            stat.extent_list = Some(extents(&file).with_context(named)?);
        }
        if self.json {
            report::json_line(out, &stat)?;
        } else {
            print(&stat, out)?;
        }
        Ok(Outcome::Done)
    }

    fn json(&self) -> bool {
        self.json
    }
}

impl Args {
    fn file(&self, session: &Session<'_>) -> Result<File> {
        match (&self.path, self.inode) {
            (Some(path), _) => Ok(session.open(path, LastLink { no_follow: !self.dereference })?),
            (None, number) => {
                let number = InodeNumber(number.unwrap_or_default());
                let file = session.fs.nodes().open(number);
                file.with_context(|| format!("inode {number}"))
            }
        }
    }

    fn stat(&self, volume: &Volume, file: &File) -> Result<Stat> {
        let path = self.path.as_ref().map(|path| text::Name::new(path.as_bytes()));
        let stat = stat(volume, &file.open_file().inode().read())?;
        Ok(Stat { path, ..stat })
    }
}

fn extents(file: &File) -> Result<Vec<Extent>> {
    let of = |extent: FileExtent| {
        let FileExtent { offset, place, len, unwritten, shared } = extent;
        Extent { offset, place, bytes: len, unwritten, shared }
    };
    Ok(file.extent_map()?.into_iter().map(of).collect())
}

fn stat(volume: &Volume, inode: &InodeState) -> Result<Stat> {
    let (core, kind) = (&inode.core, inode.file_type());
    let (target, device) = target_and_device(volume, inode)?;
    let flags = core.flags.iter_names().map(|(name, _)| name);
    let flags = flags.chain(core.flags2.iter_names().map(|(name, _)| name));
    let crc = volume.geometry().features.crc;
    let hint =
        |set: bool, blocks: u32| set.then(|| u64::from(blocks) << volume.geometry().block_log);
    let has_extent_hint = core.flags.intersects(InodeFlags::EXTSIZE | InodeFlags::EXTSZINHERIT);
    let has_copy_hint = core.flags2.contains(InodeFlags2::COWEXTSIZE);
    Ok(Stat {
        path: None,
        extent_list: None,
        inode: inode.number.0,
        generation: core.generation,
        kind: text::kind(kind),
        mode: text::mode(kind, core.mode),
        mode_octal: format!("{:04o}", core.mode & 0o7777),
        uid: core.uid,
        gid: core.gid,
        project: core.project,
        links: core.nlink,
        size: core.size,
        blocks: core.nblocks,
        block_size: volume.geometry().block_size(),
        data_fork: format!("{:?}", core.data_format).to_lowercase(),
        extents: inode.data.extent_count(),
        extent_hint: hint(has_extent_hint, core.extsize),
        copy_hint: hint(has_copy_hint, core.cowextsize),
        attribute_fork: inode
            .attr
            .as_ref()
            .map(|_| format!("{:?}", core.attr_format).to_lowercase()),
        attribute_extents: inode.attr.as_ref().map_or(0, Fork::extent_count),
        target,
        device,
        atime: text::time(core.atime),
        mtime: text::time(core.mtime),
        ctime: text::time(core.ctime),
        birth: crc.then(|| text::time(core.crtime)),
        changes: core.changecount,
        flags: flags.map(str::to_lowercase).collect(),
        attributes: attributes(volume, inode)?,
        parents: parents(volume, inode)?,
    })
}

fn attributes(volume: &Volume, inode: &InodeState) -> Result<Vec<Attribute>> {
    let attributes = ops::attributes(volume, inode)?.into_iter();
    let mut attributes: Vec<_> = attributes.map(|(name, value)| (name, value.len())).collect();
    attributes.sort_unstable();
    let named = attributes
        .iter()
        .map(|(name, bytes)| Attribute { name: text::Name::new(name), bytes: *bytes });
    Ok(named.collect())
}

fn parents(volume: &Volume, inode: &InodeState) -> Result<Vec<Parent>> {
    let parents = ops::parents(volume, inode)?.into_iter();
    let named = parents.map(|parent| Parent {
        name: text::Name::new(&parent.name),
        directory: parent.directory.0,
    });
    Ok(named.collect())
}

fn print(stat: &Stat, out: &mut dyn Write) -> Result<()> {
    let target = stat.target.as_ref().map(|target| format!(" -> {target}")).unwrap_or_default();
    match &stat.path {
        Some(path) => writeln!(out, "path        {path}{target}")?,
        None if !target.is_empty() => writeln!(out, "target     {target}")?,
        None => {}
    }
    writeln!(out, "inode       {}, generation {}", stat.inode, stat.generation)?;
    write!(out, "kind        {}", stat.kind)?;
    match stat.device {
        Some((major, minor)) => writeln!(out, " {major}, {minor}")?,
        None => writeln!(out)?,
    }
    writeln!(out, "mode        {} ({})", stat.mode, stat.mode_octal)?;
    writeln!(out, "owner       {}:{}, project {}", stat.uid, stat.gid, stat.project)?;
    writeln!(out, "links       {}", stat.links)?;
    writeln!(out, "size        {}", stat.size)?;
    writeln!(out, "blocks      {} of {} bytes", stat.blocks, stat.block_size)?;
    writeln!(out, "data        {}, {} extents", stat.data_fork, stat.extents)?;
    if let Some(bytes) = stat.extent_hint {
        writeln!(out, "hint        extents of {bytes} bytes")?;
    }
    if let Some(bytes) = stat.copy_hint {
        writeln!(out, "hint        copies of {bytes} bytes")?;
    }
    if let Some(format) = &stat.attribute_fork {
        writeln!(out, "attributes  {format}, {} extents", stat.attribute_extents)?;
    }
    writeln!(out, "access      {}", stat.atime)?;
    writeln!(out, "modify      {}", stat.mtime)?;
    writeln!(out, "change      {}, {} changes", stat.ctime, stat.changes)?;
    if let Some(birth) = &stat.birth {
        writeln!(out, "birth       {birth}")?;
    }
    if !stat.flags.is_empty() {
        writeln!(out, "flags       {}", stat.flags.join(" "))?;
    }
    for Attribute { name, bytes } in &stat.attributes {
        writeln!(out, "attribute   {name} ({bytes} bytes)")?;
    }
    for Parent { name, directory } in &stat.parents {
        writeln!(out, "parent      inode {directory}, {name}")?;
    }
    if let Some(extents) = &stat.extent_list {
        writeln!(out, "{:>16} {:>16} {:>16}", "offset", "place", "bytes")?;
        for Extent { offset, place, bytes, unwritten, shared } in extents {
            let unwritten = if *unwritten { " unwritten" } else { "" };
            let shared = if *shared { " shared" } else { "" };
            writeln!(out, "{offset:>16} {place:>16} {bytes:>16}{unwritten}{shared}")?;
        }
    }
    Ok(())
}
