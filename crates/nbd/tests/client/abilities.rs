//! What is asked of a server, and what is not; and its errors.

use undercroft_block::{
    Batch, Bio, BlockDevice, Plug, Sector, flush, read_buffer, write_all_at, write_zeroes_at,
};
use undercroft_judges::nbd::NbdServer;
use undercroft_nbd::client;
use undercroft_nbd::protocol::Uri;

use crate::{chain, device, open};

/// A server in memory that notes what it is asked, and its notes.
struct Noted {
    server: NbdServer,
    home: tempfile::TempDir,
}

impl Noted {
    fn new(arguments: &[&str]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let log = format!("logfile={}", home.path().join("log").display());
        let server = NbdServer::nbdkit(&[&["--filter=log"][..], arguments, &[&log]].concat());
        Self { server: server.unwrap(), home }
    }

    /// Lines about the beginning of this operation.
    fn lines(&self, operation: &str) -> Vec<String> {
        let log = std::fs::read_to_string(self.home.path().join("log")).unwrap();
        let begins = format!(" {operation} id=");
        log.lines().filter(|line| line.contains(&begins)).map(str::to_owned).collect()
    }
}

#[test]
fn holes_are_neither_read_nor_filled_with_zeroes() {
    let noted = Noted::new(&["memory", "1G"]);
    let device = open(&noted.server.uri("", &[]));
    write_zeroes_at(&device, Sector(0), 1 << 29).unwrap();
    assert!(read_buffer(&device, Sector(4096), 1 << 20).unwrap().iter().all(|byte| *byte == 0));
    assert_eq!((noted.lines("Read").len(), noted.lines("Zero").len()), (0, 0));

    write_all_at(&device, Sector(4096), &[7; 8192]).unwrap();
    let found = read_buffer(&device, Sector(4088), 4096 + 8192).unwrap();
    assert!(found[..4096].iter().all(|byte| *byte == 0) && found[4096..].iter().all(|b| *b == 7));
    assert_eq!(noted.lines("Read").len(), 1, "it is not all zeroes any more");
    write_zeroes_at(&device, Sector(4096), 8192).unwrap();
    assert_eq!(noted.lines("Zero").len(), 1);
    assert!(read_buffer(&device, Sector(4096), 8192).unwrap().iter().all(|byte| *byte == 0));
}

#[test]
fn forced_unit_access_is_passed_on_or_followed_by_a_flush() {
    let write = |uri: &str| {
        let device = device(uri);
        let batch = Batch::new();
        let data = undercroft_block::Buffer::copy_of(&[7; 4096]);
        let bio = Bio::write(Sector(8), data).force_unit_access().in_batch(&batch);
        Plug::new(&device).submit(bio);
        batch.wait().unwrap();
    };
    let native = Noted::new(&["--filter=fua", "memory", "1M", "fuamode=native"]);
    write(&native.server.uri("", &[]));
    let writes = native.lines("Write");
    assert!(writes.len() == 1 && writes[0].contains("fua=1"), "{writes:?}");

    // Without a mode the filter takes the ability away.
    let without = Noted::new(&["--filter=fua", "memory", "1M"]);
    // One flush comes before the zeroes of a new device are believed.
    write(&without.server.uri("", &[]));
    assert_eq!((without.lines("Write").len(), without.lines("Flush").len()), (1, 2));
}

#[test]
fn writes_without_a_flush_are_bounded_by_flushes_of_the_client() {
    let noted = Noted::new(&["memory", "64M"]);
    let device = open(&noted.server.uri("", &["x-unflushed=1M"]));
    let before = noted.lines("Flush").len();
    for megabyte in 0..32 {
        write_all_at(&device, Sector(megabyte * 2048), &vec![7; 1 << 20]).unwrap();
    }
    let flushes = noted.lines("Flush").len() - before;
    assert!(flushes >= 8, "{flushes} flushes of 32 MiB");
    assert!(noted.lines("Write").iter().all(|line| line.contains("fua=0")));
}

#[test]
fn a_server_that_flushes_slowly_is_not_asked_to_without_need() {
    let slow = ["get_size=echo 64M", "pread=exit 1", "pwrite=cat >/dev/null", "flush=sleep 1"];
    let noted = Noted::new(&[&["eval"][..], &slow].concat());
    let device = open(&noted.server.uri("", &[]));
    for megabyte in 0..16 {
        write_all_at(&device, Sector(megabyte * 2048), &vec![7; 1 << 20]).unwrap();
    }
    drop(device);
    // What is kept fits, so there is only the one that tells the time a flush takes, and the one before the
    // zeroes of a new device are believed.
    let count = noted.lines("Flush").len();
    assert!((1..=2).contains(&count), "{count} flushes");
}

