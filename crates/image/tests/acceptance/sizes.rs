//! Sizes: those that are found fit, those that are too small name one that does.

use std::fs;
use std::path::Path;

use undercroft_image::pack::{PackError, SizeChoice};
use undercroft_judges::random::{Options, random_tree};
use undercroft_judges::{Scratch, kernel};
use undercroft_xfs::mkfs::{MkfsError, Preset};

use crate::archive_writer::ArchiveWriter;
use crate::judged::{assert_built, build, image_of, options};

const MIB: u64 = 1 << 20;

/// Trees that are large in one way each.
fn lopsided(name: &str, archive: &mut ArchiveWriter) {
    match name {
        "small files" => {
            (0..20_000).for_each(|file| archive.file(&format!("file-{file}"), b"x"));
        }
        "some data among empty files" => (0..30_000).for_each(|file| {
            archive.file(&format!("file-{file}"), if file % 64 == 0 { b"x" } else { b"" });
        }),
        "directories" => {
            (0..10_000).for_each(|number| archive.directory(&format!("directory-{number}")));
        }
        "long names" => (0..10_000).for_each(|file| {
            archive.file(&format!("{}{file}", "n".repeat(94)), b"");
        }),
        "links" => {
            archive.file("file", b"");
            (0..30_000).for_each(|link| archive.link(&format!("link-{link}"), "file"));
        }
        "a chain" => {
            let mut path = String::from("d");
            while path.len() < 95 {
                archive.directory(&path);
                (0..50).for_each(|file| archive.file(&format!("{path}/{file}"), b"x"));
                path.push_str("/d");
            }
        }
        _ => unreachable!("one of the names below"),
    }
}

#[test]
fn sizes_found_fit() {
    let home = tempfile::tempdir().unwrap();
    for name in [
        "small files",
        "some data among empty files",
        "directories",
        "long names",
        "links",
        "a chain",
    ] {
        let archive = home.path().join("archive");
        let mut writer = ArchiveWriter::create(&archive);
        lopsided(name, &mut writer);
        writer.finish();
        for (block_size, preset) in [
            (4096, Preset::Default),
            (4096, Preset::Linux4_19),
            (1024, Preset::Default),
            (16_384, Preset::Linux6_12),
            (65_536, Preset::Default),
        ] {
            for size in [SizeChoice::Minimum, SizeChoice::Auto] {
                let mut options = options(&archive, &home.path().join("image"));
                (options.force, options.size) = (true, size);
                (options.volume.block_size, options.volume.preset) = (block_size, preset);
                let summary = build(&options)
                    .unwrap_or_else(|error| panic!("{name}, {block_size}, {preset:?}: {error}"));
                println!(
                    "{name}, {block_size}, {preset:?}, {size:?}: {} MiB, {} free",
                    summary.image_bytes / MIB,
                    summary.free_bytes / MIB
                );
                if size == SizeChoice::Auto {
                    assert!(summary.free_bytes >= 16 * MIB, "{name}: {summary:?}");
                }
            }
        }
    }
}

#[test]
fn a_size_too_small_names_one_that_fits() {
    let home = tempfile::tempdir().unwrap();
    let tree = home.path().join("tree");
    fs::create_dir(&tree).unwrap();
    random_tree(&tree, 99, &Options { entries: 300, size_bits: 22, ..Options::default() }).unwrap();
    let mut options = options(&tree, &home.path().join("image"));
    for uuid in [None, Some(uuid::Uuid::from_u128(5))] {
        (options.size, options.uuid, options.force) = (SizeChoice::Exact(20 * MIB), uuid, true);
        let error = build(&options).unwrap_err();
        let text = error.to_string();
        let PackError::TooSmall { size, needed: Some(needed), .. } = error else {
            panic!("{error:?}");
        };
        assert_eq!(size, 20 * MIB);
        assert!(text.contains(&format!("use --size {needed}")), "{text}");
        assert!(!image_of(&options).exists());
        options.size = SizeChoice::Exact(needed);
        build(&options).unwrap();
        fs::remove_file(image_of(&options)).unwrap();
    }
}

#[test]
fn volumes_for_boot_partitions() {
    if !kernel::available_or_report("image::sizes::volumes_for_boot_partitions") {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let tree = home.path().join("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("vmlinuz"), vec![1; 4_000_000]).unwrap();
    let mut options = options(&tree, &home.path().join("image"));
    for size in [18 * MIB, 20 * MIB, 20_000_001, 31 * MIB, 32 * MIB, 33 * MIB, 64 * MIB, 100 * MIB]
    {
        (options.size, options.force) = (SizeChoice::Exact(size), true);
        assert_eq!(assert_built(&options, &tree).image_bytes, size);
    }
    options.size = SizeChoice::Exact(MIB);
    let refused = build(&options).unwrap_err();
    assert!(matches!(refused, PackError::Options(MkfsError::Range { min, .. }) if min == 16 * MIB));
}

#[test]
fn a_volume_takes_writes_of_a_kernel() {
    if !kernel::available_or_report("image::sizes::a_volume_takes_writes_of_a_kernel") {
        return;
    }
    let scratch = Scratch::new(64 * MIB).unwrap();
    fs::write(scratch.path().join("file"), "packed").unwrap();
    let home = tempfile::tempdir().unwrap();
    let options = options(scratch.path(), &home.path().join("image"));
    let summary = assert_built(&options, scratch.path());
    fill_by_kernel(image_of(&options));
    crate::judged::repair(image_of(&options), summary.image_bytes, &options.volume).unwrap();
}

/// Has the kernel write until the volume is full, and remove half of that again.
fn fill_by_kernel(image: &Path) {
    use undercroft_judges::{LoopMount, mount::Access};
    let mount = LoopMount::new(image, Access::ReadWrite, &[]).unwrap();
    let mut made = Vec::new();
    for number in 0.. {
        let path = mount.join(format!("file-{number}"));
        if fs::write(&path, vec![7; 100_000]).is_err() {
            break;
        }
        made.push(path);
    }
    assert!(made.len() > 100, "{} files were written", made.len());
    for path in made.iter().step_by(2) {
        fs::remove_file(path).unwrap();
    }
    mount.unmount().unwrap();
}
