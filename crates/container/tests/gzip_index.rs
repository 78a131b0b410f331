//! The index of gzip files in the user's cache. A program of its own, since it names the directory for the
//! whole process.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use undercroft_block::stack::{FileLeaf, LeafOptions};
use undercroft_block::{BlockDevice, Sector, read_buffer};

fn open(path: &Path) -> Arc<dyn BlockDevice> {
    let options = LeafOptions { read_only: true, ..LeafOptions::default() };
    undercroft_container::open(&FileLeaf::new(path), options).unwrap().unwrap()
}

fn indexes(cache: &Path) -> Vec<std::path::PathBuf> {
    let directory = cache.join("undercroft/gzip");
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// Has the cache in a directory, by a second process: variables are those of a whole process.
fn main() {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some("--within") {
        return within(Path::new(&arguments.next().unwrap()));
    }
    let home = tempfile::tempdir().unwrap();
    let status = Command::new(std::env::current_exe().unwrap())
        .arg("--within")
        .arg(home.path())
        .env("XDG_CACHE_HOME", home.path().join("cache"))
        .status();
    assert!(status.unwrap().success());
}

fn within(home: &Path) {
    let (raw, packed, cache) = (home.join("raw"), home.join("raw.gz"), home.join("cache"));
    let mut random = fastrand::Rng::with_seed(51);
    // Words that repeat, so that blocks refer to what is far before them, and begin within bytes.
    let words: Vec<Vec<u8>> = (0..2000).map(|_| (0..40).map(|_| random.u8(..)).collect()).collect();
    let mut bytes = Vec::new();
    while bytes.len() < 48 << 20 {
        bytes.extend(&words[random.usize(..words.len())]);
    }
    bytes.truncate(48 << 20);
    fs::write(&raw, &bytes).unwrap();
    assert!(Command::new("gzip").arg("--keep").arg(&raw).status().unwrap().success());
    let check = || {
        let device = open(&packed);
        assert_eq!(device.capacity().to_bytes(), Some(bytes.len() as u64));
        let mut random = fastrand::Rng::with_seed(52);
        for _ in 0..60 {
            let at = random.usize(..bytes.len() / 512 - 16);
            let read = read_buffer(&*device, Sector(at as u64), 16 * 512).unwrap();
            assert!(read[..] == bytes[at * 512..(at + 16) * 512], "sector {at}");
        }
    };
    check();
    let [index] = &indexes(&cache)[..] else { panic!("no index was kept") };
    let kept = fs::read(index).unwrap();
    check();
    // A file that was changed has another index.
    fs::remove_file(&packed).unwrap();
    assert!(Command::new("gzip").arg("--keep").arg(&raw).status().unwrap().success());
    check();
    let newest = indexes(&cache).into_iter().find(|path| path != index).unwrap();
    for change in [0, kept.len() / 2, kept.len() - 3] {
        let mut lie = fs::read(&newest).unwrap();
        lie[change] ^= 0xff;
        fs::write(&newest, &lie).unwrap();
        check();
        assert!(fs::read(&newest).unwrap() != lie, "it is made again");
    }
    fs::write(&newest, &kept[..100]).unwrap();
    check();
}
