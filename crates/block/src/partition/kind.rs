//! What a partition is for, as its entry in the table says.

use std::fmt;

use super::guid::Guid;

/// What a partition is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartitionKind {
    /// Of a GUID partition table.
    Gpt(Guid),
    /// Of a master boot record.
    Mbr(u8),
}

/// Names of the first bytes of GUIDs as text has them (UAPI group, Discoverable Partitions
/// Specification; UEFI specification, section 5.3.3), which tell them apart.
const GUIDS: &[(u32, &str)] = &[
    (0xc12a_7328, "EFI system"),
    (0x2168_6148, "BIOS boot"),
    (0xbc13_c2ff, "Linux extended boot"),
    (0x0fc6_3daf, "Linux file system"),
    (0x4f68_bce3, "Linux root (x86-64)"),
    (0xb921_b045, "Linux root (ARM 64)"),
    (0x8484_680c, "Linux /usr (x86-64)"),
    (0xb0e0_1050, "Linux /usr (ARM 64)"),
    (0x933a_c7e1, "Linux home"),
    (0x3b8f_8425, "Linux server data"),
    (0x4d21_b016, "Linux variable data"),
    (0x0657_fd6d, "Linux swap"),
    (0xe6d6_d379, "Linux LVM"),
    (0xa19d_880f, "Linux RAID"),
    (0xca7d_7ccb, "Linux LUKS"),
    (0x9e1a_2d38, "PowerPC PReP boot"),
    (0xe3c9_e316, "Microsoft reserved"),
    (0xebd0_a0a2, "Microsoft basic data"),
];

/// Names of types in a master boot record, as fdisk has them.
const TYPES: &[(u8, &str)] = &[
    (0x01, "FAT12"),
    (0x06, "FAT16"),
    (0x07, "NTFS or exFAT"),
    (0x0b, "FAT32"),
    (0x0c, "FAT32"),
    (0x0e, "FAT16"),
    (0x41, "PowerPC PReP boot"),
    (0x82, "Linux swap"),
    (0x83, "Linux"),
    (0x8e, "Linux LVM"),
    (0xef, "EFI system"),
    (0xfd, "Linux RAID"),
];

impl fmt::Display for PartitionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gpt(guid) => {
                let [a, b, c, d, ..] = guid.0;
                let first = u32::from_le_bytes([a, b, c, d]);
                let name = GUIDS.iter().find(|(known, _)| *known == first);
                match name {
                    Some((_, name)) => f.write_str(name),
                    None => guid.fmt(f),
                }
            }
            Self::Mbr(kind) => {
                let name = TYPES.iter().find(|(known, _)| known == kind);
                match name {
                    Some((_, name)) => f.write_str(name),
                    None => write!(f, "type {kind:#04x}"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_names() {
        let linux = [
            0xaf, 0x3d, 0xc6, 0x0f, 0x83, 0x84, 0x72, 0x47, 0x8e, 0x79, 0x3d, 0x69, 0xd8, 0x47,
            0x7d, 0xe4,
        ];
        assert_eq!(PartitionKind::Gpt(Guid(linux)).to_string(), "Linux file system");
        let mut other = linux;
        other[0] = 0;
        let text = "0fc63d00-8483-4772-8e79-3d69d8477de4";
        assert_eq!(PartitionKind::Gpt(Guid(other)).to_string(), text);
        assert_eq!(PartitionKind::Mbr(0x83).to_string(), "Linux");
        assert_eq!(PartitionKind::Mbr(0xa5).to_string(), "type 0xa5");
    }
}
