//! Directories and archives that have the form of a container image.

use super::documents::{self, MAX_DOCUMENT, SavedImage};
use super::error::Role;
use super::spec::ImageFormat;
use crate::compression::{Compression, MAGIC_LENGTH};
use crate::region::Region;
use crate::tar::{Member, TarReader};
use crate::{Entry, Kind, Options, SourceError};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};
use std::sync::Arc;

/// Most files whose names `manifest.json` must tell.
const MAX_OTHERS: usize = 1024;

/// The form of a container image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// One that is read.
    Image {
        format: ImageFormat,
        /// Another one that it has, too, if the image is not whole in the first: in archives of docker 25.0.0
        /// the layout lacks the layers.
        otherwise: Option<ImageFormat>,
    },
    /// What skopeo copies to `dir:`, which is not read.
    SkopeoCopy,
}

impl Form {
    fn of(format: ImageFormat) -> Self {
        Self::Image { format, otherwise: None }
    }
}

/// The form of a path that looks like an image. An archive is read as far as its names are those of
/// an image, so any other costs a read of its first headers.
pub(crate) fn recognise(path: &Path) -> Result<Option<Form>, SourceError> {
    let failed = |source| SourceError::Open { path: path.into(), source };
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if metadata.is_dir() {
        let has = |name: &str| path.join(name).is_file();
        let is_layout = has("oci-layout") && has("index.json");
        let is_copy = is_copy_of_skopeo(path).then_some(Form::SkopeoCopy);
        return Ok(is_copy.or(is_layout.then_some(Form::of(ImageFormat::Oci))));
    }
    if !metadata.is_file() {
        return Ok(None);
    }
    let file = File::open(path).map_err(failed)?;
    let region = Region::whole(Arc::new(file)).map_err(failed)?;
    let mut magic = [0; MAGIC_LENGTH];
    let length = region.read_at(&mut magic, 0).map_err(failed)?;
    let options = Options::default();
    let reader = match Compression::of(&magic[..length]) {
        Compression::None => TarReader::headers_of("", region, &options),
        // A decoder that cannot start is a fault for the reader of the archive to tell.
        compression => match compression.decode(region.stream()) {
            Ok(stream) => TarReader::new("", stream, &options),
            Err(_) => return Ok(None),
        },
    };
    Ok(of_archive(reader))
}

/// The form of an uncompressed archive that looks like an image.
pub(super) fn of_region(region: &Region, options: &Options) -> Option<Form> {
    of_archive(TarReader::headers_of("", region.clone(), options))
}

/// Whether a directory is what skopeo copies to `dir:`.
fn is_copy_of_skopeo(path: &Path) -> bool {
    const VERSION: &[u8] = b"Directory Transport Version:";
    let version = path.join("version");
    // A pipe must not make this wait.
    let is_file = version.is_file() && path.join("manifest.json").is_file();
    let file = is_file.then(|| File::open(version).ok()).flatten();
    let mut start = Vec::new();
    file.is_some_and(|file| file.take(VERSION.len() as u64).read_to_end(&mut start).is_ok())
        && start == VERSION
}

/// Whether a directory is what an archive of docker unpacks to: its list names files that are there.
pub(crate) fn is_unpacked_archive(path: &Path) -> bool {
    let list = path.join("manifest.json");
    let is_short =
        |metadata: std::fs::Metadata| metadata.is_file() && metadata.len() <= MAX_DOCUMENT;
    if !std::fs::metadata(&list).is_ok_and(is_short) {
        return false;
    }
    let Ok(list) = std::fs::read(list) else { return false };
    let Ok(images) = documents::read::<Vec<SavedImage>>(Role::SavedList, &list) else {
        return false;
    };
    let files = |image: SavedImage| image.layers.into_iter().flatten().chain([image.config]);
    let files: Vec<String> = images.into_iter().flat_map(files).collect();
    !files.is_empty()
        && files.iter().all(|file| path.join(file).is_file())
        && has_no_other_names(path, &files)
}

/// Whether a directory has no names but those that an image with these files has.
fn has_no_other_names(path: &Path, files: &[String]) -> bool {
    let is_known = |name: &OsStr| {
        let mut tops = files.iter().filter_map(|file| {
            Path::new(file).components().find(|part| matches!(part, Component::Normal(_)))
        });
        is_digest(name.as_bytes())
            || KNOWN.iter().any(|known| name == *known)
            || tops.any(|top| top.as_os_str() == name)
    };
    let Ok(mut entries) = std::fs::read_dir(path) else { return false };
    entries.all(|entry| entry.is_ok_and(|entry| is_known(&entry.file_name())))
}

