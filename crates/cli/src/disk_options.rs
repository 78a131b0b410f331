//! Options of `build` about the file of an image: a disk around the volume, its format, its blocks.

use crate::failure::Usage;
use crate::value;
use anyhow::{Result, bail};
use clap::ValueEnum;
use clap::builder::{OsStringValueParser, TypedValueParser};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use undercroft_block::stack::Description;
use undercroft_image::disk::{Content, DiskOptions, Partition, PartitionKind};
use undercroft_image::pack::{ImageFormat, Reflink};
use uuid::Uuid;

/// A whole disk, and how the file holds it.
#[derive(clap::Args)]
#[command(next_help_heading = "Disk and its file")]
pub(crate) struct DiskArgs {
    /// Make a disk with a partition table, not a bare volume. Without --partition it has one
    /// partition, root:xfs. GRUB 2.06 reads volumes of --preset lts-6.12 and older: where it loads a
    /// kernel from the volume, say one of them.
    #[arg(long, value_name = "TABLE")]
    disk: Option<Table>,

    /// A partition, TYPE:CONTENT with options; repeat for more, in their order on the disk.
    ///
    /// TYPE is esp, xbootldr, root, usr, home, srv, var, tmp, swap, linux (anything else), bios
    /// (for GRUB), or a type UUID. Systems find partitions by their types (Discoverable
    /// Partitions Specification). root and usr are those of this machine; root-arm64,
    /// root-x86-64, usr-riscv64 and so on are the same wherever they are made.
    ///
    /// CONTENT is
    ///   xfs      the volume, of the size that --size says;
    ///   DIR      for esp and xbootldr: a FAT32 file system made from a directory;
    ///   FILE     the bytes of a file, such as another image;
    ///   SIZE     that many zeros, such as 512M; swap space is initialised (./512M is a file).
    ///
    /// Options: size=SIZE (else that of the content; a FAT has as much again, at least 64M),
    /// name=NAME (else the type), uuid=UUID (else it follows from the content).
    #[arg(long, value_name = "TYPE:CONTENT[,OPTION=...]", value_parser = partition(), requires = "disk",
        verbatim_doc_comment)]
    partition: Vec<Partition>,

    /// Size of the disk; without it as large as the partitions. With --size auto the volume takes
    /// what the others leave.
    #[arg(long, value_name = "SIZE", value_parser = value::size, requires = "disk")]
    disk_size: Option<u64>,

    /// How the file holds its bytes: as they are (raw), or as QEMU's qcow2, without what is zeros.
    /// By default a file of the name *.qcow2 is one, and all others are raw.
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,

    /// Let the image share the blocks of files of 64K and more instead of copying them: where the
    /// file system that holds both can (XFS, btrfs), always (or fail), or never. The bytes are the
    /// same.
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    reflink: When,
}

/// When blocks are shared.
#[derive(Clone, Copy, ValueEnum)]
enum When {
    Auto,
    Always,
    Never,
}

/// Partition tables.
#[derive(Clone, Copy, ValueEnum)]
enum Table {
    /// GUID partition table.
    Gpt,
}

/// Formats of image files.
#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Raw,
    Qcow2,
}

impl DiskArgs {
    /// The disk to make, if one is.
    pub(crate) fn disk(&self) -> Result<Option<DiskOptions>> {
        let Some(Table::Gpt) = self.disk else { return Ok(None) };
        let mut partitions = self.partition.clone();
        if partitions.is_empty() {
            let Some(root) = PartitionKind::named("root") else {
                bail!(
                    "this machine's architecture has no type of root partition; say which, such as \
                     --partition root-arm64:xfs"
                );
            };
            partitions.push(Partition::new(root, Content::Volume));
        }
        Ok(Some(DiskOptions { partitions, size: self.disk_size }))
    }

    pub(crate) fn reflink(&self) -> Reflink {
        match self.reflink {
            When::Auto => Reflink::Auto,
            When::Always => Reflink::Always,
            When::Never => Reflink::Never,
        }
    }

    /// The format of an image.
    ///
    /// # Errors
    /// Its name is that of a format which is not written.
    pub(crate) fn format(&self, image: &Description) -> Result<ImageFormat> {
        match (self.format, format_of_name(image)) {
            (Some(Format::Raw), _) | (None, None) => Ok(ImageFormat::Raw),
            (Some(Format::Qcow2), _) | (None, Some("qcow2")) => Ok(ImageFormat::Qcow2),
            (None, Some(other)) => {
                // As QEMU names it.
                let name = if other == "vhd" { "vpc" } else { other };
                let what = format!(
                    "{image}: images in the format {other} are not written: `qemu-img convert -O {name}` \
                     makes one of a raw image; --format raw writes one under this name"
                );
                bail!(Usage(what))
            }
        }
    }
}

