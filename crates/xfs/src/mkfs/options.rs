//! The options of a new volume.

use super::feature::{Feature, Preset, first_kernel};
use super::features::chosen;
use super::kernel::Kernel;
use uuid::Uuid;

/// Choices for a new volume; all sizes are in bytes. `None` means the default of `mkfs.xfs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MkfsOptions {
    /// Length of the volume; the part behind the last whole block is not used.
    pub size: u64,
    /// Length that the volume will be grown to. Its groups are as long as those of a volume of that
    /// length, which `ag_count` and `ag_size` are about as well: a small volume is one short group.
    pub grown_size: Option<u64>,
    /// Block size: 1024 to 65536, a power of two.
    pub block_size: u32,
    /// Sector size: 512 or 4096.
    pub sector_size: u32,
    /// Inode size: 512, 1024 or 2048, at most half a block.
    pub inode_size: u32,
    /// Directory block size: at least 4096 and the block size, at most 65536.
    pub dir_block_size: Option<u32>,
    /// Number of groups; excludes `ag_size`.
    pub ag_count: Option<u32>,
    /// Size of a group: 16 MiB to 1 TiB; excludes `ag_count`.
    pub ag_size: Option<u64>,
    /// Size of the log; rounded up to whole blocks and log stripe units.
    pub log_size: Option<u64>,
    /// Log stripe unit: a multiple of the block size up to 256 KiB.
    pub log_stripe_unit: Option<u32>,
    /// Data stripe unit and stripe width.
    pub stripe: Option<(u64, u64)>,
    /// Label: at most 12 bytes, without a zero byte.
    pub label: String,
    /// Identifier of the volume.
    pub uuid: Uuid,
    /// Features to start from.
    pub preset: Preset,
    /// Features to turn on or off; the last setting of a feature counts.
    pub features: Vec<(Feature, bool)>,
    /// Share of the space that inodes may take, in percent; 0 means all.
    pub inode_max_percent: Option<u8>,
}

impl MkfsOptions {
    /// Defaults for a volume of `size` bytes.
    #[must_use]
    pub const fn new(size: u64, uuid: Uuid) -> Self {
        Self {
            size,
            grown_size: None,
            block_size: 4096,
            sector_size: 512,
            inode_size: 512,
            dir_block_size: None,
            ag_count: None,
            ag_size: None,
            log_size: None,
            log_stripe_unit: None,
            stripe: None,
            label: String::new(),
            uuid,
            preset: Preset::Default,
            features: Vec::new(),
            inode_max_percent: None,
        }
    }
}

impl MkfsOptions {
    /// The oldest kernel that mounts a volume with these features.
    #[must_use]
    pub fn first_kernel(&self) -> Kernel {
        first_kernel(chosen(self.preset, &self.features))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_those_that_kernels_mount() {
        let preset = |major, minor| Preset::for_kernel(Kernel::new(major, minor));
        assert_eq!(preset(3, 10), None);
        assert_eq!(preset(4, 18), Some(Preset::Linux4_19));
        assert_eq!(preset(5, 14), Some(Preset::Linux5_10));
        assert_eq!(preset(6, 1), Some(Preset::Linux6_1));
        assert_eq!(preset(6, 9), Some(Preset::Linux6_6));
        assert_eq!(preset(6, 10), Some(Preset::Default));
        for preset in Preset::all() {
            let options = MkfsOptions { preset, ..MkfsOptions::new(0, Uuid::nil()) };
            let of = preset.kernel().unwrap_or(Kernel::new(6, 18));
            assert!(options.first_kernel() <= of, "{preset:?}");
        }
    }

    #[test]
    fn single_features_count() {
        let features = vec![(Feature::Parent, false), (Feature::Exchange, false)];
        let options = MkfsOptions { features, ..MkfsOptions::new(0, Uuid::nil()) };
        assert_eq!(options.first_kernel(), Kernel::new(5, 19));
    }
}
