//! An image, and the images that it has the changes to.

use crate::counts::{self, Lie};
use crate::disk::{Stored, invalid};
use crate::error::ContainerError;
use crate::header::{self, Image};
use crate::neighbours::Neighbours;
use crate::obstacle::Obstacle;
use crate::snapshot::{self, Past, Snapshot};
use imago::FormatAccess;
use imago::file::File as Storage;
use imago::qcow2::Qcow2;
use imago::raw::Raw;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Images that may be below each other.
const MAX_DEPTH: usize = 16;

/// The name of the format.
pub(crate) const QCOW2: &str = "qcow2";

/// The files that an image may be put together from.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    /// The image that was asked for.
    pub(crate) first: PathBuf,
    /// Where the files below it have to be.
    pub(crate) neighbours: Neighbours,
}

/// The first bytes of a file, of which not all need to be there.
pub(crate) fn start(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; header::LENGTH];
    // One call is enough for a file.
    let length = file.read_at(&mut bytes, 0)?;
    bytes.truncate(length);
    Ok(bytes)
}

/// The snapshots in a qcow2 image.
pub(crate) fn snapshots(path: &Path, file: &File) -> Result<Vec<Snapshot>, ContainerError> {
    let failed = |source| ContainerError::Open { path: path.into(), source };
    let bytes = start(file).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    header::check(&bytes, length, false).map_err(|obstacle| obstacle.of(path, QCOW2))?;
    let read = |at, bytes: u64| {
        let mut memory = vec![0; bytes as usize];
        file.read_exact_at(&mut memory, at)?;
        Ok(memory)
    };
    snapshot::list(&bytes, read, invalid).map_err(|error| Obstacle::Read(error).of(path, QCOW2))
}

impl Chain {
    /// The disk in a qcow2 image. `depth` images are above it.
    pub(crate) fn open_qcow2(
        &self,
        path: &Path,
        file: File,
        writable: bool,
        depth: usize,
    ) -> Result<Image, ContainerError> {
        let failed = |source| ContainerError::Open { path: path.into(), source };
        let damaged =
            |what: String| ContainerError::Damaged { path: path.into(), kind: QCOW2, what };
        let bytes = start(&file).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        header::check(&bytes, length, writable).map_err(|obstacle| obstacle.of(path, QCOW2))?;
        if writable {
            counts::check(&file, &bytes).map_err(|lie| match lie {
                Lie::Read(source) => failed(source),
                Lie::Found(what) => {
                    damaged(format!("{what}; `qemu-img check -r all` repairs what can be"))
                }
            })?;
        }
        let storage = Storage::try_from(file).map_err(failed)?;
        let opened = Qcow2::<Storage>::open_image(storage, writable);
        let mut image = opened.map_err(|error| damaged(error.to_string()))?;
        image.set_data_file(None);
        let format = image.implicit_backing_format().cloned();
        let backing = match image.implicit_backing_file().cloned() {
            Some(name) => Some(self.open_backing(path, &name, format.as_deref(), depth)?),
            None => None,
        };
        image.set_backing(backing);
        Ok(FormatAccess::new(image))
    }

    /// The disk in a qcow2 image as it was at a snapshot, which is named by its name or its identifier.
    pub(crate) fn open_snapshot(
        &self,
        path: &Path,
        file: File,
        name: &str,
    ) -> Result<Past, ContainerError> {
        let failed = |source| ContainerError::Open { path: path.into(), source };
        let bytes = start(&file).map_err(failed)?;
        let all = snapshots(path, &file)?;
        let by_id = || all.iter().find(|snapshot| snapshot.id == name);
        let Some(snapshot) = all.iter().find(|snapshot| snapshot.name == name).or_else(by_id)
        else {
            let names = all.into_iter().map(|snapshot| snapshot.name).collect();
            return Err(ContainerError::NoSnapshot { path: path.into(), name: name.into(), names });
        };
        let table = snapshot.clone();
        self.open_table(path, file, &bytes, table)
    }

    /// The disk in a qcow2 image that was not closed, which `imago` does not open. Its reference counts may be
    /// old; reading needs none.
    pub(crate) fn open_dirty(&self, path: &Path, file: File) -> Result<Past, ContainerError> {
        let failed = |source| ContainerError::Open { path: path.into(), source };
        let bytes = start(&file).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        header::check(&bytes, length, false).map_err(|obstacle| obstacle.of(path, QCOW2))?;
        self.open_table(path, file, &bytes, Snapshot::present(&bytes))
    }

    fn open_table(
        &self,
        path: &Path,
        file: File,
        header: &[u8],
        table: Snapshot,
    ) -> Result<Past, ContainerError> {
        let failed = |source| ContainerError::Open { path: path.into(), source };
        let damaged =
            |what: String| ContainerError::Damaged { path: path.into(), kind: QCOW2, what };
        let backing = match header::has_backing(header) {
            false => None,
            true if header::is_dirty(header) => {
                let what = "changes to another image, and which was not closed";
                return Err(Obstacle::NotSupported(what.into()).of(path, QCOW2));
            }
            true => {
                let storage = file.try_clone().and_then(Storage::try_from).map_err(failed)?;
                let image = Qcow2::<Storage>::open_image(storage, false);
                let image = image.map_err(|error| damaged(error.to_string()))?;
                let format = image.implicit_backing_format().cloned();
                match image.implicit_backing_file() {
                    Some(name) => Some(self.open_backing(path, name, format.as_deref(), 0)?),
                    None => None,
                }
            }
        };
        let stored = Stored::new(file).map_err(failed)?;
        Past::new(stored, header, table, backing).map_err(damaged)
    }

    /// The image that another one has the changes to.
    fn open_backing(
        &self,
        above: &Path,
        name: &str,
        format: Option<&str>,
        depth: usize,
    ) -> Result<Image, ContainerError> {
        if depth == MAX_DEPTH {
            return Err(ContainerError::TooDeep { path: self.first.clone(), most: MAX_DEPTH });
        }
        let (path, file) = self.neighbours.open(above, name, "what it has the changes to")?;
        let failed = |source| ContainerError::Open { path: path.clone(), source };
        let is_qcow2 = match format {
            Some("qcow2") => true,
            Some("raw") => false,
            // An old image does not say it.
            _ => header::is_qcow2(&start(&file).map_err(failed)?),
        };
        if is_qcow2 {
            return self.open_qcow2(&path, file, false, depth + 1);
        }
        let raw = Storage::try_from(file).and_then(|storage| Raw::open_image(storage, false));
        Ok(FormatAccess::new(raw.map_err(failed)?))
    }
}
