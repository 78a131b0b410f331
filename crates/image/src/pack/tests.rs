//! Sizes that prove too small, and that they are rare.

use super::*;
use std::fs::{self, File};
use std::path::Path;
use undercroft_source::{Data, Entry, SourceError, SourceSpec};

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

    let mut opened =
        undercroft_source::open(&options.source, &options.source_options).unwrap().source;
    let survey = Survey::of(opened.as_mut(), &options).unwrap();
    let mut volume = volume_options(&options, SizeChoice::Exact(least), Some(&survey)).unwrap();
    let mut target = Target::open(&options.image, false, ImageFormat::Raw).unwrap();
    let mut filled = |source: &mut dyn Source, volume: &mut MkfsOptions, may_grow| {
        let place = &mut Place { target: &mut target, disk: None };
        fill(&options, volume, may_grow, source, place, Some(&survey), &mut |_| ())
    };

    let refused = filled(opened.as_mut(), &mut volume, false).unwrap_err();
    assert!(refused.is_full(), "{refused}");
    assert_eq!(volume.size, least);
    // The first attempt left the source and the image half-way.
    opened.restart().unwrap();
    let summary = filled(opened.as_mut(), &mut volume, true).unwrap();
    assert_eq!(summary.files, 64);
    assert!(volume.size > least);
    target.finish(false, &mut |_| ()).unwrap();

    options.image = direct.clone().into();
    (options.size, options.uuid) = (SizeChoice::Exact(volume.size), Some(volume.uuid));
    build(&options, &mut |_| ()).unwrap();
    assert!(fs::read(&grown).unwrap() == fs::read(&direct).unwrap(), "the images differ");
}

/// A source that counts how often it is read again.
struct Counted {
    source: Box<dyn Source>,
    restarts: u32,
}

impl Source for Counted {
    fn scan(&mut self, visit: &mut dyn FnMut(&Entry)) -> Result<(), SourceError> {
        self.source.scan(visit)
    }

    fn next_entry(&mut self) -> Result<Option<Entry>, SourceError> {
        self.source.next_entry()
    }

    fn next_data(&mut self) -> Result<Option<Data>, SourceError> {
        self.source.next_data()
    }

    fn restart(&mut self) -> Result<(), SourceError> {
        self.restarts += 1;
        self.source.restart()
    }
}

/// An archive of empty directories and files.
struct Archive(tar::Builder<File>);

impl Archive {
    fn directory(&mut self, path: &str) {
        self.entry(tar::EntryType::Directory, path, b"");
    }

    fn file(&mut self, path: &str, contents: &[u8]) {
        self.entry(tar::EntryType::Regular, path, contents);
    }

    fn entry(&mut self, kind: tar::EntryType, path: &str, contents: &[u8]) {
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(kind);
        header.set_mode(0o755);
        header.set_size(contents.len() as u64);
        self.0.append_data(&mut header, path, contents).unwrap();
    }

    fn directories(&mut self, count: u32, fill: impl Fn(&mut Self, &str)) {
        for number in 0..count {
            let path = format!("directory-{number:05}");
            self.directory(&path);
            fill(self, &path);
        }
    }
}

/// A tree that is large in one way.
fn lopsided(name: &str, archive: &mut Archive) {
    let files = |archive: &mut Archive, directory: &str, (count, length), contents: &[u8]| {
        for number in 0..count {
            archive.file(&format!("{directory}/{number:0length$}"), contents);
        }
    };
    match name {
        "small directories" => archive.directories(1000, |archive, directory| {
            files(archive, directory, (100, 10), b"");
        }),
        "directories of several blocks" => archive.directories(150, |archive, directory| {
            files(archive, directory, (300, 40), b"");
        }),
        "a flat directory" => files(archive, "flat", (40_000, 8), b""),
        "small files" => archive.directories(200, |archive, directory| {
            files(archive, directory, (100, 10), b"small");
        }),
        "directories alone" => archive.directories(20_000, |_, _| ()),
        "large attributes" => archive.directories(30, |archive, directory| {
            for number in 0..150 {
                let value = vec![b'x'; 1000 + 40 * number];
                archive.0.append_pax_extensions([("SCHILY.xattr.user.x", &value[..])]).unwrap();
                archive.file(&format!("{directory}/{number}"), b"");
            }
        }),
        _ => unreachable!("one of the names below"),
    }
}

/// How often a tree is packed until it fits.
fn packs(archive: &Path, image: &Path, size: SizeChoice) -> (u32, Summary) {
    let mut options = PackOptions::new(SourceSpec::Path(archive.into()), image.to_owned());
    options.size = size;
    let source = undercroft_source::open(&options.source, &options.source_options).unwrap().source;
    let mut source = Counted { source, restarts: 0 };
    let survey = Survey::of(&mut source, &options).unwrap();
    let mut volume = volume_options(&options, size, Some(&survey)).unwrap();
    let mut target = Target::open(&options.image, true, ImageFormat::Raw).unwrap();
    let place = &mut Place { target: &mut target, disk: None };
    let filled = fill(&options, &mut volume, true, &mut source, place, Some(&survey), &mut |_| ());
    let mut summary = filled.unwrap();
    summary.image_bytes = volume.size;
    (1 + source.restarts, summary)
}

#[test]
fn a_tree_is_packed_once() {
    let names = [
        "small directories",
        "directories of several blocks",
        "a flat directory",
        "small files",
        "directories alone",
        "large attributes",
    ];
    let scratch = tempfile::tempdir().unwrap();
    let [path, image] = ["archive", "image"].map(|name| scratch.path().join(name));
    for name in names {
        let mut archive = Archive(tar::Builder::new(File::create(&path).unwrap()));
        lopsided(name, &mut archive);
        archive.0.finish().unwrap();
        for size in [SizeChoice::Minimum, SizeChoice::Auto] {
            let (packs, summary) = packs(&path, &image, size);
            println!("{name}, {size:?}: {packs} packs, {summary:?}");
            assert_eq!(packs, 1, "{name}, {size:?}");
        }
    }
}
