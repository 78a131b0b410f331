//! Disks in images of every form.

use crate::qemu::{SIZE, bytes, content, open, qemu_img, raw};
use undercroft_block::stack::DiskFormat;

#[test]
fn images_of_every_form_are_read() {
    let home = tempfile::tempdir().unwrap();
    let expected = content(1);
    let raw = raw(home.path(), "raw", &expected);
    for (name, options, compressed) in [
        ("v3", "compat=1.1", false),
        ("v2", "compat=0.10", false),
        ("small", "cluster_size=512", false),
        ("large", "cluster_size=2M", false),
        ("compressed", "compat=1.1", true),
        ("old-compressed", "compat=0.10,cluster_size=4k", true),
        ("counts", "refcount_bits=1", false),
        ("lazy", "lazy_refcounts=on", false),
    ] {
        let image = home.path().join(name).display().to_string();
        let mut arguments = vec!["convert", "-O", "qcow2", "-o", options];
        arguments.extend(compressed.then_some("-c"));
        arguments.extend([&raw[..], &image[..]]);
        qemu_img(&arguments);
        let device = open(&image, true, DiskFormat::Auto).unwrap();
        assert_eq!(device.capacity().to_bytes(), Some(SIZE as u64), "{name}");
        assert!(device.is_read_only());
        assert!(bytes(&*device).unwrap() == expected, "{name}");
    }
}

#[test]
fn what_is_not_read_is_named() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).display().to_string();
    for (name, options, word) in [
        ("zstd", "compression_type=zstd", "zstd"),
        ("subclusters", "extended_l2=on,cluster_size=128k", "subclusters"),
        ("data", &format!("data_file={},data_file_raw=on", path("data-file"))[..], "another file"),
    ] {
        let image = path(name);
        qemu_img(&["create", "-qf", "qcow2", "-o", options, &image, "8M"]);
        let error = open(&image, true, DiskFormat::Auto).unwrap_err();
        assert!(error.contains(word) && error.contains("qemu-img convert"), "{name}: {error}");
    }
    let plain = raw(home.path(), "plain", &[1; 4096]);
    assert_eq!(open(&plain, true, DiskFormat::Auto).unwrap_err(), "not recognised");
}
