//! Programs that the checks and the benchmarks need, and the Debian packages that bring them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use undercroft_judges::cache;

use crate::{shell, workspace};

/// A program, or the path of a file, and the Debian package that holds it.
pub(crate) struct Program {
    name: &'static str,
    package: &'static str,
}

const fn program(name: &'static str, package: &'static str) -> Program {
    Program { name, package }
}

/// The tools of the tests: judges, archives, devices.
pub(crate) const FOR_TESTS: &[Program] = &[
    program("mkfs.xfs", "xfsprogs"),
    program("xfs_db", "xfsprogs"),
    program("xfs_repair", "xfsprogs"),
    program("xfs_mdrestore", "xfsprogs"),
    program("getfattr", "attr"),
    program("getfacl", "acl"),
    program("sfdisk", "fdisk"),
    program("sgdisk", "gdisk"),
    program("fsck.fat", "dosfstools"),
    program("mcopy", "mtools"),
    program("qemu-img", "qemu-utils"),
    program("lvm", "lvm2"),
    program("cryptsetup", "cryptsetup-bin"),
    program("mdadm", "mdadm"),
    program("strace", "strace"),
    program("qemu-nbd", "qemu-utils"),
    program("nbdkit", "nbdkit"),
    program("openssl", "openssl"),
    program("nbdinfo", "libnbd-bin"),
    program("nbdsh", "python3-libnbd"),
    program("/usr/lib/python3/dist-packages/fsspec/__init__.py", "python3-fsspec"),
    program("/usr/lib/python3/dist-packages/pytest/__init__.py", "python3-pytest"),
    program("fio", "fio"),
    program("mount", "mount"),
    program("losetup", "mount"),
    program("mke2fs", "e2fsprogs"),
    program("mkswap", "util-linux"),
    program("tar", "tar"),
    program("gzip", "gzip"),
    program("xz", "xz-utils"),
    program("zstd", "zstd"),
    program("cc", "gcc"),
    program("make", "make"),
    program("matchpathcon", "selinux-utils"),
    program("/etc/selinux/default/contexts/files/file_contexts", "selinux-policy-default"),
    program("man", "man-db"),
    program("fusermount3", "fuse3"),
    program("setfiles", "policycoreutils"),
    program("rsync", "rsync"),
    program("umoci", "umoci"),
    program("skopeo", "skopeo"),
    program("grub-fstest", "grub-common"),
    program("tidy", "tidy"),
    program("chromium", "chromium"),
    program("/usr/share/doc/python3-venv/copyright", "python3-venv"),
    program("pdftotext", "poppler-utils"),
    program("rsvg-convert", "librsvg2-bin"),
    program("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", "fonts-dejavu-core"),
    program("bsdtar", "libarchive-tools"),
    program("mtree", "mtree-netbsd"),
    program("mactime", "sleuthkit"),
    program("/usr/share/initramfs-tools/hook-functions", "initramfs-tools-core"),
];

/// The programs of the suites for mounts, beyond those of the tests.
pub(crate) const FOR_MOUNT_SOAKS: &[Program] = &[
    program("stress-ng", "stress-ng"),
    program("dbench", "dbench"),
    program("git", "git"),
    program("sqlite3", "sqlite3"),
    program("pgbench", "postgresql"),
    program("setpriv", "util-linux"),
];

/// A Ceph cluster of one node behind an export.
pub(crate) const FOR_CEPH: &[Program] = &[
    program("ceph-mon", "ceph-mon"),
    program("ceph-osd", "ceph-osd"),
    program("rbd", "ceph-common"),
    program("qemu-nbd", "qemu-utils"),
    program("/usr/lib/x86_64-linux-gnu/qemu/block-rbd.so", "qemu-block-extra"),
];

/// The peers of a mount in benchmarks, beyond those of builds: a compiler for the example of libfuse.
pub(crate) const FOR_MOUNT_BENCHMARKS: &[Program] = &[
    program("fuse2fs", "fuse2fs"),
    program("fusermount3", "fuse3"),
    program("cc", "gcc"),
    program("pkg-config", "pkg-config"),
    program("find", "findutils"),
];

/// A program from crates.io, at a version that is known to do.
pub(crate) struct Crate {
    name: &'static str,
    version: &'static str,
    /// The features that are wanted, if not those that it has without a choice.
    features: Option<&'static str>,
}

const fn from_crates_io(name: &'static str, version: &'static str) -> Crate {
    Crate { name, version, features: None }
}

