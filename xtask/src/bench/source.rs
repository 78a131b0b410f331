//! The tree that is packed, as an archive and as a directory.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::{shell, system, workspace};

/// The Debian package with the Linux tree that figures are compared on.
const LINUX: &str = "linux-source-6.1";

/// In which form a competitor reads the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Input {
    Tar,
    Directory,
    GzipTar,
    /// A container image.
    Layers,
    GzipLayers,
}

/// One tree in both forms.
pub(super) struct Source {
    /// What the tree is called in the record.
    pub(super) name: String,
    /// A plain tar archive.
    pub(super) tar: PathBuf,
    /// The same, unpacked.
    pub(super) directory: PathBuf,
    /// Bytes of the archive.
    pub(super) tar_bytes: u64,
}

impl Source {
    /// A tree that the caller has in both forms.
    pub(super) fn given(tar: &Path, directory: &Path) -> Result<Self> {
        ensure!(directory.is_dir(), "{} is not a directory", directory.display());
        let tar_bytes =
            fs::metadata(tar).with_context(|| format!("cannot stat {}", tar.display()))?.len();
        let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let absolute = |path: &Path| {
            fs::canonicalize(path).with_context(|| format!("cannot resolve {}", path.display()))
        };
        Ok(Self { name, tar: absolute(tar)?, directory: absolute(directory)?, tar_bytes })
    }

    /// The Linux tree, fetched and unpacked once below the target directory.
    pub(super) fn linux() -> Result<Self> {
        let home = workspace::target("bench-sources");
        let tar = home.join(format!("{LINUX}.tar"));
        let directory = home.join(LINUX);
        if !directory.is_dir() {
            fetch_linux(&home, &tar, &directory)?;
        }
        Self::given(&tar, &directory)
    }
}

/// Reads a file through.
pub(super) fn read_file(path: &Path) -> Result<()> {
    File::open(path)
        .and_then(|mut file| io::copy(&mut file, &mut io::sink()))
        .with_context(|| format!("cannot read {}", path.display()))?;
    Ok(())
}

/// Reads all files below a directory through.
pub(super) fn read_directory(path: &Path) -> Result<()> {
    let entries = fs::read_dir(path).with_context(|| format!("cannot list {}", path.display()))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot list {}", path.display()))?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            read_directory(&entry.path())?;
        } else if kind.is_file() {
            read_file(&entry.path())?;
        }
    }
    Ok(())
}

fn fetch_linux(home: &Path, tar: &Path, directory: &Path) -> Result<()> {
    println!("fetching {LINUX}, once");
    let package = home.join("package");
    system::unpack_package(LINUX, &package)?;
    let packed = package.join(format!("usr/src/{LINUX}.tar.xz"));
    let plain = File::create(tar).with_context(|| format!("cannot create {}", tar.display()))?;
    let mut unpack = Command::new("xz");
    unpack.args(["--decompress", "--stdout"]).arg(&packed).stdout(Stdio::from(plain));
    shell::run(&mut unpack)?;
    // Unpacked beside its final place: a directory of that name is whole.
    let fresh = home.join("unpacking");
    if fresh.exists() {
        fs::remove_dir_all(&fresh)?;
    }
    fs::create_dir(&fresh)?;
    let mut extract = Command::new("tar");
    extract.arg("--extract").arg("--file").arg(tar).arg("--directory").arg(&fresh);
    shell::run(&mut extract)?;
    fs::rename(fresh.join(LINUX), directory)
        .with_context(|| format!("the archive of {LINUX} holds no directory of that name"))?;
    fs::remove_dir_all(&fresh)?;
    fs::remove_dir_all(&package)?;
    Ok(())
}
