//! Volumes read back against their source.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use undercroft_image::pack::{self, PackError, PackOptions};
use undercroft_judges::loop_device::LoopDevice;
use undercroft_judges::random::{Options as Random, random_tree};
use undercroft_judges::{Scratch, kernel};
use undercroft_source::{RuleList, SourceSpec};

use undercroft_testkit::image::judged::{build, chain};

fn verified(source: &Path, image: &Path) -> PackOptions {
    PackOptions {
        verify: true,
        ..PackOptions::new(SourceSpec::Path(source.to_owned()), image.to_owned())
    }
}

fn shell(directory: &Path, line: &str) {
    let output = Command::new("sh").args(["-ec", line]).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn trees_and_their_archives_are_verified() {
    if !kernel::available_or_report() {
        return;
    }
    let scratch = Scratch::new(256 << 20).unwrap();
    let tree = scratch.path().join("tree");
    fs::create_dir(&tree).unwrap();
    random_tree(&tree, 5, &Random { entries: 400, ..Random::default() }).unwrap();
    let image = scratch.path().join("image");
    build(&verified(&tree, &image)).unwrap_or_else(|error| panic!("{}", chain(&error)));
    fs::remove_file(&image).unwrap();
    // In no order, with members that come twice, and without the root.
    shell(
        scratch.path(),
        "mkdir twice; echo 1 > twice/a; ln twice/a twice/b; setfattr -n user.x -v 1 twice
        cd tree; ls -A | sort -r | tar -cf ../all.tar --format=posix --xattrs --xattrs-include='*' -T -
        cd ..; tar -rf all.tar --format=posix --xattrs twice; echo 2 > twice/a; setfattr -x user.x twice
        touch twice; tar -rf all.tar --format=posix --xattrs --no-recursion twice/a twice",
    );
    build(&verified(&scratch.path().join("all.tar"), &image))
        .unwrap_or_else(|error| panic!("{}", chain(&error)));
}

#[test]
fn rules_and_the_epoch_are_part_of_the_source() {
    let home = tempfile::tempdir().unwrap();
    shell(
        home.path(),
        "mkdir -p tree/etc/a tree/usr; echo 1 > tree/etc/a/x; echo 2 > tree/etc.conf; echo h > hosts
        mkdir -p tree/var/log/x; touch tree/var/log/x/kept tree/var/log/gone; touch -d @5000000000 tree/usr
        tar -cf tree.tar -C tree etc.conf var/log/x usr etc var/log/gone",
    );
    let rules = "exclude /var/log\ninclude kept\nadd hosts:/etc/hosts\nadd hosts:/a/b/c\nmkdir /zz
        symlink x:/usr/link\nadd hosts:/etc/a/x\nchown 7:7 /etc/**\nchmod 700 /usr\nxattr user.a=b /etc";
    let mut list = RuleList::default();
    list.add_text(rules.as_bytes(), "rules", home.path()).unwrap();
    let (exclude, rules) = list.finish().unwrap();
    for source in ["tree", "tree.tar"] {
        let image = home.path().join("image");
        let mut options = verified(&home.path().join(source), &image);
        options.source_options.reading.exclude = exclude.clone();
        options.source_options.rules = Arc::new(rules.clone());
        options.epoch = Some(1_700_000_000);
        options.volume.preset = undercroft_xfs::mkfs::Preset::Linux4_19;
        build(&options).unwrap_or_else(|error| panic!("{source}: {}", chain(&error)));
        fs::remove_file(&image).unwrap();
    }
}

/// Builds while the source changes; the error.
fn build_while_it_changes(options: &PackOptions, file: &Path) -> PackError {
    pack::build(options, &mut |_| fs::write(file, "changed meanwhile").unwrap()).unwrap_err()
}

#[test]
fn a_source_that_changes_leaves_everything_as_it_was() {
    let home = tempfile::tempdir().unwrap();
    let tree = home.path().join("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("file"), "as it was first").unwrap();
    let image = home.path().join("image");
    let error = build_while_it_changes(&verified(&tree, &image), &tree.join("file"));
    assert!(matches!(error, PackError::Verify { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("at file: ") && text.contains("changed meanwhile"), "{text}");
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1, "nothing is left behind");

    fs::write(&image, "an older image").unwrap();
    fs::write(tree.join("file"), "as it was first").unwrap();
    let options = PackOptions { force: true, ..verified(&tree, &image) };
    build_while_it_changes(&options, &tree.join("file"));
    assert_eq!(fs::read(&image).unwrap(), b"an older image");
}

#[test]
fn a_block_device_holds_no_volume_that_failed() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let tree = home.path().join("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("file"), "as it was first").unwrap();
    let backing = home.path().join("backing");
    fs::File::create(&backing).unwrap().set_len(400 << 20).unwrap();
    let device = LoopDevice::attach(&backing).unwrap();
    let options = PackOptions { force: true, ..verified(&tree, device.path()) };
    build(&options).unwrap_or_else(|error| panic!("{}", chain(&error)));
    build_while_it_changes(&options, &tree.join("file"));
    drop(device);
    let bytes = fs::read(&backing).unwrap();
    assert!(!bytes.starts_with(b"XFSB"));
}

#[test]
fn a_stream_is_refused_before_anything_is_read() {
    let home = tempfile::tempdir().unwrap();
    let pipe = home.path().join("pipe");
    shell(home.path(), "mkfifo pipe");
    let image = home.path().join("image");
    let mut options = verified(&pipe, &image);
    assert!(matches!(build(&options), Err(PackError::VerifyStream)));
    options.source = SourceSpec::StandardInput;
    let error = build(&options).unwrap_err();
    assert!(error.to_string().contains("save it in a file"), "{error}");
    assert!(!image.exists());
}
