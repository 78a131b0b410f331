//! Sizes of a FAT32 file system.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Least clusters of FAT32: with fewer, readers take it for FAT16.
const CLUSTERS_MIN: u64 = 65_525;
/// Most clusters of FAT32.
const CLUSTERS_MAX: u64 = 0x0fff_fff4;
/// Clusters that a table counts and that are not there.
pub(super) const FIRST_CLUSTER: u64 = 2;
/// Bytes of an entry of a table.
const ENTRY: u64 = 4;
/// Sectors ahead of the first table, at least.
const RESERVED: u64 = 32;
/// Tables.
pub(super) const TABLES: u64 = 2;

/// Steps in which a length is looked for.
const STEP: u64 = 1 << 20;

/// Sizes of a FAT32 file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Geometry {
    /// Bytes of a sector.
    pub(super) sector: u64,
    /// Sectors in all.
    pub(super) sectors: u64,
    /// Bytes of a cluster.
    pub(super) cluster: u64,
    /// Clusters.
    pub(super) clusters: u64,
    /// Sectors ahead of the first table.
    pub(super) reserved: u64,
    /// Sectors of a table.
    pub(super) table: u64,
}

impl Geometry {
    /// That of a file system of `bytes` bytes; `None` if it can be no FAT32.
    pub(super) fn new(bytes: u64, sector: u64) -> Option<Self> {
        let sectors = bytes / sector;
        u32::try_from(sectors).ok()?;
        let cluster = cluster_bytes(bytes).max(sector);
        let per_cluster = cluster / sector;
        // A little more than the clusters that are left need.
        let counted = (sectors / per_cluster + FIRST_CLUSTER) * ENTRY;
        let table = counted.div_ceil(sector);
        // The first cluster starts at a multiple of its length.
        let ahead = (RESERVED + TABLES * table).next_multiple_of(per_cluster);
        let clusters = sectors.checked_sub(ahead)? / per_cluster;
        let reserved = ahead - TABLES * table;
        (CLUSTERS_MIN..=CLUSTERS_MAX).contains(&clusters).then_some(Self {
            sector,
            sectors,
            cluster,
            clusters,
            reserved,
            table,
        })
    }

    /// The least one from `from` bytes on that `fits`; also one that is smaller if it is the least
    /// of all. `None` if none can be large enough.
    pub(super) fn least(
        from: u64,
        sector: u64,
        fits: impl Fn(u64) -> Option<Self>,
    ) -> Option<Self> {
        let limit = (u64::from(u32::MAX) * sector) / STEP;
        let mut low = from / STEP;
        if low >= limit {
            return None;
        }
        // Growing steps, since sizes of clusters make the answer jump; then halves between.
        let mut step = 1;
        let mut high = loop {
            let candidate = low.saturating_add(step).min(limit);
            if fits(candidate * STEP).is_some() {
                break candidate;
            }
            if candidate == limit {
                return None;
            }
            (low, step) = (candidate, step * 2);
        };
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if fits(middle * STEP).is_some() {
                high = middle;
            } else {
                low = middle;
            }
        }
        fits(high * STEP)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.sectors * self.sector
    }

    /// Where a table starts, in bytes.
    pub(super) fn table_at(&self, number: u64) -> u64 {
        (self.reserved + number * self.table) * self.sector
    }

    /// Where a cluster starts, in bytes.
    pub(super) fn cluster_at(&self, cluster: u64) -> u64 {
        let first = (self.reserved + TABLES * self.table) * self.sector;
        first + (cluster - FIRST_CLUSTER) * self.cluster
    }
}

/// Bytes of a cluster, by the table in the specification.
fn cluster_bytes(bytes: u64) -> u64 {
    let limits = [(260 << 20, 512), (8 << 30, 4096), (16 << 30, 8192), (32 << 30, 16_384)];
    let row = limits.into_iter().find(|(limit, _)| bytes <= *limit);
    row.map_or(32_768, |(_, cluster)| cluster)
}

/// Whether a file of `length` bytes begins as a FAT file system of any width that fits in it.
pub(in super::super) fn is_fat(file: &File, length: u64) -> bool {
    let mut boot = [0; 512];
    if file.read_exact_at(&mut boot, 0).is_err() || boot[510..] != [0x55, 0xaa] {
        return false;
    }
    let le16 = |at: usize| u64::from(u16::from_le_bytes([boot[at], boot[at + 1]]));
    let le32 = |at: usize| le16(at + 2) << 16 | le16(at);
    let (sector, per_cluster, reserved, tables) = (le16(11), boot[13], le16(14), boot[16]);
    let sectors = if le16(19) == 0 { le32(32) } else { le16(19) };
    (512..=4096).contains(&sector)
        && sector.is_power_of_two()
        && per_cluster.is_power_of_two()
        && reserved > 0
        && matches!(tables, 1 | 2)
        && sectors > 0
        && sectors * sector <= length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_lie_in_the_file_system_and_are_counted_by_its_table() {
        for sector in [512, 4096] {
            for mebibytes in [34, 64, 260, 261, 512, 8192, 8193, 20_000, 40_000, 2_000_000] {
                let bytes = mebibytes << 20;
                let Some(geometry) = Geometry::new(bytes, sector) else {
                    assert!(mebibytes < 261 && sector == 4096, "{mebibytes} MiB");
                    continue;
                };
                let Geometry { clusters, table, .. } = geometry;
                let last = geometry.cluster_at(clusters + FIRST_CLUSTER);
                assert!(last <= bytes && bytes - last < geometry.cluster, "{geometry:?}");
                assert!(table * sector >= (clusters + FIRST_CLUSTER) * ENTRY, "{geometry:?}");
                assert!(geometry.cluster_at(2).is_multiple_of(geometry.cluster));
            }
        }
        assert_eq!(Geometry::new(32 << 20, 512), None);
        assert_eq!(Geometry::new(4 << 40, 512), None);
    }

    #[test]
    fn the_least_that_fits_is_found() {
        for wanted in [1, 70_000, 1_000_000, 3_000_000] {
            let fits = |bytes| Geometry::new(bytes, 512).filter(|one| one.clusters >= wanted);
            let least = Geometry::least(0, 512, fits).unwrap();
            assert!(fits(least.bytes()).is_some() && fits(least.bytes() - STEP).is_none());
        }
        assert_eq!(Geometry::least(0, 512, |_| None), None);
    }
}
