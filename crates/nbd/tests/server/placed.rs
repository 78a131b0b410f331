//! Short writes of many connections to a file in memory, which are received in its mapped pages.

use std::fs::{File, FileTimes};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, SystemTime};

use rustix::fs::{SealFlags, fcntl_add_seals};

use crate::raw::{WRITE, answer, client, request, write};
use crate::served::Served;
use crate::spliced::{KIBIBYTE, SIZE, found, in_memory, served};

const PAGE: usize = 4 * KIBIBYTE;
/// Pages that are mapped together.
const UNIT: usize = 64 * KIBIBYTE;

/// As many clients as there are processors: with fewer their writes are received in other ways.
fn crowd(served: &Served) -> Vec<UnixStream> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let client = |_| {
        let mut client = client(served);
        assert_eq!(write(&mut client, 0, 0, &[]), 0);
        client
    };
    (0..processors).map(client).collect()
}

/// Sends a write of `byte` to each page from `start` on, all at once; returns the errors of the answers.
fn fill(client: &mut UnixStream, start: usize, pages: usize, byte: u8) -> Vec<u32> {
    let mut bytes = Vec::new();
    for page in 0..pages {
        bytes.extend(request(WRITE, page as u64, start + page * PAGE, PAGE));
        bytes.extend([byte; PAGE]);
    }
    client.write_all(&bytes).unwrap();
    let mut errors = vec![u32::MAX; pages];
    for _ in 0..pages {
        let (page, error) = answer(client);
        errors[page as usize] = error;
    }
    errors
}

/// Fills 32 pages until that needs no call for each; returns how often. If it always does this goes on for
/// ever.
fn fill_until_mapped(file: &File, client: &mut UnixStream, start: usize) -> u64 {
    let mut rounds = 0;
    for byte in (1..200).cycle() {
        rounds += 1;
        let done = is_without_call(file, || assert_eq!(fill(client, start, 32, byte), [0; 32]));
        let found = found(file);
        assert!(found[start..start + 32 * PAGE].iter().all(|other| *other == byte));
        if done {
            break;
        }
    }
    rounds
}

/// Whether no call wrote to the file during `work`, by the time of its last change: mapped pages leave
/// that as it is.
fn is_without_call(file: &File, work: impl FnOnce()) -> bool {
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
    file.set_times(FileTimes::new().set_modified(old)).unwrap();
    work();
    file.metadata().unwrap().modified().unwrap() == old
}

#[test]
fn what_is_written_again_needs_no_call_of_its_own() {
    let file = in_memory();
    let (served, device) = served(&file);
    let mut clients = crowd(&served);
    let before = device.statistics();
    let rounds = fill_until_mapped(&file, &mut clients[0], UNIT);
    let after = device.statistics();
    assert_eq!(after.bytes_written - before.bytes_written, rounds * 2 * UNIT as u64);
    let found = found(&file);
    assert!(found[..UNIT].iter().chain(&found[3 * UNIT..]).all(|byte| *byte == 0));
}

#[test]
fn no_page_is_made_that_was_not_written() {
    let file = in_memory();
    let (served, _device) = served(&file);
    file.set_len(0).unwrap();
    file.set_len(SIZE as u64).unwrap();
    let mut clients = crowd(&served);
    for byte in 1..100 {
        assert_eq!(fill(&mut clients[0], 5 * UNIT, 15, byte), [0; 15]);
    }
    assert_eq!(file.metadata().unwrap().blocks() * 512, 15 * PAGE as u64);
}

#[test]
fn a_file_that_became_shorter_fails_what_is_behind_its_end_and_no_more() {
    let file = in_memory();
    let (served, _device) = served(&file);
    let client = &mut crowd(&served)[0];
    fill_until_mapped(&file, client, 0);
    fill_until_mapped(&file, client, 2 * UNIT);
    file.set_len(3 * UNIT as u64).unwrap();
    // It may grow to the length of the device.
    assert_eq!(fill(client, 2 * UNIT, 32, 7), [0; 32]);
    file.set_len(SIZE as u64).unwrap();
    let bytes = found(&file);
    assert!(bytes[2 * UNIT..4 * UNIT].iter().all(|byte| *byte == 7));
    fill_until_mapped(&file, client, 2 * UNIT);
    file.set_len(3 * UNIT as u64).unwrap();
    fcntl_add_seals(&file, SealFlags::GROW).unwrap();
    for byte in 1..4 {
        // EPERM behind the end.
        assert_eq!(fill(client, 2 * UNIT, 32, byte), [[0; 16], [1; 16]].as_flattened());
        assert_eq!(fill(client, 0, 32, byte), [0; 32]);
    }
}

#[test]
fn writes_of_any_length_in_any_pieces_find_their_places() {
    let file = in_memory();
    let (served, _device) = served(&file);
    let clients = crowd(&served);
    let share = SIZE / clients.len() / UNIT * UNIT;
    let models: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..)
            .zip(clients)
            .map(|(number, client)| scope.spawn(move || writes(client, number, share)))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let found = found(&file);
    for (number, model) in models.iter().enumerate() {
        assert!(found[number * share..][..share] == *model, "client {number}");
    }
}

/// Has client `number` write to its `share` of the disk; returns what is there then.
fn writes(mut client: UnixStream, number: usize, share: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(number as u64);
    let mut model = vec![0; share];
    for _ in 0..400 {
        let (mut bytes, mut cookies, mut at) = (Vec::new(), 0, 0);
        // None covers another, so their order is of no account.
        while cookies < 20 {
            let length = [1, 1, 1, 2, 3, 7, 8, 40][random.usize(..8)] * PAGE;
            let length = if random.u8(..) < 10 { length - 700 } else { length };
            at += random.usize(..4) * PAGE;
            if at + length > share {
                break;
            }
            let data: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(length).collect();
            bytes.extend(request(WRITE, cookies, number * share + at, length));
            bytes.extend(&data);
            model[at..at + length].copy_from_slice(&data);
            at = (at + length).next_multiple_of(PAGE);
            cookies += 1;
        }
        for piece in bytes.chunks(random.usize(1_000..100_000)) {
            client.write_all(piece).unwrap();
            if random.u8(..) < 5 {
                thread::sleep(Duration::from_micros(200));
            }
        }
        let mut answered: Vec<_> = (0..cookies).map(|_| answer(&mut client)).collect();
        answered.sort_unstable();
        assert!(answered.into_iter().eq((0..cookies).map(|cookie| (cookie, 0))));
    }
    model
}
