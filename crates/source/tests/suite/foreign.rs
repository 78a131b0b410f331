//! Files that are no archives, and where an archive ends.

use crate::archive::Archive;
use crate::collect::{Delivered, drain, open, read_bytes, read_path};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use undercroft_source::{Options, SourceSpec};

fn scratch() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn sparse(path: &Path, length: u64) {
    File::create(path).unwrap().set_len(length).unwrap();
}

fn run(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// The error of a file as a source, by its path and as an archive, which are the same.
fn refused(path: &Path, options: &Options) -> String {
    let specs = [SourceSpec::Path(path.into()), SourceSpec::Archive(path.into())];
    let [by_path, as_archive] = specs.map(|spec| {
        let read = open(&spec, options).and_then(|mut source| drain(source.as_mut()));
        read.expect_err(&path.display().to_string()).to_string()
    });
    assert_eq!(by_path, as_archive);
    by_path
}

#[test]
fn a_file_of_another_format_is_named() {
    let work = scratch();
    let at = |name: &str| work.path().join(name);
    sparse(&at("ext4"), 64 << 20);
    run(Command::new("mke2fs").args(["-q", "-t", "ext4"]).arg(at("ext4")));
    run(Command::new("gzip").arg("--keep").arg(at("ext4")));
    sparse(&at("swap"), 1 << 20);
    run(Command::new("mkswap").arg(at("swap")));
    for (format, name) in [("qcow2", "qcow2"), ("vmdk", "vmdk"), ("vdi", "vdi"), ("vhdx", "vhdx")] {
        let make = ["create", "-q", "-f", format, name, "1M"];
        run(Command::new("qemu-img").current_dir(work.path()).args(make));
    }
    fs::write(at("small"), b"PK\x03\x04").unwrap();
    fs::write(at("bzip2"), b"BZh91AY&SY").unwrap();
    fs::write(at("lz4"), b"\x04\x22\x4d\x18\x64").unwrap();
    for options in [Options::default(), Options { strict: true, ..Options::default() }] {
        for (name, format, remedy) in [
            ("ext4", "ext4 file system", "mount it"),
            ("ext4.gz", "ext4 file system", "mount it"),
            ("swap", "swap space", "mount it"),
            ("qcow2", "a qcow2 image", "qemu-nbd"),
            ("vmdk", "a VMDK image", "qemu-nbd"),
            ("vdi", "a VDI image", "qemu-nbd"),
            ("vhdx", "a VHDX image", "qemu-nbd"),
            ("small", "a ZIP archive", "unpack it"),
            ("bzip2", "data compressed with bzip2", "decompress it"),
            ("lz4", "data compressed with lz4", "decompress it"),
        ] {
            let error = refused(&at(name), &options);
            assert!(error.contains(format) && error.contains(remedy), "{name}: {error}");
            assert!(error.contains(&at(name).display().to_string()), "{error}");
        }
    }
}

#[test]
fn zeros_are_an_archive_only_when_they_are_few_and_all() {
    let work = scratch();
    let path = work.path().join("zeros");
    // What tar makes of no members.
    for blocks in ["1", "20", "126"] {
        let mut tar = Command::new("tar");
        run(tar.args(["-b", blocks, "-c", "-T", "/dev/null", "-f"]).arg(&path));
        assert_eq!(read_path(&path, &Options::default()).unwrap(), []);
        assert_eq!(read_path(&path, &Options { strict: true, ..Options::default() }).unwrap(), []);
    }
    sparse(&path, 1 << 20);
    assert!(refused(&path, &Options::default()).contains("too long for one without entries"));
    for place in [512, 600, 1024, 5000] {
        let mut bytes = vec![0; 10240];
        bytes[place] = 1;
        fs::write(&path, &bytes).unwrap();
        assert!(refused(&path, &Options::default()).contains("begins as an archive ends"));
        assert!(read_bytes(&bytes, &Options::default()).is_err());
    }
}

/// GNU tar ends there, with a warning, and so does bsdtar.
#[test]
fn a_lone_zero_block_ends_an_archive() {
    let work = scratch();
    let path: PathBuf = work.path().join("lone.tar");
    let bytes = Archive::default().file("a", b"1").raw(&[0; 512]).file("b", b"2").end();
    fs::write(&path, bytes).unwrap();
    for tar in ["tar", "bsdtar"] {
        assert_eq!(run(Command::new(tar).arg("-tf").arg(&path)), b"a\n", "{tar}");
    }
    let mut source = open(&SourceSpec::Path(path.clone()), &Options::default()).unwrap();
    let all = drain(source.as_mut()).unwrap();
    assert_eq!(all.iter().map(Delivered::path).collect::<Vec<_>>(), ["a"]);
    assert_eq!(source.warnings().lone_zero_block, Some(1024));
    let strict = Options { strict: true, ..Options::default() };
    assert!(refused(&path, &strict).contains("lone zero block"));
}

#[test]
fn an_image_in_a_registry_is_named_with_the_program_that_fetches_it() {
    for name in ["docker://alpine:3", "docker-daemon:alpine:3", "containers-storage:localhost/a"] {
        let error = read_path(Path::new(name), &Options::default()).unwrap_err().to_string();
        assert!(error.contains(&format!("skopeo copy {name} oci:DIRECTORY")), "{error}");
    }
}
