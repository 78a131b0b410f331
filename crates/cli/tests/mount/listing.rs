//! Listings of large directories.

use crate::mounted::Volume;
use rustix::fs::{Dir, DirEntry};
use std::collections::HashSet;
use std::fs::{self, File};

#[test]
fn all_names_are_listed_once() {
    const COUNT: usize = 20_000;
    let volume = Volume::new();
    let mounted = volume.mount(&[]);
    fs::create_dir(mounted.path("d")).unwrap();
    for number in 0..COUNT {
        File::create(mounted.path(format!("d/a name of some length {number}"))).unwrap();
    }
    let names: Vec<_> =
        fs::read_dir(mounted.path("d")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), COUNT);
    assert_eq!(names.iter().collect::<HashSet<_>>().len(), COUNT);
    // Half of them goes while they are listed.
    let mut seen = HashSet::new();
    for (index, entry) in fs::read_dir(mounted.path("d")).unwrap().enumerate() {
        let entry = entry.unwrap();
        assert!(seen.insert(entry.file_name()));
        if index % 2 == 0 {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    assert_eq!(seen.len(), COUNT);
    assert_eq!(fs::read_dir(mounted.path("d")).unwrap().count(), COUNT / 2);
    mounted.unmount();
}

#[test]
fn listings_go_on_where_they_are_told_to() {
    let volume = Volume::new();
    let mounted = volume.mount(&[]);
    for number in 0..500 {
        File::create(mounted.path(format!("{number}"))).unwrap();
    }
    let mut directory = Dir::new(File::open(volume.at()).unwrap()).unwrap();
    let mut list = |place: i64| -> Vec<(i64, Vec<u8>)> {
        directory.seek(place).unwrap();
        let of = |entry: DirEntry| (entry.offset(), entry.file_name().to_bytes().to_vec());
        directory.by_ref().map(|entry| of(entry.unwrap())).collect()
    };
    let all = list(0);
    assert_eq!(all.len(), 502);
    for place in [0, 1, 7, 250, 500] {
        assert!(list(all[place].0) == all[place + 1..], "behind entry {place}");
    }
    drop(directory);
    mounted.unmount();
}
