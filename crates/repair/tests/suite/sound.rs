//! Sound volumes of random forms: nothing of them is to change.

use std::sync::Arc;

use undercroft_block::{BlockDevice, MemoryDevice};
use undercroft_fs::{FileSystem, OpenOptions, SetMode};
use undercroft_judges::random::Random;
use undercroft_judges::rounds;
use undercroft_repair::Plan;
use undercroft_xfs::format::FileType;
use undercroft_xfs::mkfs::{self, Feature, MkfsOptions};
use undercroft_xfs::ops::NewInode;
use uuid::Uuid;

/// Most files that are made, linked, copied or removed again.
const STEPS: u64 = 120;

/// A random form; `None` if there is no such volume.
fn made(random: &mut Random) -> Option<Arc<dyn BlockDevice>> {
    let mut of = |values: &[u32]| values[random.below(values.len() as u64) as usize];
    let block_size = of(&[1024, 2048, 4096, 4096, 16_384, 65_536]);
    let (inode_size, sector_size) = (of(&[512, 512, 1024, 2048]), of(&[512, 512, 4096]));
    let dir_block_size = Some(of(&[4096, 8192, 65_536])).filter(|size| *size >= block_size);
    let features = [
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
    let features = features.into_iter().filter(|_| random.one_in(4)).map(|it| (it, false));
    let options = MkfsOptions {
        block_size,
        inode_size,
        sector_size,
        dir_block_size,
        features: features.collect(),
        ..MkfsOptions::new((320 << 20) + (random.below(64) << 20), Uuid::from_u128(13))
    };
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(options.size));
    let plan = mkfs::plan(&options).ok()?;
    let volume = mkfs::begin(&device, plan, &NewInode::new(FileType::Directory, 0o755)).unwrap();
    mkfs::finish(&volume, false).unwrap();
    Some(device)
}

/// Changes a volume; what cannot be done is left out.
fn populate(device: &Arc<dyn BlockDevice>, random: &mut Random) {
    let fs = FileSystem::open(Arc::clone(device), &OpenOptions::writable()).unwrap();
    let mut directories = vec![String::new()];
    let mut files: Vec<String> = Vec::new();
    for step in 0..random.below(STEPS) {
        let parent = &directories[random.below(directories.len() as u64) as usize];
        let path = format!("{parent}/{step}-{}", "n".repeat(random.below(200) as usize));
        let old = files.get(random.below(files.len() as u64 + 1) as usize).cloned();
        match (random.below(7), old) {
            (0, _) if fs.create_dir(&path).is_ok() => directories.push(path),
            (1, _) => drop(fs.symlink("t".repeat(1 + random.below(1000) as usize), &path)),
            (2, Some(old)) => drop(fs.hard_link(&old, &path)),
            (3, Some(old)) => drop(fs.remove_file(&old)),
            (4, Some(old)) => {
                if let Ok(metadata) = fs.metadata(&old) {
                    let number = metadata.number;
                    let value = vec![b'v'; random.below(5000) as usize];
                    let name = format!("user.{step}");
                    drop(fs.nodes().set_xattr(number, name.as_bytes(), &value, SetMode::Either));
                }
            }
            (5, Some(old)) => drop(fs.copy(&old, &path)),
            _ => {
                let content = vec![step as u8; random.below(40_000) as usize];
                if fs.write(&path, content).is_ok() {
                    files.push(path);
                }
            }
        }
    }
    fs.close().unwrap();
}

#[test]
fn nothing_of_a_sound_volume_is_to_change() {
    let seed = std::env::var("UNDERCROFT_SEED").ok().and_then(|text| text.parse().ok());
    let seed: u64 = seed.unwrap_or(0x5eed);
    let (mut done, mut number) = (0, 0);
    while done < rounds(20, 10_000) {
        number += 1;
        let mut random = Random::new(seed + number);
        let Some(device) = made(&mut random) else { continue };
        populate(&device, &mut random);
        let plan = Plan::find(device).unwrap_or_else(|error| panic!("{}: {error}", seed + number));
        let seed = seed + number;
        assert!(plan.is_sound(), "{seed}: {:?} {:?}", plan.faults, plan.actions);
        assert!(plan.blocks() == 0 && plan.actions.is_empty(), "{seed}: {:?}", plan.actions);
        done += 1;
    }
    println!("{done} sound volumes, nothing to change");
}
