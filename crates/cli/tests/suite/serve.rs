//! Devices served to clients of others: the ways they come, and what they can ask.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use undercroft_judges::Xfsprogs;

use crate::run::{fails, program, sample, succeeds};

const BYTES: u64 = 96 << 20;

fn disk(home: &Path) -> String {
    let path = home.join("disk");
    File::create(&path).unwrap().set_len(BYTES).unwrap();
    path.display().to_string()
}

fn nbdinfo(arguments: &[&str]) -> String {
    let output = Command::new("nbdinfo").args(arguments).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {message}");
    String::from_utf8(output.stdout).unwrap()
}

/// libnbd starts the server with its socket in LISTEN_FDS, as systemd would.
#[test]
fn a_service_manager_hands_on_its_sockets() {
    let home = tempfile::tempdir().unwrap();
    let disk = disk(home.path());
    let server = env!("CARGO_BIN_EXE_undercroft");
    let size = nbdinfo(&["--size", "--", "[", server, "serve", &disk, "]"]);
    assert_eq!(size.trim(), BYTES.to_string());
}

#[test]
fn one_client_is_served_at_standard_input() {
    let home = tempfile::tempdir().unwrap();
    let disk = disk(home.path());
    let socket = home.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let served = disk.clone();
    let server = thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        let stdin = Stdio::from(OwnedFd::from(client));
        program().args(["serve", "--stdio", &served]).stdin(stdin).status().unwrap()
    });
    let uri = format!("nbd+unix:///?socket={}", socket.display());
    assert_eq!(nbdinfo(&["--size", &uri]).trim(), BYTES.to_string());
    assert!(server.join().unwrap().success());

    let no_socket = program().args(["serve", "--stdio", &disk]).stdin(Stdio::null()).output();
    let message = String::from_utf8(no_socket.unwrap().stderr).unwrap();
    assert!(message.contains("not a socket"), "{message}");
}

/// An image in a format of its own is served as the disk that it holds, as its bytes when they are meant, and
/// refused where the format is not read.
#[test]
fn a_disk_in_a_format_of_its_own_is_served() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).display().to_string();
    for (format, name) in [("qcow2", "image"), ("qed", "other")] {
        let create = ["create", "-qf", format, &path(name), "1G"];
        assert!(Command::new("qemu-img").args(create).status().unwrap().success());
    }
    let look = |format: &str| format!("qemu-img info -f {format} --output=json \"$NBD_URI\"");
    let write = "qemu-io -f raw -c 'write -P 7 1M 1M' \"$NBD_URI\" && nbdinfo --map \"$NBD_URI\"";
    let map = succeeds(["serve", &path("image"), "--exec", "sh", "-c", write]);
    assert!(map.contains("1073741824"), "the map is that of the disk: {map}");
    let check = Command::new("qemu-io").args(["-c", "read -P 7 1M 1M", &path("image")]).output();
    assert!(!String::from_utf8_lossy(&check.unwrap().stdout).contains("verification failed"));
    let raw = ["serve", "--format=raw", "--read-only", &path("image"), "--exec", "sh", "-c"];
    let info = succeeds([&raw[..], &[&look("qcow2")]].concat());
    assert!(info.contains("\"virtual-size\": 1073741824"), "{info}");
    let message = fails(1, ["serve", &path("other"), "--exec", "true"]);
    assert!(message.contains("a QED image") && message.contains("--format raw"), "{message}");
    let raw = ["serve", "--format=raw", "--read-only", &path("other"), "--exec", "sh", "-c"];
    succeeds([&raw[..], &[&look("qed")]].concat());
}

/// A file that ends within a sector is served as long as it is, and stays so.
#[test]
fn a_file_of_an_odd_length_keeps_it() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).display().to_string();
    for length in [3_000_001_usize, 4096 * 700 - 100, 511] {
        let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8 | 1).collect();
        fs::write(path("source"), &bytes).unwrap();
        fs::write(path("target"), vec![0; length]).unwrap();
        let copy = format!(
            "nbdinfo --size \"$NBD_URI\" && nbdcopy '{}' \"$NBD_URI\" && nbdcopy \"$NBD_URI\" '{}'",
            path("source"),
            path("back")
        );
        let size = succeeds(["serve", &path("target"), "--exec", "sh", "-c", &copy]);
        assert_eq!(size.trim(), length.to_string());
        for name in ["target", "back"] {
            assert!(fs::read(path(name)).unwrap() == bytes, "{name} of {length} bytes");
        }
        let size = "nbdinfo --size \"$NBD_URI\"";
        let read_only = ["serve", "--read-only", &path("target"), "--exec", "sh", "-c", size];
        assert_eq!(succeeds(read_only).trim(), length.to_string());
    }
}

/// What another program cuts off a file reads as an error, and not as a hole of zeroes.
#[test]
fn what_is_cut_off_a_served_file_is_an_error() {
    let home = tempfile::tempdir().unwrap();
    let disk = disk(home.path());
    let script = format!(
        "truncate -s 8M '{disk}'
        qemu-io -f raw -c 'read 4M 1M' \"$NBD_URI\" || exit 20
        qemu-io -f raw -c 'read 32M 1M' \"$NBD_URI\" && exit 21
        qemu-io -f raw -c 'read 7M 2M' \"$NBD_URI\" && exit 22
        nbdcopy \"$NBD_URI\" '{disk}.copy' && exit 23
        nbdinfo --map \"$NBD_URI\""
    );
    let output = program().args(["serve", &disk, "--exec", "sh", "-c", &script]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}: {said}", output.status);
    assert!(said.contains("Input/output error"), "{said}");
    let map: Vec<&str> = said.lines().rev().take(2).map(str::trim).collect();
    assert_eq!(map.len(), 2, "{said}");
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(map[1]), ["0", "8388608", "3", "hole,zero"], "{said}");
    assert_eq!(words(map[0]), ["8388608", "92274688", "0", "data"], "{said}");
}

