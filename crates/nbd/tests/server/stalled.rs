//! Clients that do not take their answers, and too many clients.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use undercroft_block::{BlockDevice as _, MemoryDevice};
use undercroft_nbd::server::{Export, Settings};

use crate::raw::{READ, client, request, unread};
use crate::served::{Served, runs};

fn memory(_: &Path) -> Vec<Export> {
    vec![Export::new("disk", Arc::new(MemoryDevice::new(64 << 20)))]
}

/// A client that asks for 64 MiB and reads nothing.
fn stalled(served: &Served) -> UnixStream {
    let mut client = unread(served);
    for _ in 0..64 {
        client.write_all(&request(READ, 0, 0, 1 << 20)).unwrap();
    }
    client
}

#[test]
fn a_client_that_takes_no_answers_costs_only_its_connection() {
    let settings = Settings {
        memory: 8 << 20,
        idle: Some(Duration::from_secs(1)),
        grace: Duration::from_secs(1),
        ..Settings::default()
    };
    let mut served = Served::new(memory, settings);
    let clients: Vec<_> = (0..4).map(|_| stalled(&served)).collect();
    assert_eq!(runs("nbdinfo", &["--size", &served.uri("disk")]).trim(), (64 << 20).to_string());
    // They end by the idle time, and no later than the stop.
    served.stop();
    drop(clients);
}

#[test]
fn clients_beyond_the_limit_are_turned_away() {
    let served = Served::new(memory, Settings { connections: 1, ..Settings::default() });
    let first = stalled(&served);
    while served.server.as_ref().unwrap().connections() == 0 {
        std::thread::yield_now();
    }
    let mut second = UnixStream::connect(served.path("socket")).unwrap();
    let mut bytes = Vec::new();
    second.read_to_end(&mut bytes).unwrap();
    assert!(bytes.is_empty(), "a greeting in spite of the limit");
    drop(first);
}

#[test]
fn clients_that_ask_for_nothing_do_not_hold_up_the_end() {
    // With this grace the test ends only if the stop wakes them.
    let grace = Duration::from_secs(24 * 3600);
    let mut served = Served::new(memory, Settings { grace, ..Settings::default() });
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let mut client = client(&served);
            client.write_all(&request(READ, 0, 0, 512)).unwrap();
            client.read_exact(&mut [0; 16 + 512]).unwrap();
            client
        })
        .collect();
    served.stop();
    for mut client in clients {
        assert_eq!(client.read(&mut [0; 1]).unwrap(), 0, "a byte too many");
    }
}

/// The thread of a connection gives memory back itself when it sends the rest of an answer, and nothing
/// wakes it for the request that waited for that.
#[test]
fn requests_that_waited_for_memory_are_answered() {
    let served = Served::new(memory, Settings { memory: 1 << 20, ..Settings::default() });
    let mut client = stalled(&served);
    client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // The greeting, the size and the flags, then 64 answers.
    let mut bytes = vec![0; 18 + 8 + 2 + 64 * (16 + (1 << 20))];
    let mut filled = 0;
    while filled < bytes.len() {
        // The socket is full again and again.
        std::thread::sleep(Duration::from_micros(100));
        let end = bytes.len().min(filled + (64 << 10));
        let count = client.read(&mut bytes[filled..end]).expect("an answer in time");
        assert!(count > 0, "the connection ended after {filled} bytes");
        filled += count;
    }
    assert!(bytes.ends_with(&[0; 1 << 20]));
}

#[test]
fn no_more_is_read_than_a_client_takes() {
    let memory = Arc::new(MemoryDevice::new(64 << 20));
    let device = Arc::clone(&memory);
    let served = Served::new(|_: &Path| vec![Export::new("disk", device)], Settings::default());
    let mut client = stalled(&served);
    // Until the socket is full, and then for a while.
    let started = Instant::now();
    while memory.statistics().bytes_read == 0 {
        assert!(started.elapsed() < Duration::from_secs(20), "nothing was read");
        std::thread::yield_now();
    }
    std::thread::sleep(Duration::from_millis(300));
    let read = memory.statistics().bytes_read;
    assert!(read <= 8 << 20, "{read} bytes were read for a client that takes none");
    client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut bytes = vec![1; 18 + 10 + 64 * (16 + (1 << 20))];
    client.read_exact(&mut bytes).unwrap();
    assert_eq!(memory.statistics().bytes_read, 64 << 20);
}
