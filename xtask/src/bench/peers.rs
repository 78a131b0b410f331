//! The competitors: what each runs from a source to a finished image.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use undercroft_judges::Xfsprogs;

use super::layers::Layers;
use super::prototype;
use super::source::{self, Input, Source};
use crate::workspace;

/// One way to make an image.
pub(super) struct Competitor {
    /// Unique; for `--only` and in the table.
    pub(super) name: &'static str,
    pub(super) input: Input,
    /// Whether it is this project.
    pub(super) ours: bool,
    /// Whether the image must have its size before.
    sized: bool,
    /// What `sh` runs; all of it is measured.
    pub(super) script: String,
}

/// Everything the competitors share.
pub(super) struct Peers {
    source: Quoted,
    image: PathBuf,
    mount: PathBuf,
    prototype: PathBuf,
    layers: Layers,
    /// Where other tools unpack layers.
    bundle: PathBuf,
    newest: Xfsprogs,
    distribution: Xfsprogs,
    size: u64,
}

/// The source's paths as words for the shell.
struct Quoted {
    tar: String,
    directory: String,
}

impl Peers {
    /// Makes the things that the competitors need and that are not measured: a mount point, a
    /// prototype file.
    pub(super) fn prepare(
        source: &Source,
        layers: Layers,
        work: &Path,
        newest: Xfsprogs,
    ) -> Result<Self> {
        let work =
            fs::canonicalize(work).with_context(|| format!("cannot resolve {}", work.display()))?;
        let mount = work.join("mount");
        fs::create_dir_all(&mount).with_context(|| format!("cannot create {}", mount.display()))?;
        let prototype = work.join("prototype");
        prototype::write(&source.directory, &prototype)?;
        Ok(Self {
            source: Quoted { tar: quoted(&source.tar), directory: quoted(&source.directory) },
            image: work.join("image"),
            mount,
            prototype,
            layers,
            bundle: work.join("bundle"),
            newest,
            distribution: Xfsprogs::distribution()?,
            // Twice the archive, and a gibibyte: room for the slack of small files and a log.
            size: (2 * source.tar_bytes + (1 << 30)).next_multiple_of(1 << 20),
        })
    }

    /// The file that each competitor writes.
    pub(super) fn image(&self) -> &Path {
        &self.image
    }

    /// Reads all that a competitor with this input will read, so that the page cache has it.
    pub(super) fn read_through(&self, source: &Source, input: Input) -> Result<()> {
        match input {
            Input::Tar => source::read_file(&source.tar),
            Input::Directory => source::read_directory(&source.directory),
            Input::GzipTar => source::read_file(&self.layers.archive),
            Input::Layers => source::read_directory(&self.layers.plain),
            Input::GzipLayers => source::read_directory(&self.layers.gzip),
        }
    }

    /// Removes the output of the last competitor.
    pub(super) fn clean(&self) -> Result<()> {
        if self.bundle.exists() {
            fs::remove_dir_all(&self.bundle)
                .with_context(|| format!("cannot remove {}", self.bundle.display()))?;
        }
        if self.image.exists() {
            fs::remove_file(&self.image)
                .with_context(|| format!("cannot remove {}", self.image.display()))?;
        }
        Ok(())
    }

    /// Makes the empty, sparse file that some competitors start from.
    pub(super) fn make_room(&self, competitor: &Competitor) -> Result<()> {
        if competitor.sized {
            File::create(&self.image)
                .and_then(|file| file.set_len(self.size))
                .with_context(|| format!("cannot create {}", self.image.display()))?;
        }
        Ok(())
    }

    /// All competitors.
    pub(super) fn all(&self) -> Result<Vec<Competitor>> {
        let Quoted { tar, directory } = &self.source;
        let image = quoted(&self.image);
        let mount = quoted(&self.mount);
        let prototype = quoted(&self.prototype);
        let newest = quoted(self.newest.tool("mkfs.xfs")?);
        let distribution = quoted(self.distribution.tool("mkfs.xfs")?);
        let mut all = vec![
            // No file system at all: the price of moving the bytes.
            Competitor { sized: false, ..peer("cat", Input::Tar, format!("cat {tar} > {image}")) },
            self.our("undercroft from tar", Input::Tar, tar),
            self.our("undercroft from directory", Input::Directory, directory),
            peer(
                "kernel mount and tar",
                Input::Tar,
                format!(
                    "{distribution} -q -f {image}; mount -t xfs -o loop {image} {mount}; \
                     tar --extract --file {tar} --directory {mount}; umount {mount}"
                ),
            ),
            peer(
                "newest mkfs.xfs -p directory",
                Input::Directory,
                format!("{newest} -q -f -p {directory} {image}"),
            ),
            peer(
                "mkfs.xfs -p prototype",
                Input::Directory,
                format!("{distribution} -q -f -p {prototype} {image}"),
            ),
            peer(
                "mke2fs -d directory",
                Input::Directory,
                format!("mke2fs -q -F -t ext4 -d {directory} {image}"),
            ),
        ];
        all.extend(self.of_layers(&newest));
        Ok(all)
    }

    /// Those that begin with the layers of a container image, and ours with its flat archive.
    fn of_layers(&self, newest: &str) -> Vec<Competitor> {
        let [plain, gzip, archive, bundle, image] = [
            &self.layers.plain,
            &self.layers.gzip,
            &self.layers.archive,
            &self.bundle,
            &self.image,
        ]
        .map(|path| quoted(path));
        let umoci = |layout: &str| {
            format!(
                "umoci unpack --image {layout}:t {bundle}; \
                 {newest} -q -f -p {bundle}/rootfs {image}"
            )
        };
        vec![
            self.our("undercroft from 10 layers", Input::Layers, &format!("oci:{plain}:t")),
            self.our("undercroft from gzip tar", Input::GzipTar, &archive),
            self.our("undercroft from 10 gzip layers", Input::GzipLayers, &format!("oci:{gzip}:t")),
            peer("umoci unpack, newest mkfs.xfs -p", Input::Layers, umoci(&plain)),
            peer("umoci unpack gzip, newest mkfs.xfs -p", Input::GzipLayers, umoci(&gzip)),
        ]
    }

    fn our(&self, name: &'static str, input: Input, source: &str) -> Competitor {
        let ours = quoted(&workspace::target("release/undercroft"));
        let image = quoted(&self.image);
        let script = format!("{ours} build {source} {image} --force --json");
        Competitor { ours: true, sized: false, ..peer(name, input, script) }
    }
}

fn peer(name: &'static str, input: Input, script: String) -> Competitor {
    Competitor { name, input, ours: false, sized: true, script }
}

/// A path as one word for `sh`.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}
