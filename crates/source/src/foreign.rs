//! File systems, disks and images of disks, recognised by their first bytes: where a tree or an
//! archive is expected, and before they are overwritten.

use std::fmt;

/// Bytes at the start of a file or device that are enough for all.
pub const HEAD: usize = 256 << 10;

/// What of another format is in a file or on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Foreign {
    /// What sort of thing it is.
    pub kind: ForeignKind,
    /// Its name with its article, such as `a btrfs file system`.
    pub name: &'static str,
    /// Its label, if it has one.
    pub label: Option<Vec<u8>>,
    /// Its UUID, if it has one.
    pub uuid: Option<String>,
    /// The way from it to a disk or a tree that can be read, as part of a sentence.
    pub way: &'static str,
}

/// Sorts of foreign contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForeignKind {
    /// A volume of XFS.
    Volume,
    /// Another file system, or swap space.
    FileSystem,
    /// A part of something larger, or something encrypted.
    Member,
    /// A partition table.
    Table,
    /// An image of a disk in a format of its own: its bytes are not those of the disk.
    Container,
    /// An archive of files that is no tar archive.
    Archive,
    /// A tar archive.
    Tar,
    /// Compressed data.
    Compressed,
    /// The metadata of a volume, without its files.
    Dump,
}

impl ForeignKind {
    /// The way to a disk or a tree, where a format has none of its own.
    const fn usual_way(self) -> &'static str {
        match self {
            Self::Volume => "it is read as it is",
            Self::FileSystem => "mount it, and take the directory",
            Self::Member => "put it together first, and name the disk that comes of it",
            Self::Table => "choose a partition",
            Self::Container => {
                "`qemu-nbd` makes it a network disk, `qemu-img convert -O raw` a raw image"
            }
            Self::Archive => "unpack it, and take the directory",
            Self::Tar => "make a volume of it",
            Self::Compressed => "decompress it to a file, and name that",
            Self::Dump => "`xfs_mdrestore` makes a volume of it",
        }
    }

    /// What to do with it where a tree is wanted.
    pub(crate) fn to_a_tree(self) -> &'static str {
        match self {
            Self::Volume | Self::FileSystem => "mount it or unpack it, and take the directory",
            Self::Member | Self::Table => {
                "attach it (losetup --partscan), mount what is in it, and take the directory"
            }
            Self::Container => {
                "attach it (qemu-nbd --connect), mount what is in it, and take the directory"
            }
            Self::Archive | Self::Tar => "unpack it, and take the directory",
            Self::Compressed => "decompress it into a pipe, and take the archive from `-`",
            Self::Dump => "it has the metadata of a volume alone, so there are no files to take",
        }
    }
}

impl Foreign {
    /// Whether it is something that disks and images of disks hold, and not a file that goes from one
    /// to the other.
    #[must_use]
    pub fn is_storage(&self) -> bool {
        !matches!(self.kind, Archive | Tar | Compressed | Dump)
    }
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        match &self.label {
            Some(label) => write!(f, " labelled \"{}\"", label.escape_ascii()),
            None => Ok(()),
        }
    }
}