#[test]
fn errors_of_the_server_are_those_of_the_bio() {
    let home = tempfile::tempdir().unwrap();
    let trigger = home.path().join("fail");
    let file = format!("error-file={}", trigger.display());
    let arguments =
        ["--filter=error", "memory", "1M", "error=ENOSPC", "error-pwrite-rate=100%", &file];
    let server = NbdServer::nbdkit(&arguments).unwrap();
    let device = open(&server.uri("", &[]));
    write_all_at(&device, Sector(0), &[7; 4096]).unwrap();
    std::fs::write(&trigger, "").unwrap();
    let error = write_all_at(&device, Sector(0), &[8; 4096]).unwrap_err();
    assert!(error.is_no_space(), "{error:?}");
    std::fs::remove_file(&trigger).unwrap();
    write_all_at(&device, Sector(0), &[9; 4096]).unwrap();
    flush(&device).unwrap();
    assert_eq!(read_buffer(&device, Sector(0), 4096).unwrap()[0], 9);
}

#[test]
fn an_export_that_is_read_only_is_opened_for_reading_alone() {
    let server = NbdServer::nbdkit(&["--readonly", "memory", "1M"]).unwrap();
    let uri = server.uri("", &[]);
    let uri = Uri::parse(&uri).unwrap();
    let error = client::open(&uri, false, None).map(drop).unwrap_err();
    assert!(error.to_string().ends_with("is read-only; export it for writing"), "{error}");
    let device = client::open(&uri, true, None).unwrap();
    assert!(device.is_read_only());
    write_all_at(&device, Sector(0), &[7; 512]).unwrap_err();
    read_buffer(&device, Sector(0), 512).unwrap();
}

#[test]
fn what_is_no_export_is_refused_with_the_reason() {
    let problem = |uri: &str| {
        chain(&client::open(&Uri::parse(uri).unwrap(), true, None).map(drop).unwrap_err())
    };
    let missing = problem("nbd+unix:///?socket=/nonexistent/socket");
    assert!(missing.starts_with("cannot connect to nbd+unix"), "{missing}");
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("disk");
    std::fs::write(&path, [0; 4096]).unwrap();
    let server = NbdServer::qemu(&["--format=raw", &path.display().to_string()]).unwrap();
    let unknown = problem(&server.uri("other", &[]));
    assert!(unknown.contains("refused to open it: no such export"), "{unknown}");
    assert!(problem(&server.uri("disk", &["x-timeout=never"])).contains("such as 30s"));
    assert!(client::open(&Uri::parse(&server.uri("disk", &[])).unwrap(), true, None).is_ok());
}

/// It greets and waits for the name of an export.
#[test]
fn a_server_without_options_is_used_by_the_name_of_an_export() {
    let server = NbdServer::nbdkit(&["--mask-handshake=0", "memory", "1M"]).unwrap();
    let device = open(&server.uri("", &[]));
    assert_eq!(device.capacity(), Sector(2048));
    write_all_at(&device, Sector(8), &[7; 4096]).unwrap();
    flush(&device).unwrap();
    assert_eq!(read_buffer(&device, Sector(8), 4096).unwrap()[4095], 7);
    drop(device);
    let uri = Uri::parse(&server.uri("", &[])).unwrap();
    let error = client::list(&uri).unwrap_err().to_string();
    assert!(error.contains("cannot list its exports"), "{error}");
}

#[test]
fn an_oldstyle_server_is_named_with_the_way_out() {
    let server = NbdServer::nbdkit(&["--oldstyle", "memory", "1M"]).unwrap();
    let error = client::open(&Uri::parse(&server.uri("", &[])).unwrap(), true, None).map(drop);
    let text = error.unwrap_err().to_string();
    assert!(text.contains("an oldstyle greeting") && text.contains("--newstyle"), "{text}");
}

#[test]
fn exports_are_listed() {
    let home = tempfile::tempdir().unwrap();
    for (name, bytes) in [("a", 4096), ("b", 8192)] {
        std::fs::write(home.path().join(name), vec![0; bytes]).unwrap();
    }
    let directory = format!("dir={}", home.path().display());
    let server = NbdServer::nbdkit(&["file", &directory]).unwrap();
    let mut exports = client::list(&Uri::parse(&server.uri("", &[])).unwrap()).unwrap();
    exports.sort_by(|one, other| one.name.cmp(&other.name));
    let found: Vec<_> =
        exports.iter().map(|export| (&*export.name, export.export.unwrap().size)).collect();
    assert_eq!(found, [("a", 4096), ("b", 8192)]);
    let b = device(&server.uri("b", &[]));
    assert_eq!(b.capacity(), Sector(16));
}
