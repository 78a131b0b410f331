//! Containers that cryptsetup and QEMU have made, and what these read of ours.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use undercroft_block::{
    BlockDevice, FileDevice, Sector, flush, read_buffer, write_all_at, write_zeroes_at,
};
use undercroft_container::luks::{Container, Keys};

const MIB: usize = 1 << 20;
const PASSPHRASE: &str = "a passphrase";

/// A directory with the passphrase in a file.
struct Place {
    home: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("key"), PASSPHRASE).unwrap();
        Self { home }
    }

    fn path(&self, name: &str) -> String {
        self.home.path().join(name).display().to_string()
    }

    fn cryptsetup(&self, arguments: &[&str]) {
        run(Command::new("cryptsetup")
            .arg("-q")
            .arg("--key-file")
            .arg(self.path("key"))
            .args(arguments));
    }

    /// A file that cryptsetup encrypts with these bytes in it.
    fn encrypted(&self, name: &str, bytes: &[u8], arguments: &[&str]) -> String {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len((bytes.len() + 16 * MIB) as u64)
            .unwrap();
        let usual = [
            "reencrypt",
            "--encrypt",
            "--type=luks2",
            "--reduce-device-size=16M",
            "--force-offline-reencrypt",
        ];
        self.cryptsetup(&[&usual[..], arguments, &[&path]].concat());
        path
    }

    /// What cryptsetup finds in a container of version 2.
    fn decrypted(&self, path: &str) -> Vec<u8> {
        let (copy, header) = (self.path("copy"), self.path("header"));
        fs::copy(path, &copy).unwrap();
        let usual =
            ["reencrypt", "--decrypt", "--force-offline-reencrypt", "--header", &header, &copy];
        self.cryptsetup(&usual);
        fs::remove_file(header).unwrap();
        fs::read(copy).unwrap()
    }

    /// A container of version 1 in which QEMU has put bytes, and what QEMU finds in one.
    fn qemu(&self, from: &str, to: &str, is_out: bool) {
        let secret = format!("secret,id=s,file={}", self.path("key"));
        let mut command = Command::new("qemu-img");
        command.args(["convert", "--object", &secret]);
        if is_out {
            let image = format!("driver=luks,key-secret=s,file.filename={from}");
            run(command.args(["--image-opts", &image, "-O", "raw", to]));
        } else {
            let options = ["-f", "raw", "-O", "luks", "-o", "key-secret=s,iter-time=10", from, to];
            run(command.args(options));
        }
    }
}

