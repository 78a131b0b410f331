//! Exports pass the checks of every device.

use std::cell::RefCell;
use std::path::Path;
use std::process::Command;

use undercroft_block::testing::conformance::check;
use undercroft_block::{SECTOR_SIZE, Sector};
use undercroft_judges::nbd::NbdServer;

use crate::device;

/// Checks devices on servers that `serve` starts for so many bytes and a directory of its own.
fn conforms(export: &str, parameters: &[&str], serve: impl Fn(u64, &Path) -> NbdServer) {
    let servers = RefCell::new(Vec::new());
    check(&|capacity: Sector| {
        let home = tempfile::tempdir().unwrap();
        let server = serve(capacity.0 * SECTOR_SIZE, home.path());
        let device = device(&server.uri(export, parameters));
        servers.borrow_mut().push((server, home));
        device
    });
}

fn memory(filters: &[&str], bytes: u64) -> NbdServer {
    let size = bytes.to_string();
    let arguments = [filters, &["memory", &size]].concat();
    NbdServer::nbdkit(&arguments).unwrap()
}

#[test]
fn nbdkit_in_memory_conforms() {
    conforms("", &[], |bytes, _| memory(&[], bytes));
}

#[test]
fn one_connection_conforms() {
    conforms("", &["x-connections=1"], |bytes, _| memory(&[], bytes));
}

#[test]
fn a_server_with_simple_replies_conforms() {
    conforms("", &[], |bytes, _| memory(&["--no-sr"], bytes));
}

#[test]
fn a_server_without_abilities_conforms() {
    let filters = ["--filter=nozero", "--filter=fua", "--filter=noextents"];
    conforms("", &[], |bytes, _| {
        let size = bytes.to_string();
        let tail = ["memory", &size];
        NbdServer::nbdkit(&[&filters[..], &tail].concat()).unwrap()
    });
}

#[test]
fn a_server_with_large_blocks_conforms() {
    let filter = "--filter=blocksize-policy";
    conforms("", &[], |bytes, _| {
        let size = bytes.to_string();
        let policy = [
            "blocksize-minimum=4096",
            "blocksize-preferred=4096",
            "blocksize-maximum=65536",
            "blocksize-error-policy=error",
        ];
        // Its size is a number of its blocks, too.
        let size = size.parse::<u64>().unwrap().next_multiple_of(4096).to_string();
        NbdServer::nbdkit(&[&[filter, "memory", &size][..], &policy].concat()).unwrap()
    });
}

#[test]
fn a_slow_server_conforms() {
    let filter = "--filter=delay";
    conforms("", &[], |bytes, _| {
        let size = bytes.to_string();
        NbdServer::nbdkit(&[filter, "memory", &size, "wdelay=1ms"]).unwrap()
    });
}

#[test]
fn nbdkit_on_a_file_conforms() {
    conforms("", &["x-connections=3"], |bytes, home| {
        let path = image(home, "raw", bytes);
        NbdServer::nbdkit(&["file", &path]).unwrap()
    });
}

#[test]
fn qemu_on_a_raw_file_conforms() {
    conforms("disk", &[], |bytes, home| {
        let path = image(home, "raw", bytes);
        NbdServer::qemu(&["--format=raw", "--discard=unmap", &path]).unwrap()
    });
}

#[test]
fn qemu_on_qcow2_conforms() {
    conforms("disk", &[], |bytes, home| {
        let path = image(home, "qcow2", bytes);
        NbdServer::qemu(&["--format=qcow2", "--discard=unmap", &path]).unwrap()
    });
}

fn image(home: &Path, format: &str, bytes: u64) -> String {
    let path = home.join("disk").display().to_string();
    let mut create = Command::new("qemu-img");
    create.args(["create", "-q", "-f", format, &path, &bytes.to_string()]);
    assert!(create.status().unwrap().success());
    path
}
