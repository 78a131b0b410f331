//! Long writes to a file, which go from the socket to the page cache where that has their range: by a pipe,
//! or, if the file is in memory, to its mapped pages.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::net::SendFlags;
use undercroft_block::BlockDevice;
use undercroft_nbd::server::{Export, Settings};

use crate::raw::{WRITE, answer, client, request, write};
use crate::served::{Served, device_of};

pub(crate) const KIBIBYTE: usize = 1 << 10;
pub(crate) const SIZE: usize = 4096 * KIBIBYTE;

/// A server of `file`, and its device.
pub(crate) fn served(file: &File) -> (Served, Arc<dyn BlockDevice>) {
    served_with(file, Settings::default())
}

fn served_with(file: &File, settings: Settings) -> (Served, Arc<dyn BlockDevice>) {
    file.write_all_at(&vec![0; SIZE], 0).unwrap();
    let device = device_of(file);
    let export = Export::new("disk", Arc::clone(&device));
    (Served::new(|_: &Path| vec![export], settings), device)
}

pub(crate) fn in_memory() -> File {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    File::from(memfd_create("image", flags).unwrap())
}

fn on_disk() -> File {
    tempfile::tempfile_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

pub(crate) fn found(file: &File) -> Vec<u8> {
    let mut bytes = vec![0; SIZE];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

#[test]
fn what_has_come_is_written_before_the_rest_comes() {
    for idle in [None, Some(Duration::from_secs(3600))] {
        for file in [in_memory(), on_disk()] {
            sees_parts(&file, Settings { idle, ..Settings::default() });
        }
    }
}

fn sees_parts(file: &File, settings: Settings) {
    let (served, device) = served_with(file, settings);
    let mut client = client(&served);
    // With the first one more may be read than its header.
    assert_eq!(write(&mut client, 1, 0, &[1; 256 * KIBIBYTE]), 0);
    let before = device.statistics().bios;
    client.write_all(&request(WRITE, 2, 0, 256 * KIBIBYTE)).unwrap();
    for byte in 2..6 {
        client.write_all(&[byte; 64 * KIBIBYTE]).unwrap();
        let mut last = [0];
        // A test that waits for ever says that this does not hold.
        while last != [byte] {
            let at = (u64::from(byte) - 1) * 64 * KIBIBYTE as u64 - 1;
            file.read_exact_at(&mut last, at).unwrap();
            thread::yield_now();
        }
    }
    assert_eq!(answer(&mut client), (2, 0));
    let statistics = device.statistics();
    assert!(statistics.bios >= before + 4);
    assert_eq!(statistics.bytes_written, 512 * KIBIBYTE as u64);
}

#[test]
fn bytes_that_come_bit_by_bit_are_in_the_file() {
    for file in [in_memory(), on_disk()] {
        let (served, _device) = served(&file);
        let mut random = fastrand::Rng::with_seed(11);
        let mut client = client(&served);
        let mut model = vec![0; SIZE];
        for cookie in 0..300 {
            let length = [256, 128, 1024, 4, 129, 192, 2048][cookie as usize % 7] * KIBIBYTE;
            // Not all are of whole blocks.
            let length = if cookie % 11 == 0 { length - 700 } else { length };
            let at = random.usize(..SIZE - length);
            let at = if cookie % 5 == 0 { at } else { at / 4096 * 4096 };
            let data: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(length).collect();
            let mut bytes = request(WRITE, cookie, at, length);
            bytes.extend(&data);
            for piece in bytes.chunks(random.usize(1_000..300_000)) {
                client.write_all(piece).unwrap();
                if random.u8(..) < 10 {
                    thread::sleep(Duration::from_micros(200));
                }
            }
            model[at..at + length].copy_from_slice(&data);
            assert_eq!(answer(&mut client), (cookie, 0));
        }
        drop(served);
        assert!(found(&file) == model);
    }
}

#[test]
fn more_pieces_than_a_pipe_takes_are_in_the_file() {
    for file in [in_memory(), on_disk()] {
        takes_pieces(&file);
    }
}

fn takes_pieces(file: &File) {
    let (served, _device) = served(file);
    let mut client = client(&served);
    // Refused beyond a limit of the system, and less will do.
    let _ = rustix::net::sockopt::set_socket_send_buffer_size(&client, 1 << 20);
    let mut random = fastrand::Rng::with_seed(12);
    for (cookie, piece) in (1..).zip([100, 100, 64, 513, 1499, 1500, 3000, 1001]) {
        let length = 512 * KIBIBYTE;
        let data: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(length).collect();
        client.write_all(&request(WRITE, cookie, 8192, length)).unwrap();
        data.chunks(piece).for_each(|piece| client.write_all(piece).unwrap());
        assert_eq!(answer(&mut client), (cookie, 0));
        assert!(found(file)[8192..8192 + length] == data);
    }
}

#[test]
fn connections_that_write_to_the_same_place_do_not_mix_in_a_block() {
    for file in [in_memory(), on_disk()] {
        does_not_mix(&file);
    }
}

fn does_not_mix(file: &File) {
    let (served, device) = served(file);
    thread::scope(|scope| {
        for byte in 1..5 {
            let mut client = client(&served);
            scope.spawn(move || {
                let data = vec![byte; 512 * KIBIBYTE];
                for round in 0..100 {
                    let offset = round % 3 * 64 * KIBIBYTE;
                    assert_eq!(write(&mut client, round as u64, offset, &data), 0);
                }
            });
        }
    });
    assert_eq!(device.statistics().bytes_written, 400 * 512 * KIBIBYTE as u64);
    drop(served);
    let bytes = found(file);
    let written = &bytes[..640 * KIBIBYTE];
    assert!(
        written.chunks(4096).all(|block| {
            (1..5).contains(&block[0]) && block.iter().all(|byte| *byte == block[0])
        })
    );
    assert!(bytes[640 * KIBIBYTE..].iter().all(|byte| *byte == 0));
}

#[test]
fn a_file_that_refuses_a_write_fails_that_and_no_more() {
    let file = in_memory();
    let (served, _device) = served(&file);
    let mut client = client(&served);
    // It has not been mapped, and is not.
    fcntl_add_seals(&file, SealFlags::WRITE).unwrap();
    for cookie in 3..6 {
        assert_eq!(write(&mut client, cookie, 0, &[2; 256 * KIBIBYTE]), 1, "not EPERM");
        assert_eq!(write(&mut client, 9, 4096, &[2; 4096]), 1, "not EPERM");
    }
    assert!(found(&file) == [0; SIZE]);
}

#[test]
fn a_file_that_became_shorter_takes_what_it_can_and_the_next_request_is_found() {
    let (file, half) = (in_memory(), SIZE / 2);
    let (served, _device) = served(&file);
    let mut client = client(&served);
    let whole = 256 * KIBIBYTE;
    for cookie in 0..3 {
        assert_eq!(write(&mut client, cookie, half - whole / 2, &vec![1; whole]), 0);
        assert_eq!(write(&mut client, cookie, half + whole, &vec![1; whole]), 0);
    }
    file.set_len(half as u64).unwrap();
    // Its length is that of the device, and it may grow.
    assert_eq!(write(&mut client, 4, half + whole, &vec![2; whole]), 0);
    assert_eq!(write(&mut client, 5, half - whole / 2, &vec![3; whole]), 0);
    let mut bytes = vec![0; 2 * whole];
    file.read_exact_at(&mut bytes, (half - whole / 2) as u64).unwrap();
    let runs: Vec<_> =
        bytes.chunk_by(|one, other| one == other).map(|run| (run[0], run.len())).collect();
    assert_eq!(runs, [(3, whole), (0, whole / 2), (2, whole / 2)]);
    // It may not.
    file.set_len(half as u64).unwrap();
    fcntl_add_seals(&file, SealFlags::GROW).unwrap();
    for cookie in 6..9 {
        assert_eq!(write(&mut client, cookie, half + whole, &vec![4; whole]), 1, "not EPERM");
        assert_eq!(write(&mut client, cookie, half - whole / 2, &vec![4; whole]), 1, "not EPERM");
        assert_eq!(write(&mut client, cookie, half - 2 * whole, &vec![4; whole]), 0);
    }
}

#[test]
fn a_write_whose_rest_never_comes_ends_with_its_client_or_the_server() {
    let file = in_memory();
    let (mut served, _device) = served(&file);
    let begin = |served: &Served, length| {
        let mut client = client(served);
        assert_eq!(write(&mut client, 1, 0, &[1; 256 * KIBIBYTE]), 0);
        client.write_all(&request(WRITE, 2, 1024 * KIBIBYTE, 256 * KIBIBYTE)).unwrap();
        client.write_all(&vec![3; length]).unwrap();
        client
    };
    for length in [0, 100, 64 * KIBIBYTE, 100 * KIBIBYTE + 1] {
        drop(begin(&served, length));
        let server = served.server.as_ref().unwrap();
        while server.connections() > 0 {
            thread::yield_now();
        }
    }
    let bytes = found(&file);
    let (begun, behind) = bytes[1024 * KIBIBYTE..].split_at(100 * KIBIBYTE + 1);
    // What was not answered may be there or not, but nothing else.
    assert!(begun.iter().all(|byte| [0, 3].contains(byte)) && behind.iter().all(|byte| *byte == 0));
    let held = [0, 100, 64 * KIBIBYTE].map(|length| begin(&served, length));
    served.stop();
    drop(held);
}

#[test]
fn a_client_that_sends_no_rest_is_given_up_after_the_idle_time() {
    let file = in_memory();
    let settings = Settings { idle: Some(Duration::from_secs(1)), ..Settings::default() };
    let (served, _device) = served_with(&file, settings);
    let mut client = client(&served);
    assert_eq!(write(&mut client, 1, 0, &[1; 256 * KIBIBYTE]), 0);
    client.write_all(&request(WRITE, 2, 0, 256 * KIBIBYTE)).unwrap();
    let server = served.server.as_ref().unwrap();
    while server.connections() > 0 {
        thread::yield_now();
    }
    let log = served.log.lock();
    assert!(log.len() == 1 && log[0].ends_with("for the idle time"), "{log:?}");
}

#[test]
fn urgent_bytes_hold_up_nobody_else() {
    for file in [in_memory(), on_disk()] {
        let (mut served, _device) = served(&file);
        let (mut odd, mut other) = (client(&served), client(&served));
        let long = 256 * KIBIBYTE;
        for cookie in 0..4 {
            assert_eq!(write(&mut odd, cookie, 0, &vec![1; long]), 0);
        }
        // One byte of so many as come seems to be there, and is not read.
        odd.write_all(&request(WRITE, 4, 0, long)).unwrap();
        odd.write_all(&vec![2; long / 2]).unwrap();
        rustix::net::send(&odd, &[3], SendFlags::OOB).unwrap();
        odd.write_all(&vec![2; long / 2 - 1]).unwrap();
        for cookie in 0..100 {
            assert_eq!(write(&mut other, cookie, 0, &vec![4; long]), 0);
        }
        drop(odd);
        served.stop();
    }
}
