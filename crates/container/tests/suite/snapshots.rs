//! Snapshots in qcow2 images.

use crate::qemu::{SIZE, bytes, content, open, qemu_img, raw};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use undercroft_block::BlockDevice;
use undercroft_block::stack::{DiskFormat, FileLeaf, LeafOptions};

fn past(image: &str, name: &str, format: DiskFormat) -> Result<Arc<dyn BlockDevice>, String> {
    let snapshot = Some(name.to_owned());
    let leaf = FileLeaf { format, snapshot, ..FileLeaf::new(image) };
    let options = LeafOptions { read_only: true, ..LeafOptions::default() };
    let opened = undercroft_container::open(&leaf, options).map_err(|error| error.to_string())?;
    Ok(opened.expect("it is an image"))
}

fn write(image: &str, command: &str) {
    let wrote = Command::new("qemu-io").args(["-f", "qcow2", "-c", command, image]).output();
    assert!(wrote.unwrap().status.success());
}

/// The bytes of a snapshot, by QEMU.
fn by_qemu(image: &str, name: &str) -> Vec<u8> {
    let raw = format!("{image}.raw");
    let name = format!("snapshot.name={name}");
    qemu_img(&["convert", "-f", "qcow2", "-l", &name, "-O", "raw", image, &raw]);
    fs::read(raw).unwrap()
}

#[test]
fn a_disk_is_read_as_it_was() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).display().to_string();
    let base = raw(home.path(), "base.img", &content(61));
    for (name, options, compressed) in [
        ("v3", "compat=1.1", false),
        ("v2", "compat=0.10", false),
        ("small", "cluster_size=4k", true),
        ("backed", "compat=1.1,backing_fmt=raw,backing_file=base.img", false),
    ] {
        let image = path(name);
        let mut arguments = vec!["convert", "-O", "qcow2", "-o", options];
        arguments.extend(compressed.then_some("-c"));
        match name {
            "backed" => qemu_img(&["create", "-qf", "qcow2", "-o", options, &image]),
            _ => qemu_img(&[&arguments[..], &[&base, &image]].concat()),
        };
        let format = if name == "backed" { DiskFormat::Backed } else { DiskFormat::Auto };
        write(&image, "write -P 1 100k 300k");
        qemu_img(&["snapshot", "-c", "first", &image]);
        write(&image, "write -P 2 1M 1M");
        write(&image, "write -z 300k 1M");
        qemu_img(&["snapshot", "-c", "second, of two", &image]);
        write(&image, "write -P 3 0 7M");
        let all = undercroft_container::snapshots_of(Path::new(&image)).unwrap();
        let names: Vec<_> = all.iter().map(|past| (past.name.as_str(), past.bytes)).collect();
        assert_eq!(names, [("first", SIZE as u64), ("second, of two", SIZE as u64)]);
        assert!(all.iter().all(|past| past.seconds > 1_700_000_000));
        for (number, (past_name, _)) in names.into_iter().enumerate() {
            let device = past(&image, past_name, format).unwrap();
            assert!(device.is_read_only());
            // A comma is one of QEMU's own words, too.
            let expected = by_qemu(&image, &past_name.replace(',', ",,"));
            assert!(bytes(&*device).unwrap() == expected, "{name}: {past_name}");
            let by_id = past(&image, &(number + 1).to_string(), format).unwrap();
            assert!(bytes(&*by_id).unwrap() == expected);
        }
        assert!(bytes(&*open(&image, true, format).unwrap()).unwrap()[..7 << 20] == [3; 7 << 20]);
    }
    let error = past(&path("backed"), "first", DiskFormat::Auto).unwrap_err();
    assert!(error.contains("only when it is allowed"), "{error}");
    let error = past(&path("v3"), "third", DiskFormat::Auto).unwrap_err();
    assert!(error.contains("no snapshot \"third\"") && error.contains("\"first\""), "{error}");
}

#[test]
fn a_snapshot_of_another_length_keeps_it() {
    let home = tempfile::tempdir().unwrap();
    let image = home.path().join("image").display().to_string();
    qemu_img(&["create", "-qf", "qcow2", &image, "8M"]);
    write(&image, "write -P 1 0 8M");
    qemu_img(&["snapshot", "-c", "short", &image]);
    qemu_img(&["resize", "-q", &image, "16M"]);
    let device = past(&image, "short", DiskFormat::Auto).unwrap();
    assert_eq!(bytes(&*device).unwrap(), [1; 8 << 20]);
}

/// QEMU says so in the header when it keeps the reference counts in memory.
#[test]
fn an_image_that_was_not_closed_is_read() {
    let home = tempfile::tempdir().unwrap();
    let image = home.path().join("image").display().to_string();
    let expected = content(64);
    let raw = raw(home.path(), "raw", &expected);
    qemu_img(&["convert", "-O", "qcow2", "-o", "lazy_refcounts=on", &raw, &image]);
    qemu_img(&["snapshot", "-c", "a", &image]);
    let file = fs::File::options().write(true).open(&image).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[1], 79).unwrap();
    drop(file);
    assert!(bytes(&*open(&image, true, DiskFormat::Auto).unwrap()).unwrap() == expected);
    assert!(bytes(&*past(&image, "a", DiskFormat::Auto).unwrap()).unwrap() == expected);
    let error = open(&image, false, DiskFormat::Auto).unwrap_err();
    assert!(error.contains("not closed") && error.contains("qemu-img check -r all"), "{error}");
}

#[test]
fn snapshots_that_lie_are_an_error_or_other_bytes() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).display().to_string();
    let raw = raw(home.path(), "raw", &content(62)[..1 << 20]);
    let convert = ["convert", "-O", "qcow2", "-c", "-o", "cluster_size=512", &raw];
    qemu_img(&[&convert[..], &[&path("sound")]].concat());
    qemu_img(&["snapshot", "-c", "a", &path("sound")]);
    write(&path("sound"), "write -P 2 0 1M");
    let sound = fs::read(path("sound")).unwrap();
    let table = u64::from_be_bytes(sound[64..72].try_into().unwrap()) as usize;
    let first = u64::from_be_bytes(sound[table..table + 8].try_into().unwrap()) as usize;
    let mut random = fastrand::Rng::with_seed(63);
    for round in 0..300 {
        let mut changed = sound.clone();
        for _ in 0..random.usize(1..4) {
            let start = [56, table, first, random.usize(..sound.len() - 80)][random.usize(..4)];
            let at = start + random.usize(..64);
            let length = random.usize(1..9);
            random.fill(&mut changed[at..at + length]);
        }
        fs::write(path("changed"), &changed).unwrap();
        let looked = catch_unwind(AssertUnwindSafe(|| {
            let _ = undercroft_container::snapshots_of(Path::new(&path("changed")));
            if let Ok(device) = past(&path("changed"), "a", DiskFormat::Auto)
                && device.capacity() <= undercroft_block::Sector(1 << 16)
            {
                let _ = bytes(&*device);
            }
        }));
        assert!(looked.is_ok(), "round {round} panics");
    }
}
