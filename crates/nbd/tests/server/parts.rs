//! Long writes of clients that wait for each answer, which are written in parts as they come.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use undercroft_block::testing::{Fault, FaultyDevice};
use undercroft_block::{MemoryDevice, Operation, Sector};
use undercroft_nbd::server::{Export, Settings};

use crate::raw::{READ, WRITE, answer, client, request, write};
use crate::served::Served;

const KIBIBYTE: usize = 1 << 10;
const SIZE: usize = 4096 * KIBIBYTE;
const PART: u64 = 128 << 10;
/// A write of two parts.
const LONG: usize = 256 * KIBIBYTE;
/// Sectors that cannot be written.
const BAD: std::ops::Range<Sector> = Sector(6144)..Sector(6145);

/// A server of memory, and the lengths of all writes that it got.
fn served() -> (Served, Arc<Mutex<Vec<u64>>>) {
    let lengths = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&lengths);
    let watch = Fault::new().on(Operation::Write).when(move |bio| {
        told.lock().push(bio.length());
        false
    });
    let bad = Fault::new().on(Operation::Write).at(BAD).error(ErrorKind::StorageFull);
    let device = FaultyDevice::new(Arc::new(MemoryDevice::new(SIZE as u64)), [watch, bad]);
    let export = Export::new("disk", Arc::new(device));
    (Served::new(|_: &Path| vec![export], Settings::default()), lengths)
}

/// A client whose last write had parts. The next one has them too, unless that write took so long that
/// other threads have their turn, as it may on a machine with other work.
fn alone(served: &Served, lengths: &Mutex<Vec<u64>>) -> UnixStream {
    let mut client = client(served);
    // On one processor there are none: client and server take turns there in any case.
    let has_parts = thread::available_parallelism().is_ok_and(|processors| processors.get() > 1);
    lengths.lock().clear();
    for cookie in 0.. {
        assert_eq!(write(&mut client, cookie, 0, &[1; LONG]), 0);
        if !has_parts || lengths.lock().contains(&PART) {
            break;
        }
        assert!(cookie < 10_000, "no write has parts");
    }
    client
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
    let (served, lengths) = served();
    let mut random = fastrand::Rng::with_seed(5);
    let mut client = alone(&served, &lengths);
    let mut model = vec![0; SIZE];
    model[..LONG].fill(1);
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
fn a_write_that_fails_in_a_part_has_one_answer() {
    let (served, lengths) = served();
    let mut client = alone(&served, &lengths);
    let bad = BAD.start.0 as usize * 512;
    for (cookie, part) in (20..).zip(0..2) {
        let at = bad - part * PART as usize;
        assert_eq!(write(&mut client, cookie, at, &[2; LONG]), 28, "part {part}: not ENOSPC");
        assert_eq!(write(&mut client, 9, 0, &[part as u8; LONG]), 0);
        assert_eq!(read(&mut client, 0, 512), [part as u8; 512]);
    }
}

#[test]
fn a_write_whose_rest_never_comes_ends_with_its_client_or_the_server() {
    let (mut served, lengths) = served();
    let broken = LONG - 1000;
    let begin = |served: &Served| {
        let mut client = alone(served, &lengths);
        lengths.lock().clear();
        client.write_all(&request(WRITE, 5, 1024 * KIBIBYTE, LONG)).unwrap();
        client.write_all(&vec![3; broken]).unwrap();
        // The part that has come is written, if there are parts.
        let limit = Instant::now() + Duration::from_millis(200);
        while lengths.lock().is_empty() && Instant::now() < limit {
            thread::yield_now();
        }
        client
    };
    drop(begin(&served));
    let server = served.server.as_ref().unwrap();
    while server.connections() > 0 {
        thread::yield_now();
    }
    let mut other = client(&served);
    let found = read(&mut other, 1024 * KIBIBYTE, LONG);
    // What was not answered may be there or not, but nothing else.
    assert!(found[..broken].iter().all(|&byte| byte == 3 || byte == 0));
    assert!(found[broken..].iter().all(|&byte| byte == 0));
    drop(other);
    let held = begin(&served);
    served.stop();
    drop(held);
}
