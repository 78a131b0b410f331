//! Long reads of a file, which go from the page cache to the socket where that has them.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use undercroft_nbd::server::{Export, Settings};

use crate::raw::{READ, answer, client, request};
use crate::served::{Served, device_of};

const MEBIBYTE: usize = 1 << 20;
/// The last sector is there in part only.
const SIZE: usize = 8 * MEBIBYTE - 200;

/// Bytes that do not repeat, with zeroes in between.
fn contents() -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(7);
    let mut bytes: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(SIZE).collect();
    for _ in 0..20 {
        let (at, length) = (random.usize(..SIZE / 512) * 512, random.usize(..200) * 512);
        bytes[at..SIZE.min(at + length)].fill(0);
    }
    bytes
}

/// A server of a file with `bytes` and a hole, all of which is in the page cache, with the file.
fn served(bytes: &[u8], settings: Settings) -> (Served, File) {
    let file = tempfile::tempfile().unwrap();
    let hole = 3 * MEBIBYTE..4 * MEBIBYTE;
    file.write_all_at(&bytes[..hole.start], 0).unwrap();
    file.write_all_at(&bytes[hole.end..], hole.end as u64).unwrap();
    let export = Export::new("disk", device_of(&file));
    (Served::new(|_: &Path| vec![export], settings), file)
}

fn read(cookie: u64, offset: usize, length: usize) -> Vec<u8> {
    request(READ, cookie, offset, length)
}

#[test]
fn a_client_that_reads_now_and_then_gets_all_bytes() {
    let mut bytes = contents();
    let (served, _file) = served(&bytes, Settings::default());
    bytes[3 * MEBIBYTE..4 * MEBIBYTE].fill(0);
    bytes.resize(SIZE.next_multiple_of(512), 0);
    let mut random = fastrand::Rng::with_seed(8);
    let ranges: Vec<(usize, usize)> = (0..300)
        .map(|index| {
            let kibibytes = [4, 128, 200, 256, 300, 1024, 2048][index % 7];
            let length = kibibytes << 10;
            let last = bytes.len() - length;
            // Whole sectors, any bytes, and the end.
            let at = [random.usize(..=last) / 512 * 512, random.usize(..=last), last][index % 3];
            (at, length)
        })
        .collect();
    let mut client = client(&served);
    let mut sender = client.try_clone().unwrap();
    let asked = ranges.clone();
    let asking = std::thread::spawn(move || {
        for (cookie, (at, length)) in (0..).zip(asked) {
            sender.write_all(&read(cookie, at, length)).unwrap();
        }
    });
    let mut is_answered = vec![false; ranges.len()];
    for _ in &ranges {
        let (cookie, error) = answer(&mut client);
        let cookie = cookie as usize;
        assert_eq!(error, 0);
        assert!(!std::mem::replace(&mut is_answered[cookie], true), "twice");
        let (at, length) = ranges[cookie];
        let mut found = vec![1; length];
        for piece in found.chunks_mut(random.usize(1000..400_000)) {
            if random.u8(..) == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            client.read_exact(piece).unwrap();
        }
        assert!(found == bytes[at..at + length], "{length} bytes at {at}");
    }
    asking.join().unwrap();
}

#[test]
fn a_client_that_takes_no_bytes_of_a_file_costs_only_its_connection() {
    let limit = Duration::from_secs(1);
    let settings = Settings { idle: Some(limit), grace: limit, ..Settings::default() };
    let bytes = vec![7; SIZE];
    let (mut served, _file) = served(&bytes, settings);
    let stalled: Vec<_> = (0..3)
        .map(|_| {
            let mut client = client(&served);
            for cookie in 0..64 {
                client.write_all(&read(cookie, 0, (256 << 10) << (cookie % 4))).unwrap();
            }
            client
        })
        .collect();
    let server = served.server.as_ref().unwrap();
    let started = Instant::now();
    while server.connections() > 0 {
        assert!(started.elapsed() < Duration::from_secs(60), "the idle time has no effect");
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(stalled);
    let mut other = client(&served);
    other.write_all(&read(1, 4096, 128 << 10)).unwrap();
    let mut found = vec![0; 16 + (128 << 10)];
    other.read_exact(&mut found).unwrap();
    assert!(found[16..] == bytes[4096..][..128 << 10]);
    served.stop();
}
