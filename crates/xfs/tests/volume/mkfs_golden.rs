//! Plans of new volumes against what `mkfs.xfs` writes for the same options, byte for byte:
//! superblocks of all groups, static blocks outside the first group, and the log.

use std::fmt::Debug;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::sync::LazyLock;
use undercroft_xfs::format::log_record::clean_log;
use undercroft_xfs::format::{Agf, BufferKind, Superblock, TreeKind, agi, checksum, superblock};
use undercroft_xfs::mkfs::{Feature, MkfsOptions, Preset, StaticBlock, ag_static, plan};
use undercroft_xfs::units::AgNumber;
use uuid::Uuid;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;
const ID: Uuid = Uuid::from_u128(0x1247_d4bd_7471_47ae_ab04_7c3a_9f76_97f2);

/// Features that `mkfs.xfs` 6.1 can be told; newer ones are turned off where they are known.
const SETTINGS: [(Feature, &str); 7] = [
    (Feature::Finobt, "m"),
    (Feature::Rmapbt, "m"),
    (Feature::Reflink, "m"),
    (Feature::Bigtime, "m"),
    (Feature::Inobtcount, "m"),
    (Feature::Sparse, "i"),
    (Feature::Nrext64, "i"),
];

/// Options with all features that the installed `mkfs.xfs` turns on by default.
fn options(size: u64) -> MkfsOptions {
    let preset = match version() {
        version if version >= (6, 18) => Preset::Default,
        version if version >= (6, 6) => Preset::Linux6_6,
        _ => Preset::Linux6_1,
    };
    MkfsOptions { preset, ..MkfsOptions::new(size, ID) }
}

/// `mkfs.xfs` version as major and minor number.
fn version() -> (u32, u32) {
    static VERSION: LazyLock<(u32, u32)> = LazyLock::new(|| {
        let output = Command::new("mkfs.xfs").arg("-V").output().expect("install xfsprogs");
        let text = String::from_utf8(output.stdout).unwrap();
        let number = text.split_whitespace().last().unwrap();
        let mut parts = number.split('.').map(|part| part.parse().unwrap());
        (parts.next().unwrap(), parts.next().unwrap())
    });
    *VERSION
}

fn arguments(options: &MkfsOptions) -> Vec<String> {
    let planned = plan(options).unwrap();
    let small = options.size < 300 * MIB
        || planned.ag_count == 1
        || options.log_size.is_some_and(|size| size < 64 * MIB);
    let planned = planned.features;
    let mut arguments = vec![
        "-q".into(),
        format!("-bsize={}", options.block_size),
        format!("-ssize={}", options.sector_size),
        format!("-isize={}", options.inode_size),
        format!("-muuid={}", options.uuid),
        "-K".into(),
    ];
    if small {
        arguments.push("--unsupported".into());
    }
    for (feature, letter) in SETTINGS {
        let on = match feature {
            Feature::Finobt => planned.finobt(),
            Feature::Rmapbt => planned.rmapbt(),
            Feature::Reflink => planned.reflink(),
            Feature::Bigtime => planned.bigtime(),
            Feature::Inobtcount => planned.inobtcnt(),
            Feature::Sparse => planned.sparse_inodes(),
            _ => planned.nrext64(),
        };
        arguments.push(format!("-{letter}{feature}={}", u8::from(on)));
    }
    if version() >= (6, 10) {
        let on = u8::from(planned.parent_pointers());
        arguments.extend([format!("-iexchange={on}"), format!("-nparent={on}")]);
    }
    let mut push = |prefix: &str, value: Option<u64>| {
        arguments.extend(value.map(|value| format!("{prefix}={value}")));
    };
    push("-nsize", options.dir_block_size.map(u64::from));
    push("-dagcount", options.ag_count.map(u64::from));
    push("-dagsize", options.ag_size);
    push("-lsize", options.log_size);
    push("-lsu", options.log_stripe_unit.map(u64::from));
    push("-dsu", options.stripe.map(|(unit, _)| unit));
    push("-dsw", options.stripe.map(|(unit, width)| width / unit));
    push("-imaxpct", options.inode_max_percent.map(u64::from));
    if !options.label.is_empty() {
        arguments.push(format!("-L{}", options.label));
    }
    arguments
}