/// Names beside the files of an image.
const KNOWN: [&str; 5] = ["manifest.json", "repositories", "oci-layout", "index.json", "blobs"];

/// What the names of an archive say of its form.
#[derive(Default)]
pub(super) struct Names {
    has_layout: bool,
    has_index: bool,
    has_list: bool,
    /// The file in which skopeo says what its directory is.
    has_version: bool,
    /// A file is named by its digest.
    has_digest: bool,
    /// There are names that no image has.
    has_other: bool,
    /// Files that the list of images has to name.
    unsure: Vec<Vec<u8>>,
}

impl Names {
    /// Takes in one more; returns whether all may be those of an image.
    pub(super) fn take(&mut self, entry: &Entry) -> bool {
        let parts: Vec<&[u8]> = entry.path.components().collect();
        match parts[..] {
            [] => self.has_other |= entry.kind != Kind::Directory,
            [b"oci-layout"] => self.has_layout = true,
            [b"index.json"] => self.has_index = true,
            [LIST] => self.has_list = true,
            [b"version"] => self.has_version = true,
            [b"repositories"] => {}
            [b"blobs", .., name] => self.has_digest |= is_digest(name),
            [b"blobs"] => {}
            // Layers and configs of docker are named by digests.
            [name] | [name, b"VERSION" | b"json" | b"layer.tar"] if is_digest(name) => {
                self.has_digest = true;
            }
            [name] if may_be_named(name) && self.unsure.len() < MAX_OTHERS => {
                self.unsure.push(entry.path.as_bytes().to_vec());
            }
            _ => self.has_other = true,
        }
        !self.has_other
    }

    /// Whether they are those of an image, as far as names can tell.
    pub(super) fn are_of_image(&self) -> bool {
        let has_layout = self.has_layout && self.has_index;
        !self.has_other && self.has_digest && (has_layout || self.has_list)
    }
}

/// The list of images of an archive of docker.
const LIST: &[u8] = b"manifest.json";

/// The form of an archive, if all of its names are those of an image. A fault in it is not told
/// here: the archive will be read again.
fn of_archive(mut reader: TarReader) -> Option<Form> {
    let (mut names, mut saved) = (Names::default(), None);
    while let Some(Member { entry, .. }) = reader.next_member().ok()? {
        if !names.take(&entry) {
            return None;
        }
        if entry.path.as_bytes() == LIST {
            saved = Some(contents(&mut reader, &entry.kind)?);
        }
    }
    let is_plain = names.unsure.is_empty();
    if names.has_version {
        return (names.are_of_image() && is_plain).then_some(Form::SkopeoCopy);
    }
    let saved = saved.filter(|list| names_all(list, &names.unsure));
    let docker = saved.map(|_| ImageFormat::DockerArchive);
    if names.has_layout && names.has_index && (docker.is_some() || is_plain) {
        return Some(Form::Image { format: ImageFormat::OciArchive, otherwise: docker });
    }
    docker.map(Form::of)
}

/// The contents of the file that came last.
fn contents(reader: &mut TarReader, kind: &Kind) -> Option<Vec<u8>> {
    let Kind::Regular { size: 0..=MAX_DOCUMENT, .. } = kind else { return None };
    let mut contents = Vec::new();
    while let Some(data) = reader.next_data().ok()? {
        contents.extend_from_slice(data.chunk.as_slice());
    }
    Some(contents)
}

/// Whether `manifest.json` is a list of images, and names all of these files.
fn names_all(list: &[u8], others: &[Vec<u8>]) -> bool {
    let images = documents::read::<Vec<SavedImage>>(Role::SavedList, list);
    let is_named = |other: &Vec<u8>| {
        let is_it = |name: &String| name.trim_start_matches("./").as_bytes() == &other[..];
        images
            .iter()
            .flatten()
            .any(|image| is_it(&image.config) || image.layers.iter().flatten().any(is_it))
    };
    images.is_ok() && others.iter().all(is_named)
}

/// Whether a file may be a config or a layer, if `manifest.json` says so.
fn may_be_named(name: &[u8]) -> bool {
    [&b".json"[..], b".tar", b".tar.gz", b".tgz"].iter().any(|end| name.ends_with(end))
}

/// Whether a name is a digest, perhaps with its algorithm or an extension.
fn is_digest(name: &[u8]) -> bool {
    let name = name.strip_prefix(b"sha256:").unwrap_or(name);
    let digits = name.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    digits == 64 && matches!(&name[digits..], b"" | b".json" | b".tar" | b".tar.gz")
}
