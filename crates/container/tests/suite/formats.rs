//! Images of other formats, which are only read.

use crate::qemu::{SIZE, bytes, content, open, qemu_img, raw};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use undercroft_block::Sector;
use undercroft_block::stack::DiskFormat;

/// Name, format as `qemu-img` calls it, its options, whether other files have the data.
const IMAGES: [(&str, &str, &str, bool); 13] = [
    ("dynamic.vdi", "vdi", "static=off", false),
    ("fixed.vdi", "vdi", "static=on", false),
    ("dynamic.vhd", "vpc", "subformat=dynamic,force_size=on", false),
    ("fixed.vhd", "vpc", "subformat=fixed,force_size=on", false),
    ("round.vhd", "vpc", "subformat=dynamic", false),
    ("dynamic.vhdx", "vhdx", "subformat=dynamic", false),
    ("small.vhdx", "vhdx", "subformat=dynamic,block_size=1M", false),
    ("fixed.vhdx", "vhdx", "subformat=fixed", false),
    ("sparse.vmdk", "vmdk", "subformat=monolithicSparse,zeroed_grain=on", false),
    ("stream.vmdk", "vmdk", "subformat=streamOptimized", false),
    ("flat.vmdk", "vmdk", "subformat=monolithicFlat", true),
    ("split-flat.vmdk", "vmdk", "subformat=twoGbMaxExtentFlat", true),
    ("split.vmdk", "vmdk", "subformat=twoGbMaxExtentSparse", true),
];

/// Makes the images of a raw one in a directory; returns their paths.
fn images(directory: &Path, raw: &str) -> Vec<String> {
    let make = |(name, format, options, _): &(&str, &str, &str, bool)| {
        let image = directory.join(name).display().to_string();
        qemu_img(&["convert", "-f", "raw", "-O", format, "-o", options, raw, &image]);
        image
    };
    IMAGES.iter().map(make).collect()
}

#[test]
fn images_of_every_format_are_read() {
    let home = tempfile::tempdir().unwrap();
    let expected = content(21);
    let raw = raw(home.path(), "raw", &expected);
    for (image, (name, format, _, has_files)) in images(home.path(), &raw).iter().zip(IMAGES) {
        if has_files {
            let error = open(image, true, DiskFormat::Auto).unwrap_err();
            assert!(error.contains("only when it is allowed"), "{name}: {error}");
        }
        let choice = if has_files { DiskFormat::Backed } else { DiskFormat::Auto };
        let device = open(image, true, choice).unwrap();
        assert!(device.is_read_only());
        let read = bytes(&*device).unwrap();
        assert!(read[..SIZE] == expected, "{name}");
        // QEMU makes some disks longer, for a whole number of cylinders.
        assert!(read[SIZE..].iter().all(|byte| *byte == 0), "{name}");
        let info = qemu_img(&["info", "-f", format, "--output=json", image]);
        assert!(info.contains(&format!("\"virtual-size\": {},", read.len())), "{name}: {info}");
        let error = open(image, false, choice).unwrap_err();
        assert!(error.contains("only read") && error.contains("convert"), "{name}: {error}");
    }
}

fn format_is_known(image: &str) -> bool {
    undercroft_container::format_of(Path::new(image)).is_some()
}

#[test]
fn large_disks_of_many_files_are_read() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).display().to_string();
    let raw = path("raw");
    let file = fs::File::create_new(&raw)
        .and_then(|_| fs::File::options().read(true).write(true).open(&raw));
    let file = file.unwrap();
    file.set_len((5 << 30) + 512 * 3).unwrap();
    let marks = [0, (2 << 30) - 512, 2 << 30, (4 << 30) - 1024, 5 << 30];
    for (number, at) in marks.into_iter().enumerate() {
        let mark = [number as u8 + 1; 1024];
        std::os::unix::fs::FileExt::write_all_at(&file, &mark, at).unwrap();
    }
    for (format, options) in [
        ("vmdk", "subformat=twoGbMaxExtentSparse"),
        ("vmdk", "subformat=twoGbMaxExtentFlat"),
        ("vmdk", "subformat=monolithicSparse"),
        ("vmdk", "subformat=streamOptimized"),
        ("vhdx", "block_size=1M"),
        ("vpc", "force_size=on"),
        ("vdi", "static=off"),
    ] {
        let image = path(&format!("image-{}.{format}", options.replace('=', "-")));
        qemu_img(&["convert", "-f", "raw", "-O", format, "-o", options, &raw, &image]);
        let device = open(&image, true, DiskFormat::Backed).unwrap();
        for at in marks {
            let first = (at / 512).saturating_sub(8);
            let length = (device.capacity().0 - first).min(20) as usize * 512;
            let read = undercroft_block::read_buffer(&*device, Sector(first), length).unwrap();
            let mut expected = vec![0; length];
            let there = length.min(((5 << 30) + 512 * 3 - first * 512) as usize);
            std::os::unix::fs::FileExt::read_exact_at(&file, &mut expected[..there], first * 512)
                .unwrap();
            assert!(read[..] == expected[..], "{options} at {at}");
        }
    }
}

