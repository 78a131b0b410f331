//! Builds whose size was estimated too small.

use super::*;
use std::fs;
use std::path::Path;
use undercroft_source::SourceSpec;

/// A directory with files of `bytes` bytes in all.
fn tree(path: &Path, bytes: u64) {
    fs::create_dir(path).unwrap();
    for index in 0..64_u8 {
        let content = vec![index; (bytes / 64) as usize];
        fs::write(path.join(format!("file-{index}")), content).unwrap();
    }
}

#[test]
fn a_volume_that_proves_too_small_grows_and_is_what_it_would_have_been_at_once() {
    let scratch = tempfile::tempdir().unwrap();
    let [source, grown, direct] = ["tree", "grown", "direct"].map(|name| scratch.path().join(name));
    let mut options = PackOptions::new(SourceSpec::Path(source.clone()), grown.clone());
    let least = mkfs::minimum_size(&options.volume).unwrap();
    tree(&source, least);

    let mut opened = undercroft_source::open(&options.source, &options.source_options).unwrap();
    let survey = Survey::of(opened.as_mut(), &options).unwrap();
    let mut volume = volume_options(&options, SizeChoice::Exact(least), Some(&survey)).unwrap();
    let mut target = Target::open(&options.image, false).unwrap();
    let mut filled = |source: &mut dyn Source, volume: &mut MkfsOptions, may_grow| {
        fill(&options, volume, may_grow, source, &mut target, Some(&survey), &mut |_| ())
    };

    let refused = filled(opened.as_mut(), &mut volume, false).unwrap_err();
    assert!(refused.is_full(), "{refused}");
    assert_eq!(volume.size, least);
    // The first attempt left the source and the image half-way.
    opened.restart().unwrap();
    let summary = filled(opened.as_mut(), &mut volume, true).unwrap();
    assert_eq!(summary.files, 64);
    assert!(volume.size > least);
    target.finish(false).unwrap();

    options.image = direct.clone().into();
    (options.size, options.uuid) = (SizeChoice::Exact(volume.size), Some(volume.uuid));
    build(&options, &mut |_| ()).unwrap();
    assert!(fs::read(&grown).unwrap() == fs::read(&direct).unwrap(), "the images differ");
}
