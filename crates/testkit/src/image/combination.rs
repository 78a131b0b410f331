//! Random trees in random formats: one seed, one image, judged.

use std::fmt;
use std::path::Path;

use undercroft_image::pack::{PackError, SizeChoice, Summary};
use undercroft_judges::random::{Options, Random, random_tree};
use undercroft_judges::tree::{Difference, Field};
use undercroft_xfs::mkfs::{self, Feature, MkfsOptions, Preset};
use uuid::Uuid;

use crate::image::judged::{build, chain, compare_mounted, image_of, options, repair};

const MIB: u64 = 1 << 20;

/// What a seed stands for.
#[derive(Debug)]
pub struct Combination {
    pub seed: u64,
    tree: Options,
    volume: MkfsOptions,
    size: SizeChoice,
}

impl Combination {
    /// The combination of `seed`: formats that cannot be are passed over.
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let tree = Options {
            entries: 20 + random.magnitude(10) as usize,
            size_bits: 6 + random.below(16) as u32,
            ..Options::default()
        };
        loop {
            let volume = volume(&mut random);
            let Ok(least) = mkfs::minimum_size(&volume) else { continue };
            let exact = (least + random.magnitude(30)) / 512 * 512;
            if mkfs::plan(&MkfsOptions { size: exact, ..volume.clone() }).is_err() {
                continue;
            }
            let size = match random.below(3) {
                0 => SizeChoice::Auto,
                1 => SizeChoice::Minimum,
                _ => SizeChoice::Exact(exact),
            };
            return Self { seed, tree, volume, size };
        }
    }

    /// A larger tree in a volume of the same format, as small as it can be.
    pub fn smallest(seed: u64) -> Self {
        let mut random = Random::new(!seed);
        let tree = Options {
            entries: 500 + random.below(2000) as usize,
            size_bits: 8 + random.below(11) as u32,
            ..Options::default()
        };
        Self { tree, size: SizeChoice::Minimum, ..Self::new(seed) }
    }

    /// Builds the image, and says by how many bytes it has more room left for ordinary content than
    /// is allowed: 3 %, a mebibyte, and for each group what cannot be used up to the last block.
    pub fn surplus(&self) -> Result<i64, String> {
        let directory = tempfile::tempdir().unwrap();
        let tree = directory.path().join("tree");
        std::fs::create_dir(&tree).unwrap();
        random_tree(&tree, self.seed, &self.tree).map_err(|error| chain(&error))?;
        let mut options = options(&tree, &directory.path().join("image"));
        (options.volume, options.size) = (self.volume.clone(), self.size);
        let summary = build(&options).map_err(|error| chain(&error))?;
        let size = summary.image_bytes;
        let share = self.volume.inode_max_percent.is_some_and(|percent| percent > 0);
        let groups = self.volume.ag_size.is_some();
        if share || groups || size <= mkfs::minimum_size(&self.volume).unwrap() {
            // Something else than the content asks for the size.
            return Ok(0);
        }
        let plan = mkfs::plan(&MkfsOptions { size, ..self.volume.clone() }).unwrap();
        let geometry = plan.geometry();
        let piece = geometry.chunk_blocks().max(geometry.dir_block_blocks()).max(8);
        let fixed = (u64::from(plan.ag_count) * u64::from(4 * piece)) << plan.block_log;
        let available = summary.free_bytes - summary.reserved_bytes;
        let allowed = size / 100 * 3 + MIB + fixed;
        Ok(available.cast_signed() - allowed.cast_signed())
    }

    /// Makes the tree, builds the image and asks the judges. Says whether the size that the seed
    /// chose was too small, and the one that the error named was taken.
    pub fn run(&self) -> Result<bool, String> {
        let directory = tempfile::tempdir().unwrap();
        let tree = directory.path().join("tree");
        std::fs::create_dir(&tree).unwrap();
        random_tree(&tree, self.seed, &self.tree).map_err(|error| chain(&error))?;
        let mut options = options(&tree, &directory.path().join("image"));
        options.volume = self.volume.clone();
        options.size = self.size;
        let mut enlarged = false;
        let built = match (build(&options), self.size) {
            (
                Err(
                    PackError::TooSmall { needed: Some(needed), .. }
                    | PackError::Inodes { needed: Some(needed), .. },
                ),
                SizeChoice::Exact(_),
            ) => {
                enlarged = true;
                options.size = SizeChoice::Exact(needed);
                build(&options)
            }
            (built, _) => built,
        };
        let summary = built.map_err(|error| chain(&error))?;
        self.judge(&tree, image_of(&options), &summary)?;
        Ok(enlarged)
    }

    fn judge(&self, tree: &Path, image: &Path, summary: &Summary) -> Result<(), String> {
        repair(image, summary.image_bytes, &self.volume).map_err(|error| error.to_string())?;
        let found = compare_mounted(tree, image, self.volume.block_size);
        let found = found.map_err(|error| error.to_string())?;
        let is_clamped = |difference: &Difference| {
            summary.clamped_times > 0
                && difference.field == Field::Mtime
                && difference.right.starts_with("(2147483647,")
        };
        let all_clamped = found.differences.iter().all(is_clamped);
        if found.same() || (all_clamped && found.count == found.differences.len() as u64) {
            Ok(())
        } else {
            Err(found.to_string())
        }
    }
}

impl fmt::Display for Combination {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, tree, volume, size } = self;
        write!(formatter, "seed {seed}: {} entries, {size:?}, {volume:?}", tree.entries)
    }
}

/// A random format, perhaps an impossible one.
fn volume(random: &mut Random) -> MkfsOptions {
    let mut volume = MkfsOptions::new(0, Uuid::nil());
    let block_log = 10 + random.below(7) as u32;
    volume.block_size = 1 << block_log;
    if random.one_in(3) {
        volume.inode_size = 1 << (9 + random.below(3));
    }
    if random.one_in(3) {
        let least = block_log.max(12);
        let log = least + random.below(u64::from(17 - least)) as u32;
        volume.dir_block_size = Some(1 << log);
    }
    if random.one_in(3) {
        volume.sector_size = 4096;
    }
    let presets: Vec<String> = Preset::names().split(", ").map(str::to_owned).collect();
    if random.one_in(2) {
        let preset = &presets[random.below(presets.len() as u64) as usize];
        volume.preset = preset.parse().unwrap();
    }
    for name in Feature::names().split(", ") {
        if random.one_in(5) {
            volume.features.push((name.parse().unwrap(), random.one_in(2)));
        }
    }
    match random.below(4) {
        0 => volume.ag_count = Some(1 + random.below(8) as u32),
        1 => volume.ag_size = Some(16 * MIB + random.magnitude(26) / 65_536 * 65_536),
        _ => {}
    }
    if random.one_in(4) {
        let unit = u64::from(volume.block_size) << random.below(5);
        volume.stripe = Some((unit, unit * (1 + random.below(8))));
    }
    if random.one_in(4) {
        volume.log_stripe_unit = Some(volume.block_size << random.below(3));
    }
    if random.one_in(4) {
        volume.inode_max_percent = Some(random.below(101) as u8);
    }
    volume
}
