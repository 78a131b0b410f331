//! Trees that are deep or wide.

use crate::volumes::{close_and_check, create, memory_of, open};
use std::time::{Duration, Instant};

const DEPTH: usize = 20_000;

/// Generous: it takes a second or two. Quadratic work takes minutes.
const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn a_deep_tree_is_made_walked_and_removed_in_seconds() {
    let device = memory_of(256 << 20);
    let fs = open(&device);
    let start = Instant::now();
    let path = "/d".repeat(DEPTH);
    fs.create_dir_all(&path).unwrap();
    fs.write(format!("{path}/file"), "deep").unwrap();
    assert_eq!(fs.read(format!("{path}/file")).unwrap(), b"deep");
    let back = "/..".repeat(DEPTH);
    assert_eq!(fs.canonicalize(format!("{path}{back}")).unwrap().to_str(), Some("/"));
    let deepest = fs.walk("/").unwrap().map(|entry| entry.unwrap().depth()).max();
    assert_eq!(deepest, Some(DEPTH + 1));
    fs.remove_dir_all("/d").unwrap();
    assert_eq!(fs.read_dir("/").unwrap().count(), 0);
    let took = start.elapsed();
    assert!(took < LIMIT, "{took:?}");
    close_and_check(fs, &device);
}

#[test]
fn a_wide_directory_is_removed_in_seconds() {
    let device = memory_of(256 << 20);
    let fs = open(&device);
    let start = Instant::now();
    fs.create_dir("/wide").unwrap();
    let directory = fs.metadata("/wide").unwrap().number;
    for number in 0..20_000 {
        create(&fs, directory, &format!("file-{number}"));
    }
    fs.remove_dir_all("/wide").unwrap();
    let took = start.elapsed();
    assert!(took < LIMIT, "{took:?}");
    close_and_check(fs, &device);
}
