//! The tree as a container image: ten layers, plain and compressed, in OCI image layouts.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::source::Source;
use crate::shell;

/// Layers of the image.
const LAYERS: usize = 10;

/// The tree in layers, and as a compressed archive.
pub(super) struct Layers {
    /// A layout with plain layers.
    pub(super) plain: PathBuf,
    /// A layout with gzip layers.
    pub(super) gzip: PathBuf,
    /// The flat archive, gzip.
    pub(super) archive: PathBuf,
}

impl Layers {
    /// Makes them in `home`, once: consecutive parts of the tree, of about equal size.
    pub(super) fn of(source: &Source, home: &Path) -> Result<Self> {
        let layers = Self {
            plain: home.join("layers"),
            gzip: home.join("layers-gzip"),
            archive: home.join("flat.tar.gz"),
        };
        if layers.archive.exists() {
            return Ok(layers);
        }
        println!("making {LAYERS} layers of {}, once", source.name);
        let mut entries = Vec::new();
        let parent = source.directory.parent().context("the tree has no directory above it")?;
        list(&source.directory, &mut entries)?;
        let (mut plain, mut gzip) = (Layout::new(&layers.plain)?, Layout::new(&layers.gzip)?);
        for part in split(&entries) {
            let list = home.join("list");
            let mut names = Vec::new();
            for path in part {
                names.extend(path.strip_prefix(parent)?.as_os_str().as_bytes());
                names.push(0);
            }
            fs::write(&list, names)?;
            let tar = home.join("layer");
            let mut command = Command::new("tar");
            command.args(["--create", "--no-recursion", "--null", "--directory"]).arg(parent);
            shell::run(command.arg("--files-from").arg(&list).arg("--file").arg(&tar))?;
            let packed = home.join("layer.gz");
            compress(&tar, &packed)?;
            let diff_id = digest(&tar)?;
            gzip.layer(&packed, "application/vnd.oci.image.layer.v1.tar+gzip", &diff_id)?;
            plain.layer(&tar, "application/vnd.oci.image.layer.v1.tar", &diff_id)?;
        }
        plain.finish()?;
        gzip.finish()?;
        // Last: what is there says that all is.
        let fresh = home.join("flat.unfinished");
        compress(&source.tar, &fresh)?;
        fs::rename(fresh, &layers.archive)?;
        Ok(layers)
    }
}

/// All entries below a directory, itself first, in the order of names, with their sizes.
fn list(path: &Path, entries: &mut Vec<(PathBuf, u64)>) -> Result<()> {
    let metadata = fs::symlink_metadata(path)?;
    entries.push((path.to_owned(), 1024 + metadata.len()));
    if metadata.is_dir() {
        let mut below = fs::read_dir(path)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<io::Result<Vec<_>>>()?;
        below.sort();
        for path in below {
            list(&path, entries)?;
        }
    }
    Ok(())
}

/// Parts of about equal size.
fn split(entries: &[(PathBuf, u64)]) -> Vec<Vec<&Path>> {
    let total: u64 = entries.iter().map(|(_, size)| size).sum();
    let mut parts = vec![Vec::new(); LAYERS];
    let mut before = 0;
    for (path, size) in entries {
        let part = u128::from(before) * LAYERS as u128 / u128::from(total.max(1));
        parts[usize::try_from(part).unwrap_or(0).min(LAYERS - 1)].push(path.as_path());
        before += size;
    }
    parts
}

fn compress(from: &Path, to: &Path) -> Result<()> {
    let out = File::create(to).with_context(|| format!("cannot create {}", to.display()))?;
    let mut command = Command::new("gzip");
    shell::run(command.args(["-6", "--stdout"]).arg(from).stdout(Stdio::from(out)))
}

/// The digest of a file, by the system's own program.
fn digest(path: &Path) -> Result<String> {
    let said = shell::output(Command::new("sha256sum").arg(path))?;
    let sum = said.split_whitespace().next().unwrap_or_default();
    ensure!(sum.len() == 64, "sha256sum said {said:?}");
    Ok(format!("sha256:{sum}"))
}

/// A layout in the making.
struct Layout {
    path: PathBuf,
    layers: Vec<Value>,
    diff_ids: Vec<String>,
}

impl Layout {
    fn new(path: &Path) -> Result<Self> {
        if path.exists() {
            fs::remove_dir_all(path)?;
        }
        fs::create_dir_all(path.join("blobs/sha256"))?;
        fs::write(path.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#)?;
        Ok(Self { path: path.to_owned(), layers: Vec::new(), diff_ids: Vec::new() })
    }

    /// Moves a file to its place among the blobs; its descriptor.
    fn blob(&self, file: &Path, media_type: &str) -> Result<Value> {
        let (digest, size) = (digest(file)?, fs::metadata(file)?.len());
        fs::rename(file, self.path.join("blobs").join(digest.replace(':', "/")))?;
        Ok(json!({ "mediaType": media_type, "digest": digest, "size": size }))
    }

    fn layer(&mut self, file: &Path, media_type: &str, diff_id: &str) -> Result<()> {
        self.layers.push(self.blob(file, media_type)?);
        self.diff_ids.push(diff_id.to_owned());
        Ok(())
    }

    fn document(&self, document: &Value, media_type: &str) -> Result<Value> {
        let file = self.path.join("document");
        File::create(&file)?.write_all(document.to_string().as_bytes())?;
        self.blob(&file, media_type)
    }

    fn finish(self) -> Result<()> {
        let config = json!({
            "architecture": "amd64", "os": "linux",
            "rootfs": { "type": "layers", "diff_ids": self.diff_ids },
        });
        let config = self.document(&config, "application/vnd.oci.image.config.v1+json")?;
        let media_type = "application/vnd.oci.image.manifest.v1+json";
        let manifest = json!({
            "schemaVersion": 2, "mediaType": media_type, "config": config, "layers": self.layers,
        });
        let mut manifest = self.document(&manifest, media_type)?;
        manifest["annotations"] = json!({ "org.opencontainers.image.ref.name": "t" });
        let index = json!({ "schemaVersion": 2, "manifests": [manifest] });
        fs::write(self.path.join("index.json"), index.to_string())?;
        Ok(())
    }
}