/// The suites for mounts that no distribution packages.
pub(crate) const CRATES_FOR_TESTS: &[Crate] =
    &[from_crates_io("pjdfstest", "0.2.2"), from_crates_io("fsx", "0.3.2")];

/// Object stores, from PyPI, which no distribution packages in a version that is new enough.
pub(crate) const FROM_PYPI_FOR_TESTS: &[&str] = &["moto[server]==5.2.1"];

/// What makes a book, without its server.
pub(crate) const CRATES_FOR_BOOK: &[Crate] =
    &[Crate { name: "mdbook", version: "0.5.4", features: Some("search") }];

/// What finds breaks of what is public.
pub(crate) const CRATES_FOR_PUBLISHING: &[Crate] =
    &[from_crates_io("cargo-semver-checks", "0.51.0")];

/// Makers of packages and of the list of contents.
pub(crate) const CRATES_FOR_DIST: &[Crate] = &[
    from_crates_io("cargo-deb", "3.8.0"),
    from_crates_io("cargo-generate-rpm", "0.21.0"),
    from_crates_io("cargo-cyclonedx", "0.5.9"),
];

/// The competitors of the benchmarks, beyond the judges.
pub(crate) const FOR_BENCHMARKS: &[Program] = &[
    program("mkfs.xfs", "xfsprogs"),
    program("mke2fs", "e2fsprogs"),
    program("mount", "mount"),
    program("tar", "tar"),
    program("xz", "xz-utils"),
    program("gzip", "gzip"),
    program("umoci", "umoci"),
];

/// A dump of a volume, and what restores it.
pub(crate) const FOR_DUMPS: &[Program] =
    &[program("xfsdump", "xfsdump"), program("xfsrestore", "xfsdump"), program("bash", "bash")];

/// What makes binaries and packages for distribution.
pub(crate) const FOR_DIST: &[Program] = &[
    program("git", "git"),
    program("tar", "tar"),
    program("zstd", "zstd"),
    program("gzip", "gzip"),
    program("sha256sum", "coreutils"),
    program("cc", "gcc"),
];

/// What builds for 64-bit processors of Intel and AMD, beyond that.
pub(crate) const FOR_X86_64: &[Program] = &[
    program("musl-gcc", "musl-tools"),
    program("x86_64-linux-gnu-objcopy", "binutils-x86-64-linux-gnu"),
];

/// What builds for 64-bit processors of ARM, beyond a compiler, which is not of Debian.
pub(crate) const FOR_AARCH64: &[Program] = &[
    program("aarch64-linux-gnu-objcopy", "binutils-aarch64-linux-gnu"),
    program("/usr/share/doc/python3-venv/copyright", "python3-venv"),
];

/// What judges packages, and runs what is for another processor.
pub(crate) const FOR_DIST_SOAKS: &[Program] = &[
    program("lintian", "lintian"),
    program("dpkg", "dpkg"),
    program("rpm", "rpm"),
    program("rpm2cpio", "rpm2cpio"),
    program("cpio", "cpio"),
    program("qemu-aarch64-static", "qemu-user-static"),
];

/// What makes a small Debian.
pub(crate) const FOR_DEBIAN: &[Program] = &[program("debootstrap", "debootstrap")];

/// What makes layers of it, beyond the tests.
pub(crate) const FOR_LAYERS: &[Program] =
    &[program("dpkg", "dpkg"), program("setfattr", "attr"), program("setcap", "libcap2-bin")];

/// What starts a disk, beyond the tests and the Debian on it.
pub(crate) const FOR_DISKS: &[Program] = &[
    program("qemu-system-x86_64", "qemu-system-x86"),
    program("cpio", "cpio"),
    program("modprobe", "kmod"),
    program("depmod", "kmod"),
];

/// Installs the packages of the programs that are missing: on Debian as root with apt, otherwise
/// the error says what to install.
pub(crate) fn install(programs: &[Program]) -> Result<()> {
    let packages = missing(programs);
    if packages.is_empty() {
        return Ok(());
    }
    install_packages(&packages)?;
    let still = missing(programs);
    if !still.is_empty() {
        bail!(
            "installed {}, and yet programs are missing: {}",
            packages.join(" "),
            still.join(" ")
        );
    }
    Ok(())
}