fn run(command: &mut Command) {
    let output = command.output().expect("the program is there");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn keys(passphrase: &str) -> Keys {
    let mut keys = Keys::default();
    keys.add(passphrase.into());
    keys
}

fn container(path: &str, read_only: bool) -> Result<Container, String> {
    let device: Arc<dyn BlockDevice> =
        Arc::new(FileDevice::open(Path::new(path), read_only).unwrap());
    match Container::read(&device) {
        Ok(found) => Ok(found.expect("it is a container")),
        Err(error) => Err(error.to_string()),
    }
}

fn open(path: &str, read_only: bool) -> Arc<dyn BlockDevice> {
    container(path, read_only).unwrap().open(&keys(PASSPHRASE)).unwrap()
}

fn content(device: &dyn BlockDevice, bytes: usize) -> Vec<u8> {
    read_buffer(device, Sector(0), bytes).unwrap().to_vec()
}

fn random(seed: u64, bytes: usize) -> Vec<u8> {
    let mut random = vec![0; bytes];
    fastrand::Rng::with_seed(seed).fill(&mut random);
    random
}

const CHEAP: [&str; 2] = ["--pbkdf=pbkdf2", "--pbkdf-force-iterations=1000"];
const ARGON2: [&str; 4] = [
    "--pbkdf=argon2id",
    "--pbkdf-memory=16384",
    "--pbkdf-force-iterations=4",
    "--pbkdf-parallel=2",
];

#[test]
fn version_2_is_read_and_written() {
    let place = Place::new();
    let bytes = random(1, 4 * MIB);
    let variants: [(&str, &[&str]); 4] = [
        ("512", &["--sector-size=512"]),
        ("4096", &["--sector-size=4096", "--hash=sha512"]),
        ("short", &["--key-size=256"]),
        ("argon", &["--sector-size=512"]),
    ];
    for (name, arguments) in variants {
        let costs: &[&str] = if name == "argon" { &ARGON2 } else { &CHEAP };
        let path = place.encrypted(name, &bytes, &[costs, arguments].concat());
        let device = open(&path, true);
        assert!(content(&*device, bytes.len()) == bytes, "{name}");
        assert_eq!(device.limits().block_bytes, if name == "4096" { 4096 } else { 512 });
        drop(device);
        let header = fs::read(&path).unwrap();
        let device = open(&path, false);
        let other = random(2, MIB);
        write_all_at(&*device, Sector(8), &other).unwrap();
        write_zeroes_at(&*device, Sector(4096), MIB as u64).unwrap();
        flush(&*device).unwrap();
        drop(device);
        let mut expected = bytes.clone();
        expected[4096..4096 + MIB].copy_from_slice(&other);
        expected[2 * MIB..3 * MIB].fill(0);
        assert!(place.decrypted(&path)[..bytes.len()] == expected, "{name}");
        // Its header is as it was: data begin behind 8 MiB.
        assert!(fs::read(&path).unwrap()[..8 * MIB] == header[..8 * MIB], "{name}");
    }
}

#[test]
fn version_1_is_read_and_written() {
    let place = Place::new();
    let (plain, image, out) = (place.path("plain"), place.path("image"), place.path("out"));
    let mut bytes = random(3, 2 * MIB);
    fs::write(&plain, &bytes).unwrap();
    place.qemu(&plain, &image, false);
    assert!(content(&*open(&image, true), bytes.len()) == bytes);
    let device = open(&image, false);
    write_all_at(&*device, Sector(100), &[7; 5 * 512]).unwrap();
    flush(&*device).unwrap();
    drop(device);
    bytes[100 * 512..105 * 512].fill(7);
    place.qemu(&image, &out, true);
    assert!(fs::read(&out).unwrap()[..bytes.len()] == bytes);
    // Another maker, and a second slot.
    let made = place.path("made");
    File::create(&made).unwrap().set_len(8 << 20).unwrap();
    place.cryptsetup(&[
        "luksFormat",
        "--type=luks1",
        "--hash=sha1",
        "--pbkdf-force-iterations=1000",
        &made,
    ]);
    fs::write(place.path("second"), "second\n").unwrap();
    place.cryptsetup(&[
        "luksAddKey",
        "--pbkdf-force-iterations=1000",
        &made,
        &place.path("second"),
    ]);
    let device = container(&made, false).unwrap().open(&keys("second\n")).unwrap();
    write_all_at(&*device, Sector(0), &bytes[..MIB]).unwrap();
    flush(&*device).unwrap();
    drop(device);
    place.qemu(&made, &out, true);
    assert!(fs::read(&out).unwrap()[..MIB] == bytes[..MIB]);
}

#[test]
fn what_does_not_open_is_told() {
    let place = Place::new();
    let path = place.path("image");
    File::create(&path).unwrap().set_len(20 << 20).unwrap();
    let format = |arguments: &[&str]| {
        place.cryptsetup(&[&["luksFormat", &path][..], &CHEAP, arguments].concat());
    };
    format(&["--type=luks2"]);
    let failure = |keys: &Keys| container(&path, true).unwrap().open(keys).unwrap_err().to_string();
    assert!(failure(&Keys::default()).contains("there is no key"));
    let wrong = failure(&keys("wrong"));
    assert!(wrong.contains("no key that was given opens one of the 1 key slots"), "{wrong}");
    let file = File::options().write(true).open(&path).unwrap();
    // The first copy of the header is damaged, then the second as well.
    file.write_all_at(&[0x55; 100], 5000).unwrap();
    assert_eq!(open(&path, true).capacity(), Sector((4 << 20) / 512));
    file.write_all_at(&[0x55; 100], 16384 + 5000).unwrap();
    let damaged = container(&path, true).unwrap_err();
    assert!(damaged.contains("its checksum is wrong"), "{damaged}");
    format(&["--type=luks2"]);
    file.set_len(8 << 20).unwrap();
    let cut = failure(&keys(PASSPHRASE));
    assert!(cut.contains("is it cut?"), "{cut}");
    file.set_len(20 << 20).unwrap();
    format(&["--type=luks2", "--cipher=aes-cbc-essiv:sha256", "--key-size=256"]);
    let refused = container(&path, true).unwrap_err();
    assert!(refused.contains("encrypted by aes-cbc-essiv:sha256, which is not read"), "{refused}");
    format(&["--type=luks1"]);
    file.write_all_at(&u32::MAX.to_be_bytes(), 208 + 4).unwrap();
    let costly = failure(&keys(PASSPHRASE));
    assert!(costly.contains("wants 4294967295 iterations; the most are"), "{costly}");
    file.write_all_at(&u32::MAX.to_be_bytes(), 208 + 44).unwrap();
    let absurd = container(&path, true).unwrap_err();
    assert!(absurd.contains("key slot 0 has a key in 4294967295 stripes"), "{absurd}");
}
