//! On a device that answers late metadata is read ahead, and tasks wait instead of threads.

use crate::volumes::{close_and_check, memory, open};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use undercroft_block::stack::{Delay, Slowness};
use undercroft_block::testing::{Fault, FaultyDevice};
use undercroft_block::{BlockDevice, Operation};
use undercroft_fs::{FileSystem, InodeNumber, Metadata, OpenOptions};

/// A tree whose inodes take many clusters; the same volume open for reading on a late device, and
/// how many reads that was asked for.
fn volume() -> (FileSystem, FileSystem, Arc<AtomicUsize>) {
    let device = memory();
    let fs = open(&device);
    for directory in 0..40 {
        fs.create_dir_all(format!("/tree/d{}/e{directory}", directory % 7)).unwrap();
        for file in 0..30 {
            let path = format!("/tree/d{}/e{directory}/file-{file}", directory % 7);
            fs.write(path, format!("{directory} {file}")).unwrap();
        }
    }
    close_and_check(fs, &device);
    let reads = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&reads);
    let counted = Fault::new().on(Operation::Read).when(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        false
    });
    let slowness = Slowness { latency: Duration::from_millis(2), bandwidth: None };
    let late: Arc<dyn BlockDevice> = Arc::new(Delay::new(slowness, Arc::clone(&device)));
    let late: Arc<dyn BlockDevice> = Arc::new(FaultyDevice::new(late, [counted]));
    let open = |device| FileSystem::open(device, &OpenOptions::read_only()).unwrap();
    (open(device), open(late), reads)
}

fn walk(fs: &FileSystem) -> Vec<(PathBuf, Metadata)> {
    let entries = fs.walk("/").unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.path().to_owned(), *entry.metadata())).collect()
}

#[test]
fn walks_and_listings_are_the_same() {
    let (fast, late, reads) = volume();
    let expected = walk(&fast);
    assert!(expected.len() > 1240);
    assert_eq!(walk(&late), expected);
    let walked = reads.swap(0, Ordering::Relaxed);
    assert!(walked < 400, "{walked} reads");
    for (_, found) in expected.iter().filter(|(_, found)| found.is_dir()) {
        let list = |fs: &FileSystem| {
            let mut list = Vec::new();
            let add = |entry: &undercroft_fs::Entry<'_>, metadata: &Metadata| {
                list.push((entry.name.to_vec(), *metadata));
                true
            };
            fs.nodes().readdir_plus(found.number, 0, add).unwrap();
            list
        };
        assert_eq!(list(&late), list(&fast));
    }
    assert_eq!(reads.load(Ordering::Relaxed), 0, "all of it is in memory");
}

#[test]
fn a_thousand_lookups_are_on_their_way_in_one_thread() {
    let (fast, late, reads) = volume();
    let (root, before) = (late.root(), reads.load(Ordering::Relaxed));
    let find = move |fs: &FileSystem, path: &str| {
        let names = path.split('/').filter(|name| !name.is_empty());
        names.into_iter().try_fold(root, |directory: InodeNumber, name| {
            fs.nodes().lookup(directory, name.as_bytes()).map(|found| found.number)
        })
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut lookups = JoinSet::new();
    let paths: Vec<_> = walk(&fast).into_iter().map(|(path, found)| (path, found.number)).collect();
    for (path, number) in &paths {
        let (path, number) = (path.to_str().unwrap().to_owned(), *number);
        let found = late.awaited(move |fs| find(fs, &path));
        lookups.spawn_on(async move { (found.await.unwrap(), number) }, runtime.handle());
    }
    let found = runtime.block_on(lookups.join_all());
    assert_eq!(found.len(), paths.len());
    assert!(found.iter().all(|(found, expected)| found == expected));
    let read = reads.load(Ordering::Relaxed) - before;
    assert!(read < 400, "{read} reads for {} lookups", paths.len());
    let missing =
        runtime.block_on(late.awaited(|fs| fs.nodes().lookup(root, b"none"))).unwrap_err();
    assert_eq!(missing.kind(), undercroft_fs::ErrorKind::NotFound);
}
