//! A disk with sectors that become bad between the scan and the copy.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use undercroft_block::testing::{Fault, FaultyDevice};
use undercroft_block::{BlockDevice, FileDevice, Operation, Sector};
use undercroft_image::FoundSource;
use undercroft_image::pack::{PackOptions, build};
use undercroft_image::unpack::{entries_to_directory, entries_to_tar};
use undercroft_recover::{Contents, Disk, FoundFile, Salvaged, Scan};
use undercroft_source::{Source, SourceSpec};

/// What is in the file at a byte.
fn byte(at: usize) -> u8 {
    (at / 512 % 251) as u8 + 1
}

fn find(device: &Arc<dyn BlockDevice>, scan: &Scan) -> (Disk, Arc<[FoundFile]>) {
    let (disk, found) = Salvaged::find(device, scan, &scan.volumes[0], &mut |_, _, _| {}).unwrap();
    (disk, found.files)
}

#[test]
fn sectors_that_become_bad_behind_the_scan_do_not_end_the_copy() {
    let home = tempfile::tempdir().unwrap();
    let (tree, image) = (home.path().join("tree"), home.path().join("image"));
    fs::create_dir(&tree).unwrap();
    let bytes: Vec<u8> = (0..3_000_000).map(byte).collect();
    for name in ["a", "b"] {
        fs::write(tree.join(name), &bytes).unwrap();
    }
    build(&PackOptions::new(SourceSpec::Path(tree), image.as_path()), &mut |_| {}).unwrap();
    let sound: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(&image, true).unwrap());
    let all = std::iter::once(0..sound.capacity().0).collect::<Vec<_>>();
    let scan = Scan::read(&sound, &all, &mut |_, _, _| {});
    let (disk, files) = find(&sound, &scan);
    let (range, start) = Contents::new(&disk, &files[0]).places().next().unwrap();
    assert_eq!(range, 0..3_000_000);
    let sector = |at: u64| Sector(start.0 + at / 512);

    // One sector in the middle of a piece, and all from a place on to the end.
    let fault = |range| Fault::new().on(Operation::Read).at(range);
    let faults = [
        fault(sector(1_200_128)..sector(1_200_640)),
        fault(sector(2_990_080)..sector(2_999_999 + 512)),
    ];
    let bad: Arc<dyn BlockDevice> = Arc::new(FaultyDevice::new(Arc::clone(&sound), faults));
    let (disk, files) = find(&bad, &scan);
    assert!(files.iter().all(|file| file.losses.is_empty()), "nothing is known of it before");
    let lost = [1_200_128..1_204_224, 2_990_080..3_000_000];
    let expect = |path: &Path| {
        for (at, found) in fs::read(path.join("a")).unwrap().into_iter().enumerate() {
            let is_lost = lost.iter().any(|range| range.contains(&(at as u64)));
            assert_eq!(found, if is_lost { 0 } else { byte(at) }, "at {at}");
        }
        assert!(fs::read(path.join("b")).unwrap() == bytes);
    };

    let mut source = FoundSource::new(&disk, &files, |_| true);
    let to = home.path().join("directory");
    entries_to_directory(&mut source, &to, false, &mut |_| {}).unwrap();
    expect(&to);
    let late = source.late_losses();
    let told: Vec<_> = late.first.iter().map(|loss| loss.range.clone()).collect();
    assert_eq!((late.files, &told[..], late.others), (1, &lost[..], 0));
    assert_eq!(late.bytes, 4096 + 9920);
    assert_eq!(late.first[0].path, b"a");
    assert!(source.warnings().unread[1].contains("bytes 2990080 to 3000000 of a"));

    let mut archive = Vec::new();
    let mut source = FoundSource::new(&disk, &files, |_| true);
    entries_to_tar(&mut source, &mut archive, &mut |_| {}).unwrap();
    let to = home.path().join("untarred");
    tar::Archive::new(&archive[..]).unpack(&to).unwrap();
    expect(&to);
}

/// A disk that is pulled out is no disk full of bad sectors.
#[test]
fn a_source_that_is_gone_ends_the_copy() {
    let home = tempfile::tempdir().unwrap();
    let (tree, image) = (home.path().join("tree"), home.path().join("image"));
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("long"), vec![5; 20 << 20]).unwrap();
    build(&PackOptions::new(SourceSpec::Path(tree), image.as_path()), &mut |_| {}).unwrap();
    let sound: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(&image, true).unwrap());
    let all = std::iter::once(0..sound.capacity().0).collect::<Vec<_>>();
    let scan = Scan::read(&sound, &all, &mut |_, _, _| {});
    let (disk, files) = find(&sound, &scan);
    let (_, start) = Contents::new(&disk, &files[0]).places().next().unwrap();
    let all = Fault::new().on(Operation::Read).at(start..Sector(start.0 + (20 << 11)));
    let (disk, files) = find(&(Arc::new(FaultyDevice::new(sound, [all])) as _), &scan);
    let mut source = FoundSource::new(&disk, &files, |_| true);
    let to = home.path().join("directory");
    let error = entries_to_directory(&mut source, &to, false, &mut |_| {}).unwrap_err();
    let causes: Vec<_> =
        std::iter::successors(Some(&error as &dyn std::error::Error), |e| e.source())
            .map(ToString::to_string)
            .collect();
    assert!(causes.concat().contains("does not answer any more"), "{causes:?}");
}