/// Installs programs from crates.io into the cache directory, unless they are there.
pub(crate) fn install_crates(crates: &[Crate]) -> Result<()> {
    let root = cache::programs();
    let mut list = workspace::cargo();
    list.args(["install", "--list", "--root"]).arg(&root);
    let there = shell::output(&mut list)?;
    for Crate { name, version, features } in crates {
        if there.lines().any(|line| line == format!("{name} v{version}:")) {
            continue;
        }
        println!("installing {name} {version} from crates.io");
        let mut cargo = workspace::cargo();
        cargo.args(["install", "--locked", "--force", name, "--version", version]);
        if let Some(features) = features {
            cargo.args(["--no-default-features", "--features", features]);
        }
        // Built anew, and not in the target directory of this workspace.
        cargo.arg("--root").arg(&root).env_remove("CARGO_TARGET_DIR");
        shell::run(&mut cargo).with_context(|| {
            format!("the program {name} {version} of crates.io is missing: with a connection, `cargo install {name} --version {version} --locked --root {}`", root.display())
        })?;
    }
    Ok(())
}

/// Installs packages of Python, which are named with their versions, into an environment in the cache directory,
/// unless they are there.
pub(crate) fn install_from_pypi(wanted: &[&str]) -> Result<()> {
    let directory = cache::python();
    let pip = directory.join("bin/pip");
    let have = shell::output(Command::new(&pip).args(["freeze"])).unwrap_or_default();
    // What is said in brackets is no part of what is there.
    let is_there = |package: &&str| {
        let (name, rest) = package.split_once('[').unwrap_or((package, ""));
        let line = format!("{name}{}", rest.split_once(']').map_or(rest, |(_, version)| version));
        have.lines().any(|known| known == line)
    };
    if wanted.iter().all(is_there) {
        return Ok(());
    }
    let list = wanted.join(" ");
    println!("installing {list} from PyPI");
    shell::run(Command::new("python3").args(["-m", "venv"]).arg(&directory))?;
    shell::run(Command::new(pip).args(["install", "--quiet"]).args(wanted)).with_context(|| {
        format!("packages of Python are missing: with a connection, `pip install {list}`")
    })
}

/// Installs Debian packages.
pub(crate) fn install_packages(packages: &[&str]) -> Result<()> {
    let list = packages.join(" ");
    let remedy = || {
        format!(
            "missing: {list} (names of Debian packages); install them, on Debian with \
             `apt-get install --yes {list}` as root"
        )
    };
    if shell::find("apt-get").is_none() || !rustix::process::geteuid().is_root() {
        bail!(remedy());
    }
    println!("installing {list}");
    let install = || {
        let mut command = Command::new("apt-get");
        command
            .args(["install", "--yes", "--quiet", "--no-install-recommends"])
            .args(packages)
            .env("DEBIAN_FRONTEND", "noninteractive");
        shell::run(&mut command)
    };
    // A fresh machine has no package lists, an old one has lists that name files long gone.
    let lists = Path::new("/var/lib/apt/lists");
    let known = lists.read_dir().is_ok_and(|entries| entries.count() > 3);
    if known && install().is_ok() {
        return Ok(());
    }
    shell::run(Command::new("apt-get").args(["update", "--quiet"])).with_context(remedy)?;
    install().with_context(remedy)
}

/// Fetches `package` of the machine's own release with the machine's own apt, which checks it, and
/// unpacks it into `directory`. Nothing is installed and no root is needed.
pub(crate) fn unpack_package(package: &str, directory: &Path) -> Result<()> {
    let download = directory.join("download");
    let file = download_package(package, &download)?;
    shell::run(Command::new("dpkg-deb").arg("-x").arg(&file).arg(directory))?;
    fs::remove_dir_all(&download).with_context(|| format!("cannot remove {}", download.display()))
}

/// Fetches a Debian package into `directory`, where nothing else is; returns its file.
pub(crate) fn download_package(package: &str, directory: &Path) -> Result<PathBuf> {
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot create {}", directory.display()))?;
    let mut command = Command::new("apt-get");
    command.current_dir(directory).args(["download", "--quiet", package]);
    shell::output(command.args(["-o", "APT::Sandbox::User=root"])).with_context(|| {
        format!("cannot fetch {package}; when it is not known, `apt-get update` as root may help")
    })?;
    let file = fs::read_dir(directory)?
        .next()
        .with_context(|| format!("apt-get download left no file of {package}"))??;
    Ok(file.path())
}

/// The packages, each once, of the programs that are not installed.
fn missing(programs: &[Program]) -> Vec<&'static str> {
    let mut packages = Vec::new();
    for program in programs {
        if shell::find(program.name).is_none() && !packages.contains(&program.package) {
            packages.push(program.package);
        }
    }
    packages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_names_its_package_once() {
        let programs =
            [program("sh", "dash"), program("no-such-a", "pack"), program("no-such-b", "pack")];
        assert_eq!(missing(&programs), ["pack"]);
    }
}
