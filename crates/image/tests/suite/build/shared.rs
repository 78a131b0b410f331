//! Blocks shared between source and image: the same bytes as without.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use undercroft_image::disk::{Content, DiskOptions, Partition, PartitionKind};
use undercroft_image::pack::{PackError, PackOptions, Reflink};
use undercroft_judges::random::{Options, random_tree};
use undercroft_judges::{Scratch, Xfsprogs, kernel};
use undercroft_source::SourceSpec;

use undercroft_testkit::image::judged::{assert_built, build, chain, image_of, options};

/// A tree with files around every length at which something changes, and more than are shared at a
/// time.
fn tree(home: &Path) -> PathBuf {
    let tree = home.join("tree");
    fs::create_dir(&tree).unwrap();
    random_tree(&tree, 99, &Options { entries: 150, ..Options::default() }).unwrap();
    const K: usize = 1 << 10;
    for length in [1, 4095, 4096, 64 * K - 1, 64 * K, 64 * K + 1, 100 * K, 1 << 20, 9_000_001] {
        let bytes: Vec<u8> = (0..length).map(|at| (at / 7 % 253) as u8 + 1).collect();
        fs::write(tree.join(format!("file-of-{length}")), bytes).unwrap();
    }
    fs::create_dir(tree.join("many")).unwrap();
    for number in 0..600 {
        let name = tree.join("many").join(number.to_string());
        fs::write(name, vec![number as u8 | 1; 64 * K + number]).unwrap();
    }
    let sparse = File::create(tree.join("sparse")).unwrap();
    sparse.set_len(40 << 20).unwrap();
    for (at, length) in [(0, 80 << 10), (1 << 20, 4096), (5 << 20, 3 << 20), (39 << 20, 70_000)] {
        sparse.write_all_at(&vec![3; length], at).unwrap();
    }
    // So that nothing is only in memory.
    rustix::fs::sync();
    tree
}

/// Bytes of `file` in extents that the kernel calls shared.
fn shared_bytes(file: &Path) -> u64 {
    const SHARED: u64 = 0x2000;
    let io = Xfsprogs::newest().unwrap().tool("xfs_io").unwrap().to_owned();
    let answer = Command::new(io).args(["-r", "-c", "fiemap -v"]).arg(file).output().unwrap();
    assert!(answer.status.success());
    let text = String::from_utf8(answer.stdout).unwrap();
    // EXT: FILE-OFFSET BLOCK-RANGE TOTAL FLAGS, in sectors.
    let extents = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace().rev();
        let flags = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
        let sectors: u64 = words.next()?.parse().ok()?;
        (flags & SHARED != 0).then_some(sectors * 512)
    });
    extents.sum()
}

fn assert_same(left: &Path, right: &Path) {
    assert!(Command::new("cmp").arg(left).arg(right).status().unwrap().success());
}

#[test]
fn shared_blocks_make_the_same_image() {
    if !kernel::available_or_report() {
        return;
    }
    let scratch = Scratch::new(4 << 30).unwrap();
    let tree = tree(scratch.path());
    for block_size in [1024, 4096, 65_536] {
        let with = |reflink, name: &str| {
            let mut options = options(&tree, &scratch.path().join(name));
            (options.reflink, options.force) = (reflink, true);
            options.volume.block_size = block_size;
            options
        };
        let never = with(Reflink::Never, "never");
        assert_eq!(build(&never).unwrap().shared_bytes, 0);
        assert_eq!(shared_bytes(image_of(&never)), 0);
        // Where blocks of the volume are smaller, not all extents begin at one of the file system.
        let small = block_size < 4096;
        let all = [Reflink::Auto, Reflink::Always];
        for reflink in if small { &all[..1] } else { &all } {
            let options = with(*reflink, "shared");
            let summary = assert_built(&options, &tree);
            assert_same(image_of(&never), image_of(&options));
            // The large files, but for their ends.
            assert!(small || summary.shared_bytes > 12 << 20, "{}", summary.shared_bytes);
            assert_eq!(shared_bytes(image_of(&options)), summary.shared_bytes);
        }
    }
}

#[test]
fn disks_and_stacks_share_too() {
    if !kernel::available_or_report() {
        return;
    }
    let scratch = Scratch::new(4 << 30).unwrap();
    let tree = tree(scratch.path());
    let at = |name: &str| scratch.path().join(name);
    let root = PartitionKind::named("root-arm64").unwrap();
    let partitions = vec![Partition::new(root, Content::Volume)];
    let mut disk = options(&tree, &at("never"));
    (disk.disk, disk.reflink) = (Some(DiskOptions { partitions, size: None }), Reflink::Never);
    build(&disk).unwrap();
    (disk.image, disk.reflink) = (at("shared").into(), Reflink::Always);
    assert!(build(&disk).unwrap().shared_bytes > 12 << 20);
    assert_same(&at("never"), &at("shared"));

    let legs = |name: &str| {
        let legs = ["a", "b"].map(|leg| at(&format!("{name}-{leg}")));
        (format!("stripe:64k({},{})", legs[0].display(), legs[1].display()), legs)
    };
    let mut made = Vec::new();
    for (name, reflink) in [("never", Reflink::Never), ("shared", Reflink::Always)] {
        let (text, legs) = legs(name);
        let options = PackOptions::new(
            SourceSpec::Path(tree.clone()),
            text.parse::<undercroft_block::stack::Description>().unwrap(),
        );
        let summary = build(&PackOptions { reflink, ..options }).unwrap();
        assert_eq!(summary.shared_bytes > 0, reflink == Reflink::Always);
        made.push(legs);
    }
    made[0].iter().zip(&made[1]).for_each(|(one, other)| assert_same(one, other));
}

#[test]
fn what_cannot_be_shared_is_copied_or_refused() {
    if !kernel::available_or_report() {
        return;
    }
    let scratch = Scratch::new(1 << 30).unwrap();
    let tree = tree(scratch.path());
    let home = tempfile::tempdir().unwrap();
    let mut elsewhere = options(&tree, &home.path().join("image"));
    elsewhere.reflink = Reflink::Always;
    let error = build(&elsewhere).unwrap_err();
    let PackError::NotShared { path, .. } = &error else { panic!("{}", chain(&error)) };
    assert!(tree.join(path).is_file() && error.to_string().contains("cannot be shared"), "{error}");
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
    elsewhere.reflink = Reflink::Auto;
    assert_eq!(assert_built(&elsewhere, &tree).shared_bytes, 0);

    let mirror = format!("mirror({0}/a,{0}/b)", scratch.path().display());
    let description: undercroft_block::stack::Description = mirror.parse().unwrap();
    let mirrored = PackOptions::new(SourceSpec::Path(tree.clone()), description);
    let error = build(&PackOptions { reflink: Reflink::Always, ..mirrored.clone() }).unwrap_err();
    assert!(matches!(error, PackError::NothingToShare(_)), "{error}");
    assert!(!scratch.path().join("a").exists());
    assert_eq!(build(&mirrored).unwrap().shared_bytes, 0);

    let archive = scratch.path().join("tree.tar");
    let tar = Command::new("tar").arg("-C").arg(&tree).arg("-cf").arg(&archive).arg(".").status();
    assert!(tar.unwrap().success());
    let mut packed = options(&archive, &scratch.path().join("image"));
    packed.reflink = Reflink::Always;
    let error = build(&packed).unwrap_err();
    assert!(error.to_string().contains("the source is not a directory"), "{error}");
}