/// The format that the name of a new file says it has, if it is not raw.
pub(crate) fn format_of_name(image: &Description) -> Option<&'static str> {
    let path = image.as_path()?;
    let name = path.extension()?;
    let is_device = path.metadata().is_ok_and(|data| !data.is_file());
    let formats = ["qcow2", "qcow", "vmdk", "vhdx", "vhd", "vdi", "qed"];
    formats.into_iter().find(|format| !is_device && name.eq_ignore_ascii_case(format))
}

fn partition() -> impl TypedValueParser<Value = Partition> {
    OsStringValueParser::new().try_map(|text| parse(&text))
}

/// `TYPE:CONTENT[,size=SIZE][,name=NAME][,uuid=UUID]`. Options are looked for from the end, so a
/// path may hold commas.
fn parse(text: &OsStr) -> Result<Partition, String> {
    let bytes = text.as_bytes();
    let colon = bytes.iter().position(|byte| *byte == b':');
    let colon = colon.ok_or("write TYPE:CONTENT, such as root:xfs or esp:boot/")?;
    let name = String::from_utf8_lossy(&bytes[..colon]);
    let kind = PartitionKind::named(&name).ok_or_else(|| {
        format!("{name:?} is no type of partition; there are {}", PartitionKind::names())
    })?;
    let mut rest = &bytes[colon + 1..];
    let mut partition = Partition::new(kind, Content::Volume);
    while let Some(comma) = rest.iter().rposition(|byte| *byte == b',') {
        if !set_option(&mut partition, &rest[comma + 1..])? {
            break;
        }
        rest = &rest[..comma];
    }
    partition.content = match rest {
        [] => return Err("nothing is behind the colon; write xfs, a path, or a size".to_owned()),
        b"xfs" => Content::Volume,
        _ => size(rest).map_or_else(
            || Content::Path(PathBuf::from(OsString::from_vec(rest.to_vec()))),
            Content::Empty,
        ),
    };
    Ok(partition)
}

/// Content that is a size and no path.
fn size(bytes: &[u8]) -> Option<u64> {
    value::size(std::str::from_utf8(bytes).ok()?).ok()
}

/// Sets an option, if it is one.
fn set_option(partition: &mut Partition, text: &[u8]) -> Result<bool, String> {
    let Some((key, value)) = std::str::from_utf8(text).ok().and_then(|text| text.split_once('='))
    else {
        return Ok(false);
    };
    let twice = match key {
        "size" => partition.size.replace(value::size(value)?).is_some(),
        "name" => partition.name.replace(value.to_owned()).is_some(),
        "uuid" => {
            let id = Uuid::try_parse(value).map_err(|error| format!("uuid={value}: {error}"))?;
            partition.id.replace(id).is_some()
        }
        _ => return Ok(false),
    };
    if twice { Err(format!("{key} is there twice")) } else { Ok(true) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Partition, String> {
        parse(OsStr::new(text))
    }

    #[test]
    fn partitions_have_a_type_a_content_and_options() {
        let kind = |name| PartitionKind::named(name).unwrap();
        let root = parsed("root-arm64:xfs").unwrap();
        assert_eq!(root, Partition::new(kind("root-arm64"), Content::Volume));
        let path = |path: &str| Content::Path(path.into());
        for (text, name, content) in [
            ("esp:boot/efi", "esp", path("boot/efi")),
            ("linux:a,b:c", "linux", path("a,b:c")),
            ("linux:a,colour=red", "linux", path("a,colour=red")),
            ("linux:./4G", "linux", path("./4G")),
            ("swap:1.5G", "swap", Content::Empty(3 << 29)),
            ("linux:./xfs", "linux", path("./xfs")),
        ] {
            assert_eq!(parsed(text).unwrap(), Partition::new(kind(name), content), "{text}");
        }
        let id = "11223344-5566-7788-99aa-bbccddeeff00";
        let full = parsed(&format!("var:a,b,name=x=y,size=1M,uuid={id}")).unwrap();
        assert_eq!(full.content, path("a,b"));
        assert_eq!((full.name.as_deref(), full.size), (Some("x=y"), Some(1 << 20)));
        assert_eq!(full.id.unwrap().to_string(), id);
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (text, expected) in [
            ("root", "TYPE:CONTENT"),
            ("boot:x", "xbootldr"),
            ("root-z80:xfs", "no type"),
            ("root:", "behind the colon"),
            ("esp:a,size=1X", "no unit"),
            ("esp:a,uuid=1", "uuid=1"),
            ("esp:a,size=1M,size=2M", "twice"),
        ] {
            let message = parsed(text).unwrap_err();
            assert!(message.contains(expected), "{text}: {message}");
        }
    }
}
