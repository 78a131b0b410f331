//! Directories and archives that have the form of a container image.

use super::documents::{self, MAX_DOCUMENT, SavedImage};
use super::error::Role;
use super::spec::{ImageFormat, ImageSpec};
use crate::compression::{Compression, MAGIC_LENGTH};
use crate::region::Region;
use crate::tar::{Member, TarReader};
use crate::{Kind, Options, SourceError};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// Most files whose names `manifest.json` must tell.
const MAX_OTHERS: usize = 1024;

/// A path that looks like an image.
pub(crate) struct Recognised {
    pub(crate) spec: ImageSpec,
    /// Another form that it has, too, if the image is not whole in the first: in archives of docker 25.0.0
    /// the layout lacks the layers.
    pub(crate) otherwise: Option<ImageSpec>,
}

/// The image that a path is, if it looks like one. An archive is read as far as its names are those of
/// an image, so any other costs a read of its first headers.
pub(crate) fn recognise(path: &Path) -> Result<Option<Recognised>, SourceError> {
    let failed = |source| SourceError::Open { path: path.into(), source };
    let metadata = std::fs::metadata(path).map_err(failed)?;
    let image = |format| ImageSpec { format, path: path.into(), reference: None };
    if metadata.is_dir() {
        let has = |name: &str| path.join(name).is_file();
        let is_layout = has("oci-layout") && has("index.json");
        let recognised = || Recognised { spec: image(ImageFormat::Oci), otherwise: None };
        return Ok(is_layout.then(recognised));
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
    Ok(of_archive(reader).map(|(format, otherwise)| Recognised {
        spec: image(format),
        otherwise: otherwise.map(image),
    }))
}

/// Whether a directory is what skopeo copies to `dir:`.
pub(crate) fn is_copy_of_skopeo(path: &Path) -> bool {
    const VERSION: &[u8] = b"Directory Transport Version:";
    let version = path.join("version");
    // A pipe must not make this wait.
    let is_file = version.is_file() && path.join("manifest.json").is_file();
    let file = is_file.then(|| File::open(version).ok()).flatten();
    let mut start = Vec::new();
    file.is_some_and(|file| file.take(VERSION.len() as u64).read_to_end(&mut start).is_ok())
        && start == VERSION
}

/// The forms of an archive, if all of its names are those of an image. A fault in it is not told
/// here: the archive will be read again.
fn of_archive(mut reader: TarReader) -> Option<(ImageFormat, Option<ImageFormat>)> {
    let (mut layout, mut index, mut saved) = (false, false, None);
    let mut others = Vec::new();
    while let Some(Member { entry, .. }) = reader.next_member().ok()? {
        let parts: Vec<&[u8]> = entry.path.components().collect();
        match parts[..] {
            [] => {}
            [b"oci-layout"] => layout = true,
            [b"index.json"] => index = true,
            [b"manifest.json"] => saved = Some(contents(&mut reader, &entry.kind)?),
            [b"repositories"] | [b"blobs", ..] => {}
            // Layers and configs of docker are named by digests.
            [name] if is_digest(name) => {}
            [name, b"VERSION" | b"json" | b"layer.tar"] if is_digest(name) => {}
            [name] if may_be_named(name) && others.len() < MAX_OTHERS => {
                others.push(entry.path.as_bytes().to_vec());
            }
            _ => return None,
        }
        if entry.path.is_root() && entry.kind != Kind::Directory {
            return None;
        }
    }
    let saved = saved.filter(|list| names_all(list, &others));
    let docker = saved.map(|_| ImageFormat::DockerArchive);
    let has_layout = layout && index && (docker.is_some() || others.is_empty());
    if has_layout { Some((ImageFormat::OciArchive, docker)) } else { Some((docker?, None)) }
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