#[test]
fn files_that_are_named_have_to_be_near() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).display().to_string();
    fs::create_dir(path("images")).unwrap();
    raw(home.path(), "secret", &[7; 1 << 20]);
    let text = |file: &str| {
        format!("# Disk DescriptorFile\nparentCID=ffffffff\nRW 2048 FLAT \"{file}\" 0\n")
    };
    for file in ["../secret", &path("secret")] {
        fs::write(path("images/a.vmdk"), text(file)).unwrap();
        let error = open(&path("images/a.vmdk"), true, DiskFormat::Backed).unwrap_err();
        assert!(error.contains("not in its directory"), "{error}");
    }
    raw(&home.path().join("images"), "near", &[7; 1 << 20]);
    fs::write(path("images/a.vmdk"), text("near")).unwrap();
    let device = open(&path("images/a.vmdk"), true, DiskFormat::Backed).unwrap();
    assert_eq!(bytes(&*device).unwrap(), [7; 1 << 20]);
    fs::write(path("images/near"), [7; 1000]).unwrap();
    let error = open(&path("images/a.vmdk"), true, DiskFormat::Backed).unwrap_err();
    assert!(error.contains("is it cut?"), "{error}");
}

#[test]
fn changes_to_other_images_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).display().to_string();
    qemu_img(&["create", "-qf", "vmdk", &path("base.vmdk"), "1M"]);
    let options = format!("backing_file={},backing_fmt=vmdk", path("base.vmdk"));
    qemu_img(&["create", "-qf", "vmdk", "-o", &options, &path("top.vmdk")]);
    let error = open(&path("top.vmdk"), true, DiskFormat::Backed).unwrap_err();
    assert!(error.contains("changes to another") && error.contains("base.vmdk"), "{error}");

    qemu_img(&["create", "-qf", "vpc", &path("a.vhd"), "8M"]);
    let mut image = fs::read(path("a.vhd")).unwrap();
    let end = image.len() - 512;
    for at in [0, end] {
        // The type, and the checksum that it changes.
        image[at + 63] = 4;
        image[at + 67] = image[at + 67].wrapping_sub(1);
    }
    fs::write(path("a.vhd"), &image).unwrap();
    let error = open(&path("a.vhd"), true, DiskFormat::Backed).unwrap_err();
    assert!(error.contains("changes to another"), "{error}");

    qemu_img(&["create", "-qf", "vdi", &path("a.vdi"), "8M"]);
    let mut image = fs::read(path("a.vdi")).unwrap();
    image[76] = 4;
    fs::write(path("a.vdi"), &image).unwrap();
    let error = open(&path("a.vdi"), true, DiskFormat::Backed).unwrap_err();
    assert!(error.contains("changes to another"), "{error}");
}

/// A guest may write what it likes to the end of its disk: a footer has to fit.
#[test]
fn the_footer_of_a_fixed_disk_has_to_fit() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).display().to_string();
    qemu_img(&["create", "-qf", "vpc", "-o", "subformat=fixed,force_size", &path("a.vhd"), "8M"]);
    let mut image = fs::read(path("a.vhd")).unwrap();
    assert!(format_is_known(&path("a.vhd")));
    image.drain(..512);
    fs::write(path("a.vhd"), &image).unwrap();
    assert!(!format_is_known(&path("a.vhd")));
}

#[test]
fn changed_images_are_an_error_or_other_bytes() {
    let home = tempfile::tempdir().unwrap();
    let raw = raw(home.path(), "raw", &content(22)[..2 << 20]);
    let mut random = fastrand::Rng::with_seed(23);
    for image in images(home.path(), &raw) {
        let sound = fs::read(&image).unwrap();
        for round in 0..60 {
            let mut changed = sound.clone();
            for _ in 0..random.usize(1..4) {
                let front = [512, 4096, sound.len()][random.usize(..3)].min(sound.len());
                let at = match random.u8(..4) {
                    0 => sound.len() - 1 - random.usize(..front),
                    _ => random.usize(..front),
                };
                let length = random.usize(1..9).min(sound.len() - at);
                match random.u8(..3) {
                    0 => changed[at..at + length].fill(0xff),
                    1 => changed[at..at + length].fill(0),
                    _ => random.fill(&mut changed[at..at + length]),
                }
            }
            if round % 10 == 0 {
                changed.truncate(random.usize(..sound.len()));
            }
            fs::write(&image, &changed).unwrap();
            let looked = catch_unwind(AssertUnwindSafe(|| {
                if let Ok(device) = open(&image, true, DiskFormat::Backed) {
                    let sectors = device.capacity().0;
                    for sector in [0, sectors / 2, sectors.saturating_sub(8)] {
                        let length = (sectors - sector).min(8) as usize * 512;
                        if length > 0 {
                            let _ = undercroft_block::read_buffer(&*device, Sector(sector), length);
                        }
                    }
                }
            }));
            assert!(looked.is_ok(), "{image}: round {round} panics");
        }
    }
}
