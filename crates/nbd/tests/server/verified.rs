//! Single requests of all kinds, and many at once with checks of what is read.

use crate::served::{Served, runs};

#[test]
fn qemu_io_has_every_request_answered() {
    let served = Served::file(16 << 20);
    let uri = served.uri("disk");
    let out = runs(
        "qemu-io",
        &[
            "-f",
            "raw",
            "-c",
            "write -P 1 0 1M",
            "-c",
            "write -f -P 2 4096 512",
            "-c",
            "aio_write -P 3 2M 256k",
            "-c",
            "aio_flush",
            "-c",
            "flush",
            "-c",
            "read -P 1 0 4096",
            "-c",
            "read -P 2 4096 512",
            "-c",
            "read -P 1 4608 4096",
            "-c",
            "read -P 3 2M 256k",
            "-c",
            "write -z 8192 64k",
            "-c",
            "read -P 0 8192 64k",
            "-c",
            "write -z -u 2M 64k",
            "-c",
            "read -P 0 2M 64k",
            "-c",
            "discard 1M 1M",
            "-c",
            "read 15M 1M",
            &uri,
        ],
    );
    assert!(!out.contains("Pattern verification failed"), "{out}");
    assert!(!out.contains("error"), "{out}");
}

#[test]
fn fio_reads_what_it_wrote_at_any_number_of_connections() {
    for connections in [1_u64, 4, 16] {
        let served = Served::file(32 << 20);
        let uri = format!("--uri={}", served.uri("disk"));
        let part = (32 << 20) / connections;
        runs(
            "fio",
            &[
                "--name=verify",
                "--ioengine=nbd",
                &uri,
                "--rw=randrw",
                "--bsrange=4k-64k",
                "--iodepth=32",
                "--verify=crc32c",
                "--do_verify=1",
                "--verify_fatal=1",
                // No file of its own in the working directory.
                "--verify_state_save=0",
                "--thread=0",
                "--group_reporting",
                "--randseed=7",
                &format!("--numjobs={connections}"),
                &format!("--size={part}"),
                &format!("--offset_increment={part}"),
                &format!("--io_size={}", part / 2),
            ],
        );
    }
}