/// Compares the plan with an image that `mkfs.xfs` makes.
fn compare(options: &MkfsOptions) -> Result<(), String> {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(options.size).unwrap();
    let arguments = arguments(options);
    let output = Command::new("mkfs.xfs")
        .args(&arguments)
        .arg(file.path())
        .output()
        .expect("install xfsprogs");
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("mkfs.xfs {arguments:?}: {said}"));
    }
    let planned = plan(options).unwrap();
    let describe = |what: &str, ours: &dyn Debug, theirs: &dyn Debug| {
        let (ours, theirs) = (format!("{ours:#?}"), format!("{theirs:#?}"));
        let differ = ours.lines().zip(theirs.lines()).filter(|(ours, theirs)| ours != theirs);
        let differ: Vec<_> = differ.take(20).collect();
        format!("size {} {arguments:?}: {what}, ours and theirs: {differ:#?}", options.size)
    };
    compare_superblocks(&planned, file.as_file(), &describe)?;
    compare_static_blocks(&planned, file.as_file(), &describe)?;
    let geometry = planned.geometry();
    let clean = clean_log(ID, planned.log_stripe_unit, 1);
    let mut log = vec![0; clean.len()];
    let place = geometry.sector(planned.log_start).0 * 512;
    file.as_file().read_exact_at(&mut log, place).unwrap();
    if log == clean { Ok(()) } else { Err(describe("log", &clean, &log)) }
}

type Describe<'a> = &'a dyn Fn(&str, &dyn Debug, &dyn Debug) -> String;

fn compare_superblocks(
    planned: &Superblock,
    image: &File,
    describe: Describe<'_>,
) -> Result<(), String> {
    let geometry = planned.geometry();
    for ag in (0..planned.ag_count).map(AgNumber) {
        let mut theirs = vec![0; geometry.sector_size()];
        image.read_exact_at(&mut theirs, geometry.header_sector(ag, 0).0 * 512).unwrap();
        let blocks = ag_static(planned, ag);
        let block = blocks.iter().find(|block| block.kind == BufferKind::Superblock).unwrap();
        let mut ours = block.bytes.clone();
        if ag.0 == 0 {
            finished(planned).encode(&mut ours);
        }
        checksum::stamp(&mut ours, superblock::CRC_OFFSET);
        if ours != theirs {
            let (ours, theirs) = (Superblock::decode(&ours), Superblock::decode(&theirs));
            return Err(describe(&format!("superblock {ag}"), &ours, &theirs));
        }
    }
    Ok(())
}

/// The group headers and empty trees of every group but the first, which has inodes; only what
/// filling the free list changes is left out.
fn compare_static_blocks(
    planned: &Superblock,
    image: &File,
    describe: Describe<'_>,
) -> Result<(), String> {
    let geometry = planned.geometry();
    for ag in (1..planned.ag_count).map(AgNumber) {
        for StaticBlock { sector, kind, bytes: mut ours } in ag_static(planned, ag) {
            let mut theirs = vec![0; ours.len()];
            image.read_exact_at(&mut theirs, sector.0 * 512).unwrap();
            let crc = match kind {
                BufferKind::Agi => agi::CRC_OFFSET,
                BufferKind::Agf => {
                    let (ours, theirs) =
                        (Agf::decode(&ours, &geometry), Agf::decode(&theirs, &geometry));
                    let filled = theirs.free_list_count;
                    let expected = (ours.free_blocks - filled, ours.bnobt, ours.cntbt, ours.rmapbt);
                    let found = (theirs.free_blocks, theirs.bnobt, theirs.cntbt, theirs.rmapbt);
                    if expected != found {
                        return Err(describe(&format!("AGF {ag}"), &expected, &found));
                    }
                    continue;
                }
                BufferKind::Tree(TreeKind::Inobt | TreeKind::Finobt | TreeKind::Refcountbt) => 52,
                BufferKind::Tree(_) => {
                    // All of the header but the number of records and the checksum.
                    if ours[..6] != theirs[..6] || ours[8..52] != theirs[8..52] {
                        let what = format!("{kind:?} of group {ag}");
                        return Err(describe(&what, &&ours[..56], &&theirs[..56]));
                    }
                    continue;
                }
                _ => continue,
            };
            checksum::stamp(&mut ours, crc);
            if ours != theirs {
                return Err(describe(&format!("{kind:?} of group {ag}"), &ours, &theirs));
            }
        }
    }
    Ok(())
}

/// The planned superblock after the three inodes that every volume has.
fn finished(planned: &Superblock) -> Superblock {
    let geometry = planned.geometry();
    let inodes = u64::from(geometry.chunk_inodes());
    Superblock {
        in_progress: false,
        inodes,
        free_inodes: inodes - 3,
        free_blocks: planned.free_blocks - u64::from(geometry.chunk_blocks()),
        ..planned.clone()
    }
}

