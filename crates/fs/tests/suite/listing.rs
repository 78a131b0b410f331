//! Listings and walks.

use crate::volumes::{create, fresh};
use std::collections::BTreeSet;
use undercroft_fs::{Entry, Error, FileSystem, FileType, NewFile, RenameFlags};

fn names(fs: &FileSystem, count: usize) -> BTreeSet<Vec<u8>> {
    let directory = fs.nodes().mkdir(fs.root(), b"many", &NewFile::new(0o755)).unwrap().number;
    for number in 0..count {
        create(fs, directory, &format!("name-{number:05}"));
    }
    (0..count).map(|number| format!("name-{number:05}").into_bytes()).collect()
}

#[test]
fn a_listing_goes_on_at_its_cookies() {
    let fs = fresh();
    let mut expected = names(&fs, 1000);
    expected.extend([b".".to_vec(), b"..".to_vec()]);
    let directory = fs.metadata("/many").unwrap().number;
    // Seven at a time, and names come and go meanwhile.
    let (mut cookie, mut found) = (0, Vec::new());
    for turn in 0.. {
        let mut taken = 0;
        let next = fs
            .nodes()
            .readdir(directory, cookie, |entry: &Entry<'_>| {
                found.push(entry.name.to_vec());
                taken += 1;
                taken < 7
            })
            .unwrap();
        if taken == 0 {
            break;
        }
        cookie = next;
        if turn == 5 {
            let gone = expected.iter().nth(950).unwrap().clone();
            if !found.contains(&gone) {
                fs.nodes().unlink(directory, &gone).unwrap();
                expected.remove(&gone);
            }
        }
    }
    assert_eq!(found[..2], [b".".to_vec(), b"..".to_vec()]);
    assert_eq!(found.len(), expected.len(), "each once");
    assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected);
}

#[test]
fn a_visitor_may_change_the_directory_it_lists() {
    let fs = fresh();
    let expected = names(&fs, 500);
    let directory = fs.metadata("/many").unwrap().number;
    let mut seen = 0;
    fs.nodes()
        .readdir_plus(directory, 0, |entry, metadata| {
            assert_eq!((entry.number, entry.kind), (metadata.number, Some(metadata.kind)));
            if metadata.kind == FileType::Regular {
                seen += 1;
                fs.nodes().unlink(directory, entry.name).unwrap();
            }
            true
        })
        .unwrap();
    assert_eq!(seen, expected.len());
    fs.nodes().rmdir(fs.root(), b"many").unwrap();
}

#[test]
fn a_listing_shows_the_file_of_a_name_when_numbers_are_used_again() {
    let fs = fresh();
    let names: Vec<_> = names(&fs, 60).into_iter().collect();
    let directory = fs.metadata("/many").unwrap().number;
    let mut shown = Vec::new();
    fs.nodes()
        .readdir_plus(directory, 0, |entry, metadata| {
            if entry.name == names[0] {
                let [removed, swapped, other] = [&names[20], &names[40], &names[50]];
                let exchange = RenameFlags { exchange: true, ..RenameFlags::default() };
                let number = fs.nodes().lookup(directory, removed).unwrap().number;
                fs.nodes().unlink(directory, removed).unwrap();
                let again = create(&fs, directory, "again");
                assert_eq!(again.number(), number, "the number is used again");
                fs.nodes().rename((directory, swapped), (directory, other), exchange).unwrap();
            }
            shown.push((entry.name.to_vec(), *metadata));
            true
        })
        .unwrap();
    assert!(shown.iter().all(|(name, _)| *name != names[20]));
    for (name, metadata) in shown.into_iter().skip(2) {
        assert_eq!(fs.nodes().lookup(directory, &name).unwrap().number, metadata.number);
    }
}

#[test]
fn an_entry_leads_to_the_file_and_dots_to_directories() {
    let fs = fresh();
    let directory = fs.nodes().mkdir(fs.root(), b"directory", &NewFile::new(0o755)).unwrap().number;
    let mut dots = Vec::new();
    fs.nodes()
        .readdir(directory, 0, |entry| {
            dots.push((entry.name.to_vec(), entry.number));
            true
        })
        .unwrap();
    assert_eq!(dots, [(b".".to_vec(), directory), (b"..".to_vec(), fs.root())]);
    assert_eq!(fs.nodes().lookup(directory, b".").unwrap().number, directory);
    assert_eq!(fs.nodes().parent(directory).unwrap().number, fs.root());
    assert_eq!(fs.nodes().parent(fs.root()).unwrap().number, fs.root());
    let file = create(&fs, directory, "file").number();
    assert!(matches!(fs.nodes().readdir(file, 0, |_| true), Err(Error::WrongKind { .. })));
}

#[test]
fn entries_by_path_have_paths_and_kinds() {
    let fs = fresh();
    fs.create_dir_all("/tree/sub").unwrap();
    fs.write("/tree/file", "12345").unwrap();
    fs.symlink("file", "/tree/link").unwrap();
    let mut found: Vec<_> = fs
        .read_dir("/tree/")
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.path().to_str().unwrap().to_owned(), entry.kind()))
        .collect();
    found.sort();
    let expected = [
        ("/tree/file", FileType::Regular),
        ("/tree/link", FileType::Symlink),
        ("/tree/sub", FileType::Directory),
    ];
    assert_eq!(found, expected.map(|(path, kind)| (path.to_owned(), kind)));
    assert!(matches!(fs.read_dir("/tree/file").unwrap_err().error(), Error::WrongKind { .. }));
}

#[test]
fn a_walk_goes_depth_first_and_can_leave_directories_out() {
    let fs = fresh();
    fs.create_dir_all("/t/a/b").unwrap();
    fs.create_dir_all("/t/c").unwrap();
    fs.write("/t/a/b/file", "x").unwrap();
    fs.symlink("/", "/t/c/root").unwrap();
    let walk: Vec<_> = fs.walk("/t").unwrap().map(|entry| entry.unwrap()).collect();
    let paths: Vec<_> = walk.iter().map(|entry| entry.path().to_str().unwrap()).collect();
    assert_eq!(paths, ["/t", "/t/a", "/t/a/b", "/t/a/b/file", "/t/c", "/t/c/root"]);
    let depths: Vec<_> = walk.iter().map(undercroft_fs::WalkEntry::depth).collect();
    assert_eq!(depths, [0, 1, 2, 3, 1, 2]);
    assert_eq!(walk[3].metadata().size, 1);
    let mut walk = fs.walk("/").unwrap();
    let mut paths = Vec::new();
    while let Some(entry) = walk.next() {
        let path = entry.unwrap().path().to_str().unwrap().to_owned();
        if path == "/t/a" {
            walk.skip_directory();
        }
        paths.push(path);
    }
    assert_eq!(paths, ["/", "/t", "/t/a", "/t/c", "/t/c/root"]);
    assert_eq!(fs.walk("/t/a/b/file").unwrap().count(), 1);
}
