//! A tree with every odd thing, in many formats.

use undercroft_judges::{Scratch, kernel, odd};
use undercroft_xfs::mkfs::{Feature, MkfsOptions, Preset};

use undercroft_testkit::image::judged::{assert_built, options};

const MIB: u64 = 1 << 20;

/// The odd tree on a volume that takes all of it.
pub(crate) fn odd_tree() -> Scratch {
    let scratch = Scratch::new(512 * MIB).unwrap();
    let left_out = odd::odd_tree(scratch.path()).unwrap();
    assert!(left_out.is_empty(), "{left_out:#?}");
    scratch
}

/// A name for messages and its change.
type Format = (&'static str, fn(&mut MkfsOptions));

/// Builds the odd tree in each of these formats.
fn build_each(formats: &[Format]) {
    let tree = odd_tree();
    for (name, change) in formats {
        println!("format {name}");
        let directory = tempfile::tempdir().unwrap();
        let mut options = options(tree.path(), &directory.path().join("image"));
        change(&mut options.volume);
        assert_built(&options, tree.path());
    }
}

#[test]
fn block_sizes() {
    if !kernel::available_or_report() {
        return;
    }
    build_each(&[
        ("default", |_| ()),
        ("1k", |volume| volume.block_size = 1024),
        ("2k", |volume| volume.block_size = 2048),
        ("8k", |volume| volume.block_size = 8192),
        ("16k", |volume| volume.block_size = 16_384),
        ("32k", |volume| volume.block_size = 32_768),
        ("64k", |volume| volume.block_size = 65_536),
    ]);
}

#[test]
fn presets() {
    if !kernel::available_or_report() {
        return;
    }
    let tree = odd_tree();
    for name in Preset::names().split(", ") {
        println!("preset {name}");
        let directory = tempfile::tempdir().unwrap();
        let mut options = options(tree.path(), &directory.path().join("image"));
        options.volume.preset = name.parse().unwrap();
        // Presets before 5.15 cannot hold the times after 2038.
        options.volume.features.push((Feature::Bigtime, true));
        assert_built(&options, tree.path());
    }
}

#[test]
fn geometries() {
    if !kernel::available_or_report() {
        return;
    }
    build_each(&[
        ("inode 1k", |volume| volume.inode_size = 1024),
        ("inode 2k", |volume| volume.inode_size = 2048),
        ("directory 16k", |volume| volume.dir_block_size = Some(16_384)),
        ("directory 64k", |volume| volume.dir_block_size = Some(65_536)),
        ("block 1k, directory 8k", |volume| {
            (volume.block_size, volume.dir_block_size) = (1024, Some(8192));
        }),
        ("sector 4096", |volume| volume.sector_size = 4096),
        ("one group", |volume| volume.ag_count = Some(1)),
        ("eleven groups", |volume| volume.ag_count = Some(11)),
        ("groups of 16 MiB", |volume| volume.ag_size = Some(16 * MIB)),
        ("stripe", |volume| volume.stripe = Some((65_536, 4 * 65_536))),
        ("log stripe", |volume| volume.log_stripe_unit = Some(32_768)),
        ("no inode limit", |volume| volume.inode_max_percent = Some(0)),
    ]);
}

#[test]
fn single_features() {
    use Feature::{Exchange, Finobt, Inobtcount, Nrext64, Parent, Reflink, Rmapbt, Sparse};
    if !kernel::available_or_report() {
        return;
    }
    build_each(&[
        ("no parent", |volume| volume.features = vec![(Parent, false)]),
        ("no rmapbt", |volume| volume.features = vec![(Rmapbt, false)]),
        ("no reflink", |volume| volume.features = vec![(Reflink, false)]),
        ("no rmapbt, no reflink", |volume| {
            volume.features = vec![(Rmapbt, false), (Reflink, false)];
        }),
        ("no finobt", |volume| volume.features = vec![(Finobt, false), (Inobtcount, false)]),
        ("no inobtcount", |volume| volume.features = vec![(Inobtcount, false)]),
        ("no sparse inodes", |volume| volume.features = vec![(Sparse, false)]),
        ("no nrext64", |volume| volume.features = vec![(Nrext64, false)]),
        ("no exchange, no parent", |volume| {
            volume.features = vec![(Exchange, false), (Parent, false)];
        }),
        ("rmapbt and parent pointers in small inodes and blocks", |volume| {
            (volume.preset, volume.block_size) = (Preset::Linux6_1, 1024);
            volume.features = vec![(Rmapbt, true), (Parent, true), (Nrext64, true)];
        }),
    ]);
}
