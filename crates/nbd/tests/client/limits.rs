//! Nothing waits longer than the limit, and what cannot go on says why.

use std::fs::File;
use std::time::{Duration, Instant};

use undercroft_block::{Reason, Sector, flush, read_buffer, write_all_at};
use undercroft_judges::nbd::{NbdServer, Proxy};
use undercroft_nbd::client;
use undercroft_nbd::protocol::Uri;

use crate::{chain, open};

/// Far more than any limit here: for machines that do much else.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_server_that_does_not_answer_ends_the_device_at_the_limit() {
    let server = NbdServer::nbdkit(&["memory", "1M"]).unwrap();
    let device = open(&server.uri("", &["x-timeout=500ms"]));
    write_all_at(&device, Sector(0), &[7; 4096]).unwrap();
    server.freeze();
    let started = Instant::now();
    let error = write_all_at(&device, Sector(8), &[7; 4096]).unwrap_err();
    let waited = started.elapsed();
    assert!((Duration::from_millis(500)..PATIENCE).contains(&waited), "{waited:?}");
    let text = chain(&error);
    assert!(text.contains("no answer from the server of nbd+unix:///"), "{text}");
    assert!(text.contains("for 500 ms; a write that it had not flushed may be lost"), "{text}");
    // From here on nothing waits, even if the server comes back.
    server.thaw();
    let again = chain(&flush(&device).unwrap_err());
    assert!(again.contains("may be lost"), "{again}");
    assert!(matches!(read_buffer(&device, Sector(0), 512).unwrap_err().reason, Reason::Io(_)));
}

/// The header of an answer has come, and the data of the read has not.
#[test]
fn a_server_that_stops_in_the_middle_of_an_answer_ends_the_device_at_the_limit() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), vec![7; 1 << 20]).unwrap();
    let server = NbdServer::nbdkit(&["file", file.path().to_str().unwrap()]).unwrap();
    let proxy = Proxy::new(&server.socket()).unwrap();
    let device = open(&proxy.uri("", &["x-timeout=500ms", "x-connections=1"]));
    assert_eq!(read_buffer(&device, Sector(0), 4096).unwrap()[0], 7);
    // The request passes, and a part of the answer.
    proxy.hold_after(28 + 20 + 8 + 1000);
    let text = chain(&read_buffer(&device, Sector(8), 64 << 10).unwrap_err());
    assert!(text.contains("for 500 ms"), "{text}");
}

#[test]
fn a_server_that_is_gone_ends_the_device_at_the_limit() {
    let mut server = NbdServer::nbdkit(&["memory", "1M"]).unwrap();
    let device = open(&server.uri("", &["x-timeout=300ms"]));
    server.kill();
    let text = chain(&write_all_at(&device, Sector(8), &[7; 4096]).unwrap_err());
    assert!(text.contains("for 300 ms (cannot connect to"), "{text}");
    assert!(!text.contains("may be lost"), "nothing was answered before: {text}");
}

#[test]
fn a_device_that_is_only_read_goes_on_when_the_server_is_back() {
    let mut server = NbdServer::nbdkit(&["memory", "1M"]).unwrap();
    let uri = Uri::parse(&server.uri("", &["x-timeout=300ms"])).unwrap();
    let home = tempfile::tempdir().unwrap();
    drop(home);
    let device = client::open(&uri, true, None).unwrap();
    server.kill();
    // Holes are known; without a map of them this would read.
    let first = read_buffer(&device, Sector(0), 512);
    assert!(first.is_ok(), "zeroes need no server");
    drop(device);

    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), [7; 8192]).unwrap();
    let mut server = NbdServer::nbdkit(&["file", file.path().to_str().unwrap()]).unwrap();
    let uri = Uri::parse(&server.uri("", &["x-timeout=300ms"])).unwrap();
    let device = client::open(&uri, true, None).unwrap();
    server.kill();
    read_buffer(&device, Sector(0), 512).unwrap_err();
    server.start().unwrap();
    let started = Instant::now();
    // One attempt may have failed a moment ago: the pause before the next one is short.
    while read_buffer(&device, Sector(0), 512).is_err() {
        assert!(started.elapsed() < PATIENCE);
    }
}

#[test]
fn an_export_of_another_size_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(1 << 20).unwrap();
    let mut server = NbdServer::nbdkit(&["file", file.path().to_str().unwrap()]).unwrap();
    let device = open(&server.uri("", &["x-timeout=60s"]));
    write_all_at(&device, Sector(0), &[7; 4096]).unwrap();
    server.kill();
    File::options().write(true).open(file.path()).unwrap().set_len(2 << 20).unwrap();
    server.start().unwrap();
    let text = chain(&write_all_at(&device, Sector(8), &[7; 4096]).unwrap_err());
    assert!(text.contains("has changed: it had 1048576 bytes and has 2097152 now"), "{text}");
}

#[test]
fn a_server_that_leaves_with_its_last_client_is_started_again() {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(1 << 20).unwrap();
    let arguments = ["--filter=exitlast", "file", file.path().to_str().unwrap()];
    let mut server = NbdServer::nbdkit(&arguments).unwrap();
    let device = open(&server.uri("", &[]));
    write_all_at(&device, Sector(0), &[7; 4096]).unwrap();
    server.start().unwrap();
    write_all_at(&device, Sector(8), &[8; 4096]).unwrap();
    flush(&device).unwrap();
    let found = std::fs::read(file.path()).unwrap();
    assert!(found[..4096].iter().all(|byte| *byte == 7));
    assert!(found[4096..8192].iter().all(|byte| *byte == 8));
}
