//! What partitions are for: the types of the Discoverable Partitions Specification (UAPI group),
//! by which systems find their parts without a table of mounts.

use std::fmt;
use uuid::Uuid;

/// What a partition is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionKind {
    name: String,
    id: Uuid,
}

const ESP: &str = "esp";
const XBOOTLDR: &str = "xbootldr";
const SWAP: &str = "swap";
const ROOT: &str = "root";
const USR: &str = "usr";

/// Kinds that are the same on every architecture.
const COMMON: [(&str, u128); 9] = [
    (ESP, 0xc12a7328_f81f_11d2_ba4b_00a0c93ec93b),
    (XBOOTLDR, 0xbc13c2ff_59e6_4262_a352_b275fd6f7172),
    (SWAP, 0x0657fd6d_a4ab_43c4_84e5_0933c84b4f4f),
    ("home", 0x933ac7e1_2eb4_4f13_b844_0e14e2aef915),
    ("srv", 0x3b8f8425_20e0_4f3b_907f_1a25a76f98e8),
    ("var", 0x4d21b016_b534_45c2_a9fb_5c16e091fd2d),
    ("tmp", 0x7ec6f557_3bc5_4aca_b293_16ef5df639d1),
    ("linux", 0x0fc63daf_8483_4772_8e79_3d69d8477de4),
    ("bios", 0x21686148_6449_6e6f_744e_656564454649),
];

/// Architectures, with the kinds of their root and /usr.
const ARCHITECTURES: [(&str, u128, u128); 17] = [
    ("x86-64", 0x4f68bce3_e8cd_4db1_96e7_fbcaf984b709, 0x8484680c_9521_48c6_9c11_b0720656f69e),
    ("arm64", 0xb921b045_1df0_41c3_af44_4c6f280d3fae, 0xb0e01050_ee5f_4390_949a_9101b17104e9),
    ("riscv64", 0x72ec70a6_cf74_40e6_bd49_4bda08e8f224, 0xbeaec34b_8442_439b_a40b_984381ed097d),
    ("ppc64-le", 0xc31c45e6_3f39_412e_80fb_4809c4980599, 0x15bb03af_77e7_4d4a_b12b_c0d084f7491c),
    ("s390x", 0x5eead9a9_fe09_4a1e_a1d7_520d00531306, 0x8a4f5770_50aa_4ed3_874a_99b710db6fea),
    ("loongarch64", 0x77055800_792c_4f94_b39a_98c91b762bb6, 0xe611c702_575c_4cbe_9a46_434fa0bf7e3f),
    ("x86", 0x44479540_f297_41b2_9af7_d131d5f0458a, 0x75250d76_8cc6_458e_bd66_bd47cc81a812),
    ("arm", 0x69dad710_2ce4_4e3c_b16c_21a1d49abed3, 0x7d0359a3_02b3_4f0a_865c_654403e70625),
    ("riscv32", 0x60d5a7fe_8e7d_435c_b714_3dd8162144e1, 0xb933fb22_5c3f_4f91_af90_e2bb0fa50702),
    ("ppc64", 0x912ade1d_a839_4913_8964_a10eee08fbd2, 0x2c9739e2_f068_46b3_9fd0_01c5a9afbcca),
    ("ppc", 0x1de3f1ef_fa98_47b5_8dcd_4a860a654d78, 0x7d14fec5_cc71_415d_9d6c_06bf0b3c3eaf),
    ("s390", 0x08a7acea_624c_4a20_91e8_6e0fa67d23f9, 0xcd0f869b_d0fb_4ca0_b141_9ea87cc78d66),
    ("mips64-le", 0x700bda43_7a34_4507_b179_eeb93d7a7ca3, 0xc97c1f32_ba06_40b4_9f22_236061b08aa8),
    ("mips-le", 0x37c58c8a_d913_4156_a25f_48b1b64e07f0, 0x0f4868e9_9952_4706_979f_3ed3a473e947),
    ("ia64", 0x993d8d3d_f80e_4225_855a_9daf8ed7ea97, 0x4301d2a6_4e3b_4b2a_bb94_9e0b2c4225ea),
    ("alpha", 0x6523f8ae_3eb1_4e2a_a05a_18b695ae656f, 0xe18cf08c_33ec_4c0d_8246_c6c6fb3da024),
    ("arc", 0xd27f46ed_2919_4cb8_bd25_9531f3c16534, 0x7978a683_6316_4922_bbee_38bff5a2fecc),
];

