//! Sizes: automatic ones fit, and the error for one too small names one that does.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::fs::{XattrFlags, getxattr, setxattr};
use std::sync::Arc;
use undercroft_block::FileDevice;
use undercroft_image::pack::{PackError, SizeChoice};
use undercroft_image::unpack;
use undercroft_judges::mount::Access;
use undercroft_judges::random::{Options, random_tree};
use undercroft_judges::{LoopMount, Scratch, Xfsprogs, kernel, rounds};
use undercroft_xfs::Volume;
use undercroft_xfs::check::{CheckOptions, check};
use undercroft_xfs::mkfs::{self, Feature, MkfsError, Preset};

use crate::build::archive_writer::ArchiveWriter;
use undercroft_testkit::image::judged::{assert_built, build, image_of, options};

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
            archive.renamed(&format!("{}{file}", "n".repeat(240)));
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
    let names = [
        "small files",
        "some data among empty files",
        "directories",
        "long names",
        "links",
        "a chain",
    ];
    for (number, name) in names.into_iter().enumerate() {
        let archive = home.path().join("archive");
        let mut writer = ArchiveWriter::create(&archive);
        lopsided(name, &mut writer);
        writer.finish();
        let formats = [
            (4096, Preset::Default),
            (4096, Preset::Linux4_19),
            (1024, Preset::Default),
            (16_384, Preset::Linux6_12),
            (65_536, Preset::Default),
        ];
        // Two in turn, and all in a soak.
        let taken = formats.iter().cycle().skip(2 * number).take(rounds(2, formats.len()));
        for (block_size, preset) in taken.copied() {
            for size in [SizeChoice::Minimum, SizeChoice::Auto] {
                let mut options = options(&archive, &home.path().join("image"));
                (options.force, options.size) = (true, size);
                (options.volume.block_size, options.volume.preset) = (block_size, preset);
                let summary = build(&options)
                    .unwrap_or_else(|error| panic!("{name}, {block_size}, {preset:?}: {error}"));
                let available = summary.free_bytes - summary.reserved_bytes;
                println!(
                    "{name}, {block_size}, {preset:?}, {size:?}: {} KiB, {} free, {} of it usable",
                    summary.image_bytes >> 10,
                    summary.free_bytes >> 10,
                    available >> 10,
                );
                let least = mkfs::minimum_size(&options.volume).unwrap();
                if size == SizeChoice::Auto {
                    assert!(available >= 16 * MIB, "{name}: {summary:?}");
                } else if summary.image_bytes > least {
                    let mut fixed = 2 * MIB + 4 * 32 * u64::from(block_size);
                    if name == "some data among empty files" {
                        // A block between two chunks costs the alignment of the second.
                        fixed += 30_000 / 64 * 64 * 512;
                    }
                    let allowed = fixed + summary.image_bytes / 100 * 3;
                    assert!(
                        available <= allowed,
                        "{name}: {available} of {allowed} in {summary:?}"
                    );
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
        assert!(text.contains(&format!("the source needs {needed} bytes")), "{text}");
        assert!(!image_of(&options).exists());
        options.size = SizeChoice::Exact(needed);
        build(&options).unwrap();
        fs::remove_file(image_of(&options)).unwrap();
    }
}

#[test]
fn volumes_for_boot_partitions() {
    if !kernel::available_or_report() {
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
    if !kernel::available_or_report() {
        return;
    }
    let scratch = Scratch::new(64 * MIB).unwrap();
    fs::write(scratch.path().join("file"), "packed").unwrap();
    let home = tempfile::tempdir().unwrap();
    let options = options(scratch.path(), &home.path().join("image"));
    let summary = assert_built(&options, scratch.path());
    fill_by_kernel(image_of(&options));
    undercroft_testkit::image::judged::repair(
        image_of(&options),
        summary.image_bytes,
        &options.volume,
    )
    .unwrap();
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

#[test]
fn a_volume_that_will_grow_has_no_more_groups_then_than_one_made_so() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let tree = home.path().join("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("file"), vec![1; 3_000_000]).unwrap();
    let newest = Xfsprogs::newest().unwrap();
    for (grown, count) in [(100 << 30, None), (1 << 40, None), (100 << 30, Some(9))] {
        let mut options = options(&tree, &home.path().join("image"));
        options.force = true;
        options.volume.grown_size = Some(grown);
        options.volume.ag_count = count;
        let made = home.path().join("made");
        let groups = |image: &Path| {
            newest.db(image, &["sb 0", "p agcount agblocks"]).unwrap().replace(' ', "")
        };
        let arguments: Vec<String> = count.iter().map(|n| format!("-dagcount={n}")).collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        newest.mkfs(&made, grown, &arguments).unwrap();
        let summary = assert_built(&options, &tree);
        assert!(summary.image_bytes < 200 * MIB, "{summary:?}");
        let image = image_of(&options);
        assert_our_check_is_clean(image);
        fs::File::options().write(true).open(image).unwrap().set_len(grown).unwrap();
        let mount = LoopMount::new(image, Access::ReadWrite, &[]).unwrap();
        let done = Command::new("xfs_growfs").arg("-d").arg(mount.path()).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        fs::write(mount.join("more"), vec![2; 3_000_000]).unwrap();
        mount.unmount().unwrap();
        assert_eq!(groups(image), groups(&made), "{grown}, {count:?}");
        newest.repair_check(image).unwrap();
        assert_our_check_is_clean(image);
        let mount = LoopMount::new(image, Access::ReadOnly, &[]).unwrap();
        assert_eq!(fs::read(mount.join("file")).unwrap(), vec![1; 3_000_000]);
        mount.unmount().unwrap();
    }
}

/// Fails the test if our own check finds anything.
#[track_caller]
fn assert_our_check_is_clean(image: &Path) {
    let device = Arc::new(FileDevice::open(image, true).unwrap());
    let mut found = Vec::new();
    check(device, &CheckOptions::default(), &mut |finding| found.push(finding.to_string()))
        .unwrap();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn the_share_of_inodes_follows_the_content_or_is_kept() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let archive = home.path().join("archive");
    let mut writer = ArchiveWriter::create(&archive);
    lopsided("directories", &mut writer);
    writer.finish();
    let mut options = options(&archive, &home.path().join("image"));
    let percent = |image: &Path| {
        let said =
            Xfsprogs::newest().unwrap().db(image, &["sb 0", "p imax_pct", "sb 1", "p imax_pct"]);
        let said = said.unwrap();
        let numbers = said.lines().filter_map(|line| line.strip_prefix("imax_pct = "));
        numbers.map(|number| number.parse().unwrap()).collect::<Vec<u64>>()
    };
    // 10,000 directories take 5 MB of 32 MiB, and a quarter of 8 MiB would not do.
    options.size = SizeChoice::Exact(32 * MIB);
    build(&options).unwrap();
    assert_eq!(percent(image_of(&options)), [25, 25]);
    options.force = true;
    options.volume.inode_size = 2048;
    build(&options).unwrap();
    let found = percent(image_of(&options));
    assert!(found[0] > 60 && found[0] < 70 && found[0] == found[1], "{found:?}");
    undercroft_testkit::image::judged::repair(image_of(&options), 32 * MIB, &options.volume)
        .unwrap();
    let mount = LoopMount::new(image_of(&options), Access::ReadWrite, &[]).unwrap();
    fs::write(mount.join("one more"), "").unwrap();
    mount.unmount().unwrap();

    options.volume.inode_max_percent = Some(20);
    let error = build(&options).unwrap_err();
    let PackError::Inodes { allowed: 20, needed: Some(needed), .. } = error else {
        panic!("{error:?}");
    };
    options.size = SizeChoice::Exact(needed);
    build(&options).unwrap();
    options.size = SizeChoice::Minimum;
    assert!(build(&options).unwrap().image_bytes <= needed);
    assert_eq!(percent(image_of(&options)), [20, 20]);
}

#[test]
fn the_property_of_mkfs_is_that_of_the_volume_not_of_the_tree() {
    if !kernel::available_or_report() {
        return;
    }
    const NAME: &str = "trusted.xfs:autofsck";
    let home = tempfile::tempdir().unwrap();
    // The root of a volume that says something else, which is not the tree's to say.
    let source = Scratch::new(64 * MIB).unwrap();
    fs::write(source.path().join("file"), "packed").unwrap();
    setxattr(source.path(), NAME, b"none", XattrFlags::empty()).unwrap();
    setxattr(source.path(), "trusted.own", b"kept", XattrFlags::empty()).unwrap();
    for (feature, expected) in
        [(None, Some(&b"repair"[..])), (Some(Feature::Rmapbt), None), (Some(Feature::Parent), None)]
    {
        let mut options = options(source.path(), &home.path().join("image"));
        options.force = true;
        options.volume.features.extend(feature.map(|feature| (feature, false)));
        if feature == Some(Feature::Rmapbt) {
            options.volume.features.push((Feature::Reflink, false));
        }
        let summary = assert_built(&options, source.path());
        let mount = LoopMount::new(image_of(&options), Access::ReadOnly, &[]).unwrap();
        let value = |name| {
            let mut value = vec![0; 100];
            let len = getxattr(mount.path(), name, &mut value).ok()?;
            value.truncate(len);
            Some(value)
        };
        assert_eq!(value(NAME).as_deref(), expected, "{summary:?}");
        assert_eq!(value("trusted.own").as_deref(), Some(&b"kept"[..]));
        // As the newest mkfs.xfs sets it.
        let other = home.path().join("other");
        let off = match feature {
            Some(Feature::Rmapbt) => &["-mrmapbt=0,reflink=0"][..],
            Some(_) => &["-nparent=0"],
            None => &[],
        };
        let newest = Xfsprogs::newest().unwrap();
        newest.mkfs(&other, 64 * MIB, off).unwrap();
        let root = |image: &Path| {
            let said = newest.db(image, &["sb 0", "addr rootino", "print"]).unwrap();
            said.lines().filter(|line| line.contains("xfs:autofsck")).count()
        };
        assert_eq!(root(&other), usize::from(expected.is_some()));
        let out = home.path().join("extracted");
        let volume =
            Volume::open(Arc::new(FileDevice::open(image_of(&options), true).unwrap())).unwrap();
        unpack::to_directory(&Arc::new(volume), &out, false, &mut |_| {}).unwrap();
        let mut none = [0; 10];
        assert!(getxattr(&out, NAME, &mut none).is_err());
        assert!(getxattr(&out, "trusted.own", &mut none).is_ok());
        fs::remove_dir_all(&out).unwrap();
    }
}
