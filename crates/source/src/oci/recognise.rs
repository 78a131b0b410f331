//! Directories and archives that have the form of a container image.

use super::spec::{ImageFormat, ImageSpec};
use crate::region::Region;
use crate::tar::{Compression, MAGIC_LENGTH, Member, TarReader};
use crate::{Kind, Options, SourceError};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// The image that a path is, if it looks like one. An archive is read as far as its names are those of
/// an image, so any other costs a read of its first header.
pub(crate) fn recognise(path: &Path) -> Result<Option<ImageSpec>, SourceError> {
    let failed = |source| SourceError::Open { path: path.into(), source };
    let metadata = std::fs::metadata(path).map_err(failed)?;
    let image = |format| ImageSpec { format, path: path.into(), reference: None };
    if metadata.is_dir() {
        let has = |name: &str| path.join(name).is_file();
        return Ok((has("oci-layout") && has("index.json")).then(|| image(ImageFormat::Oci)));
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
    Ok(of_archive(reader).map(image))
}

/// The form of an archive, if all of its names are those of an image. A fault in it is not told
/// here: the archive will be read again.
fn of_archive(mut reader: TarReader) -> Option<ImageFormat> {
    let (mut layout, mut index, mut saved) = (false, false, false);
    while let Some(Member { entry, .. }) = reader.next_member().ok()? {
        let parts: Vec<&[u8]> = entry.path.components().collect();
        match parts[..] {
            [] => {}
            [b"oci-layout"] => layout = true,
            [b"index.json"] => index = true,
            [b"manifest.json"] => saved = true,
            [b"repositories"] | [b"blobs", ..] => {}
            // Layers and configs of docker are named by digests.
            [name] if is_digest(name) => {}
            [name, b"VERSION" | b"json" | b"layer.tar"] if is_digest(name) => {}
            _ => return None,
        }
        if entry.path.is_root() && entry.kind != Kind::Directory {
            return None;
        }
    }
    if layout && index {
        Some(ImageFormat::OciArchive)
    } else {
        saved.then_some(ImageFormat::DockerArchive)
    }
}

/// Whether a name is a digest, perhaps with an extension.
fn is_digest(name: &[u8]) -> bool {
    let digits = name.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    digits == 64 && matches!(&name[digits..], b"" | b".json" | b".tar")
}