/// What a volume says is free can be overwritten, and nothing of the volume is missing.
#[test]
fn free_space_of_a_volume_is_free() {
    let sample = sample(&[]);
    let map = succeeds([
        "serve",
        "--read-only",
        &sample.image,
        "--exec",
        "sh",
        "-c",
        "nbdinfo --map=undercroft:free \"$NBD_URI\"",
    ]);
    let ranges: Vec<[u64; 3]> = map
        .lines()
        .map(|line| {
            let mut columns = line.split_whitespace().map(|word| word.parse().unwrap());
            [(); 3].map(|()| columns.next().unwrap())
        })
        .collect();
    let size = fs::metadata(&sample.image).unwrap().len();
    let mut end = 0;
    for [offset, length, _] in &ranges {
        assert_eq!(*offset, end, "{map}");
        end += length;
    }
    assert_eq!(end, size, "{map}");

    let copy = sample.path("copy");
    fs::copy(&sample.image, &copy).unwrap();
    let file = File::options().write(true).open(&copy).unwrap();
    let mut free = 0;
    for [offset, length, flags] in ranges {
        if flags & 1 == 1 {
            let rubbish = vec![0xa5; usize::try_from(length).unwrap()];
            file.write_all_at(&rubbish, offset).unwrap();
            free += length;
        }
    }
    drop(file);
    let newest = Xfsprogs::newest().unwrap();
    newest.repair_check(Path::new(&copy)).unwrap();
    succeeds(["check", &copy]);
    let told = newest.db(Path::new(&copy), &["sb 0", "p fdblocks", "p blocksize"]).unwrap();
    let number = |name: &str| -> u64 {
        let line = told.lines().find_map(|line| line.strip_prefix(&format!("{name} = ")));
        line.unwrap().trim().parse().unwrap()
    };
    // The superblock also counts blocks that allocation groups keep for their trees.
    let counted = number("fdblocks") * number("blocksize");
    assert!(free <= counted && free >= counted / 10 * 9, "{free} of {counted}: {map}");
    let (one, other) = (sample.path("one"), sample.path("other"));
    succeeds(["extract", &sample.image, &one]);
    succeeds(["extract", &copy, &other]);
    assert!(Command::new("diff").args(["-r", &one, &other]).status().unwrap().success());
}

#[test]
fn names_and_addresses_that_cannot_be_are_refused_with_the_right_form() {
    let home = tempfile::tempdir().unwrap();
    let disk = disk(home.path());
    let socket = home.path().join("socket").display().to_string();
    let long = "x".repeat(4097);
    let refused = fails(1, ["serve", &disk, "--socket", &socket, "--name", &long]);
    assert!(refused.contains("has 4097 bytes; NBD has names of 4096 at most"), "{refused}");
    let refused = fails(2, ["serve", &disk, "--listen", "::1"]);
    assert!(refused.contains("write [::1]"), "{refused}");
    let refused = fails(2, ["serve", &disk, "--listen", "unix:/run/disk.sock"]);
    assert!(refused.contains("write --socket PATH"), "{refused}");
    for (wrong, right) in [
        ("nbd:unix:/run/s:exportname=a", "write nbd+unix:///a?socket=/run/s"),
        ("nbd:host:10810", "write nbd://host:10810/"),
        ("nbd+vsock://2:10809/a", "nbd+vsock://: this way to a server is not known"),
    ] {
        let refused = program().args(["check", wrong]).output().unwrap();
        let message = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && message.contains(right), "{message}");
    }
}

/// An interrupt of the terminal reaches it.
#[test]
fn a_program_beside_the_server_has_no_signals_blocked() {
    let home = tempfile::tempdir().unwrap();
    let disk = disk(home.path());
    let found = succeeds(["serve", &disk, "--exec", "grep", "^SigBlk:", "/proc/self/status"]);
    assert_eq!(found.split_whitespace().last(), Some("0000000000000000"));
}

/// Changes in memory and in a file: seen by later clients, gone with the server.
#[test]
fn changes_of_an_overlay_are_seen_and_lost() {
    let home = tempfile::tempdir().unwrap();
    let disk = disk(home.path());
    let script = "qemu-io -f raw -c 'write -q -P 7 5M 2M' \"$NBD_URI\" && \
                  qemu-io -f raw -c 'read -P 7 5M 2M' -c 'read -P 0 7M 2M' \"$NBD_URI\" && ls";
    for overlay in ["--overlay", "--overlay=."] {
        let mut command = program();
        command.current_dir(home.path()).args(["serve", overlay, &disk, "--exec", "sh", "-c"]);
        let output = command.arg(script).output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && !told.contains("verification failed"), "{output:?}");
        assert!(told.ends_with("\ndisk\n"), "{told}");
        assert!(fs::read(&disk).unwrap().iter().all(|byte| *byte == 0), "{overlay}");
    }
    let refused = program().args(["serve", "--overlay=/does/not/exist", &disk]).output().unwrap();
    let message = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && message.contains("/does/not/exist"), "{message}");
}
