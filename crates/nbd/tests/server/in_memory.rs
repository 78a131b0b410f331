//! Writes whose payload comes to memory.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use undercroft_block::testing::{Fault, FaultyDevice};
use undercroft_block::{MemoryDevice, Operation, Sector};
use undercroft_nbd::server::{Export, Settings};

use crate::raw::{READ, WRITE, answer, client, request, write};
use crate::served::Served;

const KIBIBYTE: usize = 1 << 10;
const SIZE: usize = 4096 * KIBIBYTE;
/// More than is received with one call, so that its rest is waited for.
const LONG: usize = 256 * KIBIBYTE;
/// Sectors that cannot be written.
const BAD: std::ops::Range<Sector> = Sector(6144)..Sector(6145);

/// A server of memory.
fn served() -> Served {
    let bad = Fault::new().on(Operation::Write).at(BAD).error(ErrorKind::StorageFull);
    let device = FaultyDevice::new(Arc::new(MemoryDevice::new(SIZE as u64)), [bad]);
    let export = Export::new("disk", Arc::new(device));
    Served::new(|_: &Path| vec![export], Settings::default())
}

fn read(client: &mut UnixStream, offset: usize, length: usize) -> Vec<u8> {
    client.write_all(&request(READ, 7, offset, length)).unwrap();
    assert_eq!(answer(client), (7, 0));
    let mut data = vec![0; length];
    client.read_exact(&mut data).unwrap();
    data
}

#[test]
fn bytes_that_come_bit_by_bit_are_written_where_they_belong() {
    let served = served();
    let mut random = fastrand::Rng::with_seed(5);
    let mut client = client(&served);
    let mut model = vec![0; SIZE];
    // The bad sector is behind them.
    let end = 3072 * KIBIBYTE;
    for cookie in 0..200 {
        let length = [LONG, 65 * KIBIBYTE, LONG, 64 * KIBIBYTE, 512, 200_000, 255 * 512]
            [cookie as usize % 7];
        let at = random.usize(..end - length);
        // Not all are of whole sectors.
        let at = if cookie % 3 == 0 { at } else { at / 512 * 512 };
        let data: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(length).collect();
        client.write_all(&request(WRITE, cookie, at, length)).unwrap();
        for piece in data.chunks(random.usize(10_000..300_000)) {
            client.write_all(piece).unwrap();
            if random.u8(..) < 20 {
                thread::sleep(Duration::from_micros(200));
            }
        }
        assert_eq!(answer(&mut client), (cookie, 0));
        model[at..at + length].copy_from_slice(&data);
    }
    assert!(read(&mut client, 0, SIZE / 2) == model[..SIZE / 2]);
    assert!(read(&mut client, SIZE / 2, SIZE / 2) == model[SIZE / 2..]);
}

#[test]
fn a_write_that_fails_has_one_answer_and_the_next_one_is_found() {
    let served = served();
    let mut client = client(&served);
    let bad = BAD.start.0 as usize * 512;
    for (cookie, before) in (20..).zip([0, LONG / 2]) {
        assert_eq!(write(&mut client, cookie, bad - before, &[2; LONG]), 28, "not ENOSPC");
        assert_eq!(write(&mut client, 9, 0, &[cookie as u8; LONG]), 0);
        assert_eq!(read(&mut client, 0, 512), [cookie as u8; 512]);
    }
}

#[test]
fn a_write_whose_rest_never_comes_ends_with_its_client_or_the_server() {
    let mut served = served();
    let broken = LONG - 1000;
    let begin = |served: &Served| {
        let mut client = client(served);
        client.write_all(&request(WRITE, 5, 1024 * KIBIBYTE, LONG)).unwrap();
        client.write_all(&vec![3; broken]).unwrap();
        client
    };
    drop(begin(&served));
    let server = served.server.as_ref().unwrap();
    while server.connections() > 0 {
        thread::yield_now();
    }
    let mut other = client(&served);
    let found = read(&mut other, 1024 * KIBIBYTE, LONG);
    assert!(found.iter().all(|&byte| byte == 0), "what did not come as a whole was written");
    drop(other);
    let held = begin(&served);
    served.stop();
    drop(held);
}
