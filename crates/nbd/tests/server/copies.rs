//! Whole disks, copied in both directions and compared.

use std::fs;

use crate::served::{Served, runs, sample};

#[test]
fn nbdinfo_sees_the_export_and_its_abilities() {
    let served = Served::file(64 << 20);
    let uri = served.uri("disk");
    let info = runs("nbdinfo", &["--json", &uri]);
    for wanted in [
        "\"structured\": true",
        "\"export-size\": 67108864",
        "\"is_read_only\": false",
        "\"can_multi_conn\": true",
        "\"can_fua\": true",
        "\"can_trim\": true",
        "\"can_fast_zero\": true",
        "\"can_df\": true",
        "\"can_cache\": true",
        "\"block_size_minimum\": 1",
        "\"base:allocation\"",
    ] {
        assert!(info.contains(wanted), "{wanted} is missing in {info}");
    }
    // The only export is the default one, too.
    assert_eq!(runs("nbdinfo", &["--size", &served.uri("")]).trim(), "67108864");
    assert!(runs("nbdinfo", &["--list", &served.uri("")]).contains("export=\"disk\""));
}

#[test]
fn nbdcopy_copies_both_ways_at_any_number_of_connections() {
    for connections in ["1", "4", "16"] {
        let mut served = Served::file(32 << 20);
        let (there, back) = (served.path("there.img"), served.path("back.img"));
        sample(&there, 32);
        let uri = served.uri("disk");
        let option = format!("--connections={connections}");
        runs("nbdcopy", &[&option, "--flush", there.to_str().unwrap(), &uri]);
        runs("nbdcopy", &[&option, &uri, back.to_str().unwrap()]);
        served.stop();
        assert!(fs::read(&there).unwrap() == fs::read(&back).unwrap(), "read back");
        let stored = fs::read(served.path("disk.img")).unwrap();
        assert!(fs::read(&there).unwrap() == stored, "stored");
        assert!(served.log.lock().is_empty(), "{:?}", served.log.lock());
    }
}

/// Its last piece is no whole block.
#[test]
fn nbdcopy_copies_a_file_that_ends_anywhere() {
    let mut served = Served::file(3_000_001);
    let there = served.path("there.img");
    sample(&there, 3);
    fs::File::options().write(true).open(&there).unwrap().set_len(3_000_001).unwrap();
    runs("nbdcopy", &["--flush", there.to_str().unwrap(), &served.uri("disk")]);
    served.stop();
    let (sent, stored) = (fs::read(&there).unwrap(), fs::read(served.path("disk.img")).unwrap());
    assert!(stored.starts_with(&sent) && stored[sent.len()..].iter().all(|byte| *byte == 0));
}

#[test]
fn qemu_converts_and_compares() {
    let served = Served::file(32 << 20);
    let there = served.path("there.img");
    sample(&there, 32);
    let (there, uri) = (there.to_str().unwrap(), served.uri("disk"));
    runs("qemu-img", &["convert", "-n", "-f", "raw", "-O", "raw", there, &uri]);
    runs("qemu-img", &["compare", "-f", "raw", "-F", "raw", there, &uri]);
    let back = served.path("back.qcow2");
    let back = back.to_str().unwrap();
    runs("qemu-img", &["convert", "-f", "raw", "-O", "qcow2", &uri, back]);
    runs("qemu-img", &["compare", "-f", "raw", "-F", "qcow2", there, back]);
}
