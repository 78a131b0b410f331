//! One writer of an export: of our clients each wants to be it, those of others are one together.

use std::time::{Duration, Instant};

use undercroft_block::{Sector, flush, read_buffer, write_all_at};
use undercroft_nbd::client::{self, NbdDevice};
use undercroft_nbd::protocol::Uri;
use undercroft_nbd::server::{Export, Settings};

use crate::scripts::unconnected;
use crate::served::{Served, device, runs, sample};

fn open(served: &Served) -> Result<NbdDevice, client::ClientError> {
    client::open(&Uri::parse(&served.uri("disk")).unwrap(), false, None)
}

#[track_caller]
fn is_refused(served: &Served) {
    let refused = open(served).map(drop).unwrap_err().to_string();
    assert!(refused.contains("another client changes it: end that first"), "{refused}");
}

#[test]
fn a_second_program_is_refused_until_the_first_has_ended() {
    let served = Served::file(8 << 20);
    let first = open(&served).unwrap();
    write_all_at(&first, Sector(8), &[7; 4096]).unwrap();
    is_refused(&served);
    let uri = Uri::parse(&served.uri("disk")).unwrap();
    let reader = client::open(&uri, true, None).unwrap();
    assert_eq!(read_buffer(&reader, Sector(8), 512).unwrap()[0], 7);
    // Clients of others can see it, and see that they cannot change it.
    let found = runs("nbdinfo", &[&served.uri("disk")]);
    assert!(found.contains("is_read_only: true"), "{found}");
    flush(&first).unwrap();
    drop(first);
    // What it waits for is over at once.
    let started = Instant::now();
    drop(open(&served).unwrap());
    assert!(started.elapsed() < Duration::from_secs(30));
    let found = runs("nbdinfo", &[&served.uri("disk")]);
    assert!(found.contains("is_read_only: false"), "{found}");
    assert_eq!(read_buffer(&reader, Sector(8), 512).unwrap()[0], 7);
}

/// It was there before the program, and may have to do with something else.
#[test]
fn a_client_of_another_kind_cannot_change_what_a_program_changes() {
    let served = Served::file(8 << 20);
    let ready = served.path("ready");
    let (uri, taken) = (served.uri("disk"), served.path("taken"));
    let script = format!(
        "
import os, time
def wait(path):
    while not os.path.exists(path): time.sleep(.01)
other = nbd.NBD()
h.connect_uri(URI)
other.connect_uri(URI)
h.pread(512, 0)
open({ready:?}, 'w').close()
wait({taken:?})
for call in [lambda: h.pwrite(b'x' * 512, 0), lambda: h.zero(512, 0), lambda: h.trim(512, 0)]:
    try:
        call()
        assert False, 'was not refused'
    except nbd.Error as error:
        assert error.errno == 'EPERM', error
h.flush()
assert h.pread(512, 0) == b'\\7' * 512
os.remove({taken:?})
wait({taken:?})
h.pwrite(b'x' * 512, 0)
other.pwrite(b'y' * 512, 512)
os.remove({taken:?})
wait({taken:?})
"
    );
    let wait = |path: &std::path::Path, there: bool| {
        let started = Instant::now();
        while path.exists() != there {
            assert!(started.elapsed() < Duration::from_secs(60), "the script has ended");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    std::thread::scope(|scope| {
        let script = scope.spawn(|| unconnected(&uri, &script));
        wait(&ready, true);
        let first = open(&served).unwrap();
        write_all_at(&first, Sector(0), &[7; 512]).unwrap();
        std::fs::write(&taken, "").unwrap();
        wait(&taken, false);
        drop(first);
        drop(open(&served).unwrap());
        std::fs::write(&taken, "").unwrap();
        wait(&taken, false);
        is_refused(&served);
        std::fs::write(&taken, "").unwrap();
        script.join().unwrap();
    });
    let last = open(&served).unwrap();
    let found = read_buffer(&last, Sector(0), 1024).unwrap();
    assert_eq!((found[0], found[512]), (b'x', b'y'));
}

#[test]
fn a_shared_export_has_several() {
    let export = |directory: &std::path::Path| {
        sample(&directory.join("disk.img"), 2);
        vec![Export::new("disk", device(&directory.join("disk.img"))).shared()]
    };
    let served = Served::new(export, Settings::default());
    let (one, other) = (open(&served).unwrap(), open(&served).unwrap());
    write_all_at(&one, Sector(0), &[7; 512]).unwrap();
    write_all_at(&other, Sector(1), &[8; 512]).unwrap();
    assert_eq!(read_buffer(&one, Sector(1), 512).unwrap()[0], 8);
}
