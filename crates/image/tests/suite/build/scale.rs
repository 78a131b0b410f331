//! Much of one kind: directories, links, extents. The sources are archives made here.

use std::collections::HashSet;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

use rustix::fs::{SeekFrom, seek};
use tempfile::TempDir;
use undercroft_image::pack::Summary;
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, kernel, rounds};

use crate::build::archive_writer::{ArchiveWriter, Comb};
use undercroft_testkit::image::judged::{build, image_of, options, repair};

/// Builds an image of an archive and has it judged; the mounted volume goes to `look`.
fn judge(write: impl FnOnce(&mut ArchiveWriter), look: impl FnOnce(&Summary, &LoopMount)) {
    let (directory, image, summary) = built(write);
    let volume = &options(directory.path(), &image).volume;
    repair(&image, summary.image_bytes, volume).unwrap();
    let mount = LoopMount::new(&image, Access::ReadOnly, &[]).unwrap();
    look(&summary, &mount);
    mount.unmount().unwrap();
}

fn built(write: impl FnOnce(&mut ArchiveWriter)) -> (TempDir, PathBuf, Summary) {
    let directory = tempfile::tempdir().unwrap();
    let archive = directory.path().join("archive");
    let mut writer = ArchiveWriter::create(&archive);
    write(&mut writer);
    writer.finish();
    let options = options(&archive, &directory.path().join("image"));
    let summary = build(&options).unwrap();
    (directory, image_of(&options).to_owned(), summary)
}

/// So many that its hash tree has two levels of nodes, and half a million in a soak.
#[test]
fn very_many_files_in_one_directory() {
    let files = rounds(200_000, 500_000);
    if !kernel::available_or_report() {
        return;
    }
    let write = |archive: &mut ArchiveWriter| {
        archive.directory("flat");
        for number in 0..files {
            let contents = if number % 100 == 0 { number.to_string() } else { String::new() };
            archive.file(&format!("flat/a file with the number {number}"), contents.as_bytes());
        }
    };
    judge(write, |summary, mount| {
        assert_eq!((summary.files, summary.directories), (files, 2));
        let mut seen = HashSet::new();
        for entry in fs::read_dir(mount.join("flat")).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let number: u64 = name["a file with the number ".len()..].parse().unwrap();
            assert!(number < files && seen.insert(number), "{name}");
            if number.is_multiple_of(100) {
                assert_eq!(fs::read_to_string(entry.path()).unwrap(), number.to_string());
            } else if number % 100 == 1 {
                let metadata = entry.metadata().unwrap();
                assert_eq!((metadata.len(), metadata.uid(), metadata.gid()), (0, 7, 8));
            }
        }
        assert_eq!(seen.len() as u64, files);
    });
}

/// So many that the tree of its parent pointers has two levels of nodes, and more in a soak.
#[test]
fn very_many_names_of_one_file() {
    let count = rounds(80_000, 200_000);
    if !kernel::available_or_report() {
        return;
    }
    let write = |archive: &mut ArchiveWriter| {
        archive.file("first", b"one file");
        for number in 1..count {
            if number % 1000 == 1 {
                archive.directory(&format!("directory-{:03}", number / 1000));
            }
            archive.link(&format!("directory-{:03}/name-{number}", (number - 1) / 1000), "first");
        }
    };
    judge(write, |summary, mount| {
        assert_eq!((summary.files, summary.hard_links), (1, count - 1));
        let first = mount.join("first").metadata().unwrap();
        assert_eq!(first.nlink(), count);
        let mut names = 1;
        for directory in fs::read_dir(mount.path()).unwrap() {
            let path = directory.unwrap().path();
            if path.is_dir() {
                for entry in fs::read_dir(path).unwrap() {
                    assert_eq!(entry.unwrap().metadata().unwrap().ino(), first.ino());
                    names += 1;
                }
            }
        }
        assert_eq!(names, count);
    });
}

#[test]
fn fifty_thousand_extents_in_a_tebibyte() {
    const SIZE: u64 = 1 << 40;
    const COMB: Comb = Comb { pieces: 50_000, length: 512, step: (SIZE / 50_000) >> 12 << 12 };
    if !kernel::available_or_report() {
        return;
    }
    let fill = |piece: u64| (piece % 255) as u8 + 1;
    let write = |archive: &mut ArchiveWriter| archive.comb("comb", SIZE, &COMB, fill);
    judge(write, |summary, mount| {
        assert_eq!(summary.bytes, COMB.pieces * COMB.length);
        let file = File::open(mount.join("comb")).unwrap();
        let metadata = file.metadata().unwrap();
        assert_eq!(metadata.len(), SIZE);
        let map_blocks = metadata.blocks() - COMB.pieces * 8;
        assert!(map_blocks < 600 * 8, "{map_blocks} sectors besides the data");
        let mut block = [0; 4096];
        for piece in 0..COMB.pieces {
            let start = piece * COMB.step;
            let before = if piece == 0 { 0 } else { start - COMB.step + 4096 };
            assert_eq!(seek(&file, SeekFrom::Data(before)), Ok(start));
            assert_eq!(seek(&file, SeekFrom::Hole(start)), Ok(start + 4096));
            file.read_exact_at(&mut block, start).unwrap();
            assert!(block[..512].iter().all(|byte| *byte == fill(piece)));
            assert!(block[512..].iter().all(|byte| *byte == 0));
        }
    });
}
