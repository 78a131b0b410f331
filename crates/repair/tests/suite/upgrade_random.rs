//! Random volumes of the kernel with random features turned on and off.

use std::sync::Arc;

use undercroft_block::{BlockDevice, FileDevice};
use undercroft_judges::mount::{Access, LoopMount};
use undercroft_judges::random::{Options, Random, random_tree};
use undercroft_judges::{Xfsprogs, kernel, rounds};
use undercroft_repair::{RepairError, Upgrade, Wanted};
use undercroft_xfs::mkfs::{Feature, Preset};

use crate::files;
use crate::upgrade::features;

const SIZE: u64 = 320 << 20;

/// Features that change.
const ALL: [Feature; 9] = [
    Feature::Finobt,
    Feature::Sparse,
    Feature::Rmapbt,
    Feature::Reflink,
    Feature::Bigtime,
    Feature::Inobtcount,
    Feature::Nrext64,
    Feature::Exchange,
    Feature::Parent,
];

/// Arguments of `mkfs.xfs` for a random format.
fn format(random: &mut Random) -> Vec<String> {
    let mut of = |values: &[u32]| values[random.below(values.len() as u64) as usize];
    let block = of(&[1024, 2048, 4096, 4096, 4096, 16_384]);
    let (inode, sector) = (of(&[512, 512, 1024, 2048]).min(block / 2), of(&[512, 512, 4096]));
    let (directory, groups) = (of(&[4096, 16_384]).max(block), of(&[2, 3, 4, 4, 7]));
    let mut bit = || of(&[0, 1]);
    let (finobt, reflink, rmapbt, bigtime) = (bit(), bit(), bit(), bit());
    let (sparse, nrext64, exchange, parent) = (bit(), bit(), bit(), bit());
    let inobtcount = finobt & bit();
    let group = of(&[0, 1, 1, 1]);
    [
        "-l".into(),
        format!("agnum={group}"),
        "-b".into(),
        format!("size={block}"),
        "-s".into(),
        format!("size={}", sector.min(block)),
        "-d".into(),
        format!("agcount={groups}"),
        "-n".into(),
        format!("size={directory},parent={parent}"),
        "-i".into(),
        format!("size={inode},sparse={sparse},nrext64={nrext64},exchange={exchange}"),
        "-m".into(),
        format!(
            "finobt={finobt},inobtcount={inobtcount},reflink={reflink},rmapbt={rmapbt},bigtime={bigtime}"
        ),
    ]
    .to_vec()
}

fn wanted(random: &mut Random) -> Wanted {
    let presets = [None, Some(Preset::Linux5_4), Some(Preset::Linux6_12), Some(Preset::Default)];
    let preset = presets[random.below(4) as usize];
    let chosen = ALL.into_iter().filter(|_| random.one_in(3)).collect::<Vec<_>>();
    let features = chosen.into_iter().map(|feature| (feature, !random.one_in(6))).collect();
    Wanted { preset, features }
}

/// Whether a random volume got other features; `None` if there is no such volume.
fn round(seed: u64) -> Option<bool> {
    let mut random = Random::new(seed);
    let directory = tempfile::tempdir().unwrap();
    let (image, tools) = (directory.path().join("image"), Xfsprogs::newest().unwrap());
    let format = format(&mut random);
    let arguments: Vec<&str> = format.iter().map(String::as_str).collect();
    tools.mkfs(&image, SIZE, &arguments).ok()?;
    let mount = LoopMount::new(&image, Access::ReadWrite, &[]).unwrap();
    random_tree(mount.path(), seed, &Options::default()).unwrap();
    mount.unmount().unwrap();
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(&image, false).unwrap());
    let before = (files::of(Arc::clone(&device)), features(&device));
    let wanted = wanted(&mut random);
    let told = format!("seed {seed}, {format:?}, {wanted:?}");
    match Upgrade::find(Arc::clone(&device), &wanted) {
        Ok(upgrade) if upgrade.is_done() => return Some(false),
        Ok(upgrade) => upgrade.commit(None).unwrap_or_else(|error| panic!("{told}: {error}")),
        Err(
            error @ (RepairError::Refused(_)
            | RepairError::NoRoom { .. }
            | RepairError::NoJournal { .. }),
        ) => {
            println!("seed {seed}: {error}");
            assert!(features(&device) == before.1, "{told}");
            return Some(false);
        }
        Err(error) => panic!("{told}: {error}"),
    }
    assert_eq!(files::of(Arc::clone(&device)), before.0, "{told}");
    drop(device);
    tools.repair_check(&image).unwrap_or_else(|error| panic!("{told}: {error}"));
    let mount = LoopMount::new(&image, Access::ReadWrite, &[]);
    let mount = mount.unwrap_or_else(|error| panic!("{told}: {error}"));
    let used = mount.join("used");
    std::fs::create_dir(&used).unwrap();
    random_tree(&used, seed + 1, &Options::default()).unwrap();
    mount.unmount().unwrap();
    tools.repair_check(&image).unwrap_or_else(|error| panic!("{told}, used: {error}"));
    Some(true)
}

#[test]
fn random_volumes_get_random_features() {
    if !kernel::available_or_report() {
        return;
    }
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let first = number("UNDERCROFT_SEED").unwrap_or(1);
    let most = number("UNDERCROFT_ROUNDS").unwrap_or_else(|| rounds(10, 300));
    let mut seen = [0_u64; 2];
    for seed in first..first + most {
        if let Some(done) = round(seed) {
            seen[usize::from(done)] += 1;
        }
    }
    println!("{} upgraded, {} refused or as they are to be", seen[1], seen[0]);
    assert!(seen[1] * 6 >= most, "{seen:?}");
}