fn compare_all(cases: impl IntoIterator<Item = MkfsOptions>) {
    let failures: Vec<_> = cases.into_iter().filter_map(|case| compare(&case).err()).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn volumes_of_all_sizes() {
    let sizes = [
        16 * MIB,
        24 * MIB,
        32 * MIB,
        48 * MIB + 12_345,
        64 * MIB,
        100 * MIB,
        128 * MIB,
        200 * MIB,
        299 * MIB,
        300 * MIB,
        301 * MIB,
        512 * MIB,
        GIB - 4096,
        GIB,
        3 * GIB + 777,
        10 * GIB,
        100 * GIB,
        200 * GIB,
        TIB - 4096,
        TIB,
        2 * TIB,
        4 * TIB - 4096,
        4 * TIB,
        5 * TIB,
    ];
    compare_all(sizes.map(options));
}

#[test]
fn block_sector_and_inode_sizes() {
    let mut cases = Vec::new();
    for block_size in [1024, 2048, 4096, 8192, 16_384, 32_768, 65_536] {
        for inode_size in [512, 1024, 2048] {
            for size in [GIB, 20 * GIB] {
                // Newer versions need a shorter free list where the space trees cannot grow, which
                // moves the root directory.
                let no_growth = block_size == 65_536 && size == GIB && version() < (6, 13);
                if inode_size <= block_size / 2 && !no_growth {
                    cases.push(MkfsOptions { block_size, inode_size, ..options(size) });
                }
            }
        }
        cases.push(MkfsOptions {
            block_size,
            features: vec![(Feature::Sparse, false)],
            ..options(2 * GIB)
        });
    }
    for block_size in [4096, 65_536] {
        cases.push(MkfsOptions { block_size, sector_size: 4096, ..options(2 * GIB) });
    }
    for dir_block_size in [8192, 65_536] {
        let dir_block_size = Some(dir_block_size);
        cases.push(MkfsOptions { dir_block_size, ..options(250 * MIB) });
    }
    compare_all(cases);
}

#[test]
fn features_with_the_least_log() {
    // Reverse mapping without reference counts is left out: mkfs.xfs makes a log there that is too
    // small for the kernel.
    let sets: [&[(Feature, bool)]; 6] = [
        &[],
        &[(Feature::Rmapbt, true)],
        &[(Feature::Rmapbt, true), (Feature::Nrext64, true)],
        &[(Feature::Reflink, false)],
        &[(Feature::Finobt, false), (Feature::Inobtcount, false)],
        &[(Feature::Bigtime, false), (Feature::Inobtcount, false)],
    ];
    let mut cases = Vec::new();
    for features in sets {
        for block_size in [1024, 4096, 16_384] {
            let features = features.to_vec();
            cases.push(MkfsOptions { block_size, features, ..options(250 * MIB) });
        }
    }
    compare_all(cases);
}

#[test]
fn groups_logs_and_stripes() {
    let base = options(2 * GIB);
    let with = |change: &dyn Fn(&mut MkfsOptions)| {
        let mut options = base.clone();
        change(&mut options);
        options
    };
    compare_all([
        with(&|o| o.ag_count = Some(1)),
        with(&|o| o.ag_count = Some(7)),
        with(&|o| o.ag_count = Some(16)),
        with(&|o| o.ag_size = Some(300 * MIB)),
        with(&|o| o.ag_size = Some(2 * GIB - 8 * MIB)),
        with(&|o| o.log_size = Some(10 * MIB)),
        with(&|o| o.log_size = Some(500 * MIB)),
        with(&|o| o.log_stripe_unit = Some(32 << 10)),
        with(&|o| o.log_stripe_unit = Some(256 << 10)),
        with(&|o| o.stripe = Some((64 << 10, 256 << 10))),
        with(&|o| o.stripe = Some((512 << 10, 2048 << 10))),
        with(&|o| o.stripe = Some((64 << 10, 64 << 10))),
        with(&|o| {
            o.stripe = Some((64 << 10, 256 << 10));
            o.ag_count = Some(4);
        }),
        with(&|o| {
            o.stripe = Some((64 << 10, 256 << 10));
            o.ag_count = Some(7);
        }),
        // Not one group with stripes: ours does not align that log.
        with(&|o| {
            o.log_stripe_unit = Some(36 << 10);
            o.ag_size = Some(128 * MIB + 4096);
        }),
        with(&|o| {
            o.stripe = Some((64 << 10, 256 << 10));
            o.ag_size = Some(128 * MIB + (64 << 10));
        }),
        with(&|o| {
            o.stripe = Some((64 << 10, 192 << 10));
            o.log_stripe_unit = Some(16 << 10);
        }),
        with(&|o| {
            o.label = "twelve bytes".into();
            o.inode_max_percent = Some(10);
        }),
        MkfsOptions { stripe: Some((64 << 10, 256 << 10)), ..options(513 * GIB) },
        MkfsOptions { stripe: Some((64 << 10, 256 << 10)), ..options(9 * GIB) },
    ]);
}
