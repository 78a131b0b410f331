//! A layer put on a volume: the same tree as from all layers at once.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use undercroft_block::stack::Description;
use undercroft_fs::FileSystem;
use undercroft_image::layer::{LayerError, LayerSummary, apply};
use undercroft_image::pack::{PackOptions, SizeChoice};
use undercroft_judges::mount::Access;
use undercroft_judges::tree::{Holes, Options, compare};
use undercroft_judges::{LoopMount, Scratch, Xfsprogs, kernel};
use undercroft_source::SourceSpec;
use undercroft_source::oci::LayerSource;
use undercroft_xfs::Volume;
use undercroft_xfs::volume::LiveOptions;

use super::image::{Form, Layout};
use super::layer::Layer;
use super::unpacked::merged;
use undercroft_testkit::image::judged::{build, chain};

/// Builds a volume of the first layer, and puts the others on it.
fn stacked(home: &Path, layers: &[Vec<u8>]) -> Result<LayerSummary, LayerError> {
    let tar = home.join("layer.tar");
    let image = home.join("image");
    fs::write(&tar, &layers[0]).unwrap();
    let mut options = PackOptions::new(SourceSpec::Path(tar.clone()), image.clone());
    (options.size, options.force) = (SizeChoice::Exact(400 << 20), true);
    build(&options).unwrap();
    let mut summary = LayerSummary::default();
    for layer in &layers[1..] {
        fs::write(&tar, layer).unwrap();
        let mut source = LayerSource::open(&tar, &options.source_options.reading)?;
        let device = Description::from(image.clone()).open(false, None).unwrap();
        let volume = Volume::open_live(device, &LiveOptions::default()).unwrap();
        let fs = FileSystem::from_volume(Arc::new(volume));
        let applied = apply(&fs, &mut source, &mut |_, _| ());
        fs.close().unwrap();
        summary = applied?;
    }
    Ok(summary)
}

#[test]
fn layers_one_by_one_are_what_overlays_show() {
    if !kernel::available_or_report() {
        return;
    }
    let scratch = Scratch::new(512 << 20).unwrap();
    let stacks = super::stacks::for_overlays();
    for (number, (name, layers)) in stacks.into_iter().enumerate() {
        let layers: Vec<_> = layers.into_iter().map(Layer::end).collect();
        let home = scratch.path().join(number.to_string());
        fs::create_dir(&home).unwrap();
        let overlay = merged(&home, &layers);
        let work = tempfile::tempdir().unwrap();
        if let Err(error) = stacked(work.path(), &layers) {
            panic!("{name}: {}", chain(&error));
        }
        let image = work.path().join("image");
        Xfsprogs::newest().unwrap().repair_check(&image).unwrap();
        let mount = LoopMount::new(&image, Access::ReadOnly, &[]).unwrap();
        let options = Options { holes: Holes::Ignore, ..Options::default() };
        let found = compare(&overlay, mount.path(), &options).unwrap();
        assert!(found.same(), "{name}: {found:?}");
        mount.unmount().unwrap();
    }
}

/// Layers without entries, of any length that tools give them, and names that aufs keeps for itself: what
/// other names link to stays.
#[test]
fn layers_of_old_tools_are_what_they_were_meant_to_be() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let base = Layer::at(5).directory("./", 0o755).directory("a/", 0o755).file("a/one", b"one");
    let aufs = Layer::at(9)
        .directory(".wh..wh.plnk/", 0o700)
        .file(".wh..wh.plnk/12.34", b"linked")
        .directory(".wh..wh.orph/", 0o700)
        .mark(".wh..wh.aufs")
        .link("a/two", ".wh..wh.plnk/12.34")
        .link("three", ".wh..wh.plnk/12.34")
        .mark("a/.wh.one");
    let empty = [Vec::new(), vec![0; 512], vec![0; 1024], vec![0; 10240]];
    let [one, other] = ["on", "at once"].map(|name| home.path().join(name));
    fs::create_dir(&one).unwrap();
    let layers = [&[base.clone().end()][..], &empty, &[aufs.clone().end()]].concat();
    let summary = stacked(&one, &layers).unwrap();
    assert_eq!((summary.removed, summary.bytes), (1, 6));
    let forms: Vec<_> = layers.iter().map(|layer| (Form::Plain, layer.clone())).collect();
    let layout = Layout::of(&other.join("layout"), &forms);
    build(&PackOptions::new(SourceSpec::Path(layout.path), other.join("image"))).unwrap();
    for image in [one.join("image"), other.join("image")] {
        Xfsprogs::newest().unwrap().repair_check(&image).unwrap();
        let mount = LoopMount::new(&image, Access::ReadOnly, &[]).unwrap();
        let names = |directory: &Path| {
            let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
            let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
            names.sort();
            names
        };
        assert_eq!(names(mount.path()), ["a", "three"]);
        assert_eq!(names(&mount.path().join("a")), ["two"]);
        let [two, three] = ["a/two", "three"].map(|name| mount.path().join(name));
        assert_eq!(fs::read(&two).unwrap(), b"linked");
        let [two, three] = [two, three].map(|path| path.metadata().unwrap());
        assert_eq!((two.ino(), two.nlink()), (three.ino(), 2));
        mount.unmount().unwrap();
    }
}

#[test]
fn a_layer_that_does_not_fit_changes_nothing() {
    let home = tempfile::tempdir().unwrap();
    let base = || Layer::at(5).directory("a/", 0o755).file("a/one", b"one").file("b", b"b");
    let upper = || Layer::at(9).mark(".wh.b");
    let big = vec![b'x'; 450 << 20];
    for (layer, says) in [
        (upper().link("n", "b"), "hides"),
        (upper().link("n", "nothing"), "neither"),
        (upper().link("n", "a"), "is a directory"),
        (upper().mark("a/.wh."), "whiteout of nothing"),
        (upper().file("../x", b""), "component"),
        (upper().file("big", &big), "make the volume larger"),
    ] {
        stacked(home.path(), &[base().end()]).unwrap();
        let before = fs::read(home.path().join("image")).unwrap();
        let error = stacked(home.path(), &[base().end(), layer.end()]).unwrap_err();
        let error = chain(&error);
        assert!(error.contains(says), "{error}");
        // The journal has an unmount record more.
        Xfsprogs::newest().unwrap().repair_check(&home.path().join("image")).unwrap();
        let after = fs::read(home.path().join("image")).unwrap();
        assert_eq!(before.len(), after.len());
    }
}