/// The name of this machine's architecture in the specification.
fn own_architecture() -> Option<&'static str> {
    let little = cfg!(target_endian = "little");
    Some(match std::env::consts::ARCH {
        "x86_64" => "x86-64",
        "aarch64" => "arm64",
        "powerpc64" if little => "ppc64-le",
        "powerpc64" => "ppc64",
        "powerpc" => "ppc",
        "mips" if little => "mips-le",
        "mips64" if little => "mips64-le",
        "mips" | "mips64" => return None,
        same => same,
    })
}

impl PartitionKind {
    /// The kind called `name`: `root` and `usr` alone are those of this machine's architecture,
    /// with it (`root-arm64`) the same on every machine; or a type UUID.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let full = match name {
            ROOT | USR => format!("{name}-{}", own_architecture()?),
            _ => name.to_owned(),
        };
        let of_architecture = || {
            let (role, architecture) = full.split_once('-')?;
            let (_, root, usr) = ARCHITECTURES.iter().find(|(name, ..)| *name == architecture)?;
            match role {
                ROOT => Some(*root),
                USR => Some(*usr),
                _ => None,
            }
        };
        let common = COMMON.iter().find(|(name, _)| *name == full).map(|(_, id)| *id);
        match common.or_else(of_architecture) {
            Some(id) => Some(Self { name: full, id: Uuid::from_u128(id) }),
            None => Some(Self::from_id(Uuid::try_parse(name).ok()?)),
        }
    }

    /// The kind of a type UUID, which may be none that is known here.
    fn from_id(id: Uuid) -> Self {
        Self { name: id.to_string(), id }
    }

    /// All names, for messages.
    #[must_use]
    pub fn names() -> String {
        let common: Vec<_> = COMMON.iter().map(|(name, _)| *name).collect();
        let architectures: Vec<_> = ARCHITECTURES.iter().map(|(name, ..)| *name).collect();
        format!(
            "{}, root and usr (of this machine, or root-ARCH and usr-ARCH with {}), or a type UUID",
            common.join(", "),
            architectures.join(", ")
        )
    }

    /// Its name; that of a type UUID is the UUID.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its type UUID.
    #[must_use]
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// Whether firmware or a boot loader reads the partition, so that it must be FAT.
    pub(super) fn is_fat(&self) -> bool {
        self.name == ESP || self.name == XBOOTLDR
    }

    pub(super) fn is_swap(&self) -> bool {
        self.name == SWAP
    }

    pub(super) fn is_root(&self) -> bool {
        self.name.starts_with("root-")
    }
}

impl fmt::Display for PartitionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_one_name_and_one_id() {
        let mut seen = std::collections::HashSet::new();
        let architectures = ARCHITECTURES
            .iter()
            .flat_map(|(name, ..)| [ROOT, USR].map(|of| format!("{of}-{name}")));
        let names = COMMON.iter().map(|(name, _)| (*name).to_owned()).chain(architectures);
        for name in names {
            let kind = PartitionKind::named(&name).unwrap();
            assert_eq!(kind.name(), name);
            assert!(seen.insert(kind.id()), "{name}");
            // By its UUID it is another spelling of the same type.
            assert_eq!(PartitionKind::named(&kind.id().to_string()).unwrap().id(), kind.id());
        }
        for name in ["", "root-", "roots", "usr-sparc", "esp-x86-64"] {
            assert!(PartitionKind::named(name).is_none(), "{name}");
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn root_is_that_of_this_machine() {
        assert_eq!(PartitionKind::named("root"), PartitionKind::named("root-x86-64"));
    }
}