/// Bytes at a place.
type Mark = (usize, &'static [u8]);

/// A format: any of the marks is one of it.
struct Format {
    kind: ForeignKind,
    name: &'static str,
    marks: &'static [Mark],
    /// Place and length of the label.
    label: Option<(usize, usize)>,
    /// Place of the UUID.
    uuid: Option<usize>,
    way: &'static str,
}

impl Format {
    const fn uuid(self, at: usize) -> Self {
        Self { uuid: Some(at), ..self }
    }

    const fn way(self, way: &'static str) -> Self {
        Self { way, ..self }
    }
}

const fn of(kind: ForeignKind, name: &'static str, marks: &'static [Mark]) -> Format {
    Format { kind, name, marks, label: None, uuid: None, way: kind.usual_way() }
}

const fn labelled(
    kind: ForeignKind,
    name: &'static str,
    marks: &'static [Mark],
    label: (usize, usize),
) -> Format {
    Format { kind, name, marks, label: Some(label), uuid: None, way: kind.usual_way() }
}

use ForeignKind::{Archive, Compressed, Container, Dump, FileSystem, Member, Table, Tar, Volume};

const RAID: Format = of(
    Member,
    "a member of a Linux RAID",
    &[(0, &[0xfc, 0x4e, 0x2b, 0xa9]), (4_096, &[0xfc, 0x4e, 0x2b, 0xa9])],
)
.way("`mdadm --assemble` makes the array a disk: name that");

/// The first that matches counts: a boot sector is also that of some file systems, and an image of a
/// CD may have a partition table, too.
const FORMATS: &[Format] = &[
    // What was there before is left beside its mark.
    RAID,
    of(Container, "a qcow2 image", &[(0, b"QFI\xfb")]),
    of(Container, "a QED image", &[(0, b"QED\0")]),
    of(Container, "a VMDK image", &[(0, b"KDMV"), (0, b"COWD"), (0, b"# Disk DescriptorFile")]),
    of(Container, "a VHDX image", &[(0, b"vhdxfile")]),
    of(Container, "a VHD image", &[(0, b"conectix")]),
    of(
        Container,
        "a VDI image",
        &[(64, &[0x7f, 0x10, 0xda, 0xbe]), (64, &[0xbe, 0xda, 0x10, 0x7f])],
    ),
    of(Container, "a Parallels image", &[(0, b"WithoutFreeSpace"), (0, b"WithouFreSpacExt")]),
    labelled(Volume, "an XFS file system", &[(0, b"XFSB")], (108, 12)).uuid(32),
    labelled(FileSystem, "a btrfs file system", &[(65_600, b"_BHRfS_M")], (65_835, 256))
        .uuid(65_568),
    of(FileSystem, "an F2FS file system", &[(1024, &[0x10, 0x20, 0xf5, 0xf2])]),
    of(FileSystem, "an EROFS file system", &[(1024, &[0xe2, 0xe1, 0xf5, 0xe0])]),
    of(FileSystem, "a squashfs file system", &[(0, b"hsqs"), (0, b"sqsh")]),
    of(FileSystem, "a ReiserFS file system", &[(65_588, b"ReIsEr"), (8_244, b"ReIsEr")]),
    of(FileSystem, "a JFS file system", &[(32_768, b"JFS1")]),
    of(
        FileSystem,
        "a bcachefs file system",
        &[(
            4_120,
            &[
                0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca, 0x82, 0x65, 0xf5, 0x7f, 0x48, 0xba,
                0x6d, 0x81,
            ],
        )],
    ),
    of(FileSystem, "an NTFS file system", &[(3, b"NTFS    ")]),
    of(FileSystem, "an exFAT file system", &[(3, b"EXFAT   ")]),
    labelled(FileSystem, "a FAT file system", &[(82, b"FAT32   ")], (71, 11)),
    labelled(FileSystem, "a FAT file system", &[(54, b"FAT16   "), (54, b"FAT12   ")], (43, 11)),
    of(FileSystem, "an APFS container", &[(32, b"NXSB")]),
    of(FileSystem, "an HFS+ file system", &[(1024, b"H+\0\x04"), (1024, b"HX\0\x05")]),
    labelled(FileSystem, "an ISO 9660 file system", &[(32_769, b"CD001")], (32_808, 32)),
    labelled(
        FileSystem,
        "swap space",
        &[(4_086, b"SWAPSPACE2"), (65_526, b"SWAPSPACE2")],
        (1052, 16),
    )
    .uuid(1036),
    of(Member, "a LUKS container", &[(0, b"LUKS\xba\xbe")])
        .way("`cryptsetup open` makes what is in it a disk: name that"),
    of(
        Member,
        "a physical volume of LVM",
        &[(0, b"LABELONE"), (512, b"LABELONE"), (1024, b"LABELONE"), (1536, b"LABELONE")],
    )
    .way("`vgchange --activate y` makes its logical volumes disks: name one, as /dev/GROUP/VOLUME"),
    of(Dump, "a dump of the metadata of an XFS volume", &[(0, b"XFSM"), (0, b"XMD2")]),
    of(Archive, "a ZIP archive", &[(0, b"PK\x03\x04")]),
    of(Archive, "a 7z archive", &[(0, b"7z\xbc\xaf\x27\x1c")]),
    of(Archive, "a RAR archive", &[(0, b"Rar!\x1a\x07")]),
    of(
        Archive,
        "a cpio archive",
        &[(0, b"070701"), (0, b"070702"), (0, b"070707"), (0, b"\xc7\x71")],
    ),
    of(Archive, "a Debian package", &[(0, b"!<arch>\ndebian-binary")]),
    of(Archive, "an RPM package", &[(0, b"\xed\xab\xee\xdb")]),
    of(Table, "a partition table (GPT)", &[(512, b"EFI PART"), (4_096, b"EFI PART")]),
];

/// What counts before all others: in the data of an archive there may be anything.
const STREAMS: &[Format] = &[
    of(Tar, "a tar archive", &[(257, b"ustar")]),
    of(Compressed, "data compressed with gzip", &[(0, b"\x1f\x8b")]),
    of(Compressed, "data compressed with zstd", &[(0, b"\x28\xb5\x2f\xfd")]),
    of(Compressed, "data compressed with xz", &[(0, b"\xfd7zXZ\0")]),
    of(Compressed, "data compressed with bzip2", &[(0, b"BZh")]),
    of(
        Compressed,
        "data compressed with lz4",
        &[(0, b"\x04\x22\x4d\x18"), (0, b"\x02\x21\x4c\x18")],
    ),
    of(Compressed, "data compressed with lzop", &[(0, b"\x89LZO\0\r\n\x1a\n")]),
    of(Compressed, "data compressed with compress", &[(0, b"\x1f\x9d")]),
    // A dictionary of 64 KiB, 1, 8, 16 or 64 MiB with the usual properties, and a length that is not known.
    of(
        Compressed,
        "data compressed with lzma",
        &[
            (0, b"\x5d\0\0\x01\0\xff\xff\xff\xff"),
            (0, b"\x5d\0\0\x10\0\xff\xff\xff\xff"),
            (0, b"\x5d\0\0\x80\0\xff\xff\xff\xff"),
            (0, b"\x5d\0\0\0\x01\xff\xff\xff\xff"),
            (0, b"\x5d\0\0\0\x04\xff\xff\xff\xff"),
        ],
    ),
];

/// What a file or device that begins like this holds, if it is known: its first [`HEAD`] bytes, or
/// all of a shorter one. Fewer recognise what lies at the front.
#[must_use]
pub fn recognise(head: &[u8]) -> Option<Foreign> {
    let has = |(at, bytes): &Mark| head.get(*at..).is_some_and(|rest| rest.starts_with(bytes));
    let mut formats = STREAMS.iter().chain(FORMATS);
    if let Some(format) = formats.find(|format| format.marks.iter().any(has)) {
        let Format { kind, name, way, .. } = *format;
        let label = format.label.and_then(|(at, length)| label(head.get(at..at + length)?));
        let uuid = format.uuid.and_then(|at| uuid(head, at));
        return Some(Foreign { kind, name, label, uuid, way });
    }
    let plain = |kind: ForeignKind, name| {
        Some(Foreign { kind, name, label: None, uuid: None, way: kind.usual_way() })
    };
    if is_ext(head) {
        let found = plain(FileSystem, "an ext2, ext3 or ext4 file system")?;
        let label = head.get(1144..1160).and_then(label);
        return Some(Foreign { label, uuid: uuid(head, 1128), ..found });
    }
    if is_boot_record(head) {
        return plain(Table, "a partition table (MBR)");
    }
    if is_zfs(head) { plain(Member, "a member of a ZFS pool") } else { None }
}

/// Bytes at the end of a device that are enough for [`recognise_end`].
pub const END: usize = 128 << 10;

/// What a device is that ends like this and has `bytes` bytes, if it is known: its last [`END`] bytes, or
/// all of a shorter one. Some members of arrays begin with what is in the array.
#[must_use]
pub fn recognise_end(end: &[u8], bytes: u64) -> Option<Foreign> {
    const SECTOR: u64 = 512;
    let sectors = bytes / SECTOR;
    let first = bytes.checked_sub(end.len() as u64)?;
    let places = [(sectors.checked_sub(16)? & !7, 1_u32), ((sectors & !127).checked_sub(128)?, 0)];
    let is_one = |(place, version): (u64, u32)| {
        let at = usize::try_from((place * SECTOR).checked_sub(first)?).ok()?;
        let mark: Vec<u8> =
            [0xa92b_4efc, version].iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
        end.get(at..)?.starts_with(&mark).then_some(())
    };
    places.into_iter().find_map(is_one)?;
    let Format { kind, name, way, .. } = RAID;
    Some(Foreign { kind, name, label: None, uuid: None, way })
}

/// A label without what fills its field.
fn label(field: &[u8]) -> Option<Vec<u8>> {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    let label = field[..end].trim_ascii_end();
    // What FAT has for none.
    (!label.is_empty() && label != b"NO NAME").then(|| label.to_vec())
}

/// A UUID, unless nobody has set it.
fn uuid(head: &[u8], at: usize) -> Option<String> {
    let bytes: [u8; 16] = head.get(at..at + 16)?.try_into().ok()?;
    (bytes != [0; 16]).then(|| uuid::Uuid::from_bytes(bytes).to_string())
}

/// Whether there is a superblock of ext2, ext3 or ext4: its mark has two bytes, so other fields have to
/// be possible, too.
fn is_ext(head: &[u8]) -> bool {
    let Some(superblock) = head.get(1024..2048) else { return false };
    let le32 = |at: usize| {
        superblock[at..at + 4]
            .iter()
            .rev()
            .fold(0_u32, |number, byte| number << 8 | u32::from(*byte))
    };
    let (inodes, first_block, block_log, revision) = (le32(0), le32(20), le32(24), le32(76));
    superblock[56..58] == [0x53, 0xef]
        && inodes != 0
        && first_block <= 1
        && block_log <= 6
        && revision <= 1
}

/// Whether a sector has partitions: four entries that can be, one of them in use.
fn is_boot_record(head: &[u8]) -> bool {
    let Some(entries) = head.get(446..510) else { return false };
    let mut entries = entries.chunks_exact(16);
    let can_be = entries.clone().all(|entry| matches!(entry[0], 0 | 0x80));
    head.get(510..512) == Some(&[0x55, 0xaa]) && can_be && entries.any(|entry| entry[4] != 0)
}

/// Whether one of the blocks in which a pool says what was written last is there.
fn is_zfs(head: &[u8]) -> bool {
    let magic: u64 = 0x00ba_b10c;
    let blocks = head.get(128 << 10..).unwrap_or_default().chunks_exact(1024);
    let is_one = |block: &[u8]| {
        block.starts_with(&magic.to_le_bytes()) || block.starts_with(&magic.to_be_bytes())
    };
    blocks.into_iter().any(is_one)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(marks: &[Mark]) -> Vec<u8> {
        let mut head = vec![0; HEAD];
        for (at, bytes) in marks {
            head[*at..at + bytes.len()].copy_from_slice(bytes);
        }
        head
    }

    #[test]
    fn formats_have_names_and_labels() {
        let ext4: [Mark; 3] = [(1080, &[0x53, 0xef]), (1144, b"data disk"), (1024, &[64])];
        let archive = with(&[&ext4[..], &[(257, b"ustar")]].concat());
        assert_eq!(recognise(&archive).unwrap().kind, Tar);
        assert_eq!(recognise(&with(&ext4[..1])), None);
        let ext4 = with(&ext4);
        let found = recognise(&ext4).unwrap();
        assert_eq!(found.kind, FileSystem);
        assert_eq!(found.to_string(), "an ext2, ext3 or ext4 file system labelled \"data disk\"");
        let fat = with(&[(82, b"FAT32   "), (71, b"NO NAME    "), (510, &[0x55, 0xaa])]);
        assert_eq!(recognise(&fat).unwrap().to_string(), "a FAT file system");
        let escape = with(&[(0, b"XFSB"), (108, b"\x1b[2J")]);
        assert_eq!(
            recognise(&escape).unwrap().to_string(),
            "an XFS file system labelled \"\\x1b[2J\""
        );
        assert_eq!(recognise(b"QFI\xfb").unwrap().kind, Container);
    }

    #[test]
    fn streams_are_no_storage() {
        for (bytes, name) in [
            (&b"\x1f\x8b\x08"[..], "data compressed with gzip"),
            (b"BZh91AY", "data compressed with bzip2"),
            (b"\x5d\0\0\x80\0\xff\xff\xff\xff\xff", "data compressed with lzma"),
            (b"XFSM\0\0", "a dump of the metadata of an XFS volume"),
        ] {
            let found = recognise(bytes).unwrap();
            assert_eq!(found.to_string(), name);
            assert!(!found.is_storage());
        }
    }

    #[test]
    fn boot_records_have_partitions() {
        let table = |kind, status, further: &[Mark]| {
            let mut head = with(further);
            (head[446], head[450]) = (status, kind);
            head[510..512].copy_from_slice(&[0x55, 0xaa]);
            recognise(&head)
        };
        assert_eq!(table(0x83, 0x80, &[]).unwrap().kind, Table);
        assert_eq!(table(0, 0, &[]), None);
        assert_eq!(table(0x83, 0x12, &[]), None);
        assert_eq!(table(0x83, 0, &[(257, b"ustar")]).unwrap().kind, Tar);
        assert_eq!(table(0xee, 0, &[(512, b"EFI PART")]).unwrap().name, "a partition table (GPT)");
    }

    #[test]
    fn other_bytes_are_nothing_known() {
        for bytes in [&[][..], b"QF", &[0; 4096], &[0xa5; 70_000]] {
            assert_eq!(recognise(bytes), None);
        }
        let pool = with(&[(140 << 10, &[0x0c, 0xb1, 0xba, 0, 0, 0, 0, 0])]);
        assert_eq!(recognise(&pool).unwrap().kind, Member);
    }
}
