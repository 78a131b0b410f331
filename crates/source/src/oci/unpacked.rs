//! A layer as an uncompressed archive in a file, with its digests.
//!
//! A plain layer is read where it is, and its digests are left to be compared later. Any other is
//! decompressed into a file without a name; both digests come from the same pass.

use super::choose::Blob;
use super::digest::{Digest, Hasher};
use super::error::{ImageProblem, Role};
use super::layer::LayerFault;
use super::verification::{Claim, Claimed};
use crate::Options;
use crate::compression::{Compression, MAGIC_LENGTH};
use crate::region::{Region, RegionStream};
use crate::tar::spool;
use std::io::{self, Read};
use std::sync::Arc;

/// A layer that is ready to be read.
pub(super) struct Unpacked {
    pub(super) region: Region,
    /// It has a table of contents of eStargz.
    pub(super) is_stargz: bool,
    /// Digests that are still to be compared.
    pub(super) claims: Vec<Claim>,
}

/// Unpacks the blob of a layer, which errors name `archive`.
pub(super) fn unpack(
    archive: &str,
    role: Role,
    blob: &Blob,
    options: &Options,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<Unpacked, LayerFault> {
    let failed = |source| ImageProblem::Read { role, name: blob.name.clone(), source };
    let mut magic = [0; MAGIC_LENGTH];
    let length = blob.region.read_at(&mut magic, 0).map_err(failed)?;
    match Compression::of(&magic[..length]) {
        Compression::None => {
            let claim = |digest: &Digest, claimed| Claim {
                role,
                name: blob.name.clone(),
                region: blob.region.clone(),
                digest: digest.clone(),
                claimed,
            };
            let own = blob.digest.as_ref().map(|digest| claim(digest, Claimed::Blob));
            // The bytes of a plain layer are those of its blob: one digest, named twice.
            let uncompressed = blob.digest.as_ref() != Some(&blob.diff_id);
            let uncompressed = uncompressed.then(|| claim(&blob.diff_id, Claimed::Uncompressed));
            let claims = own.into_iter().chain(uncompressed).collect();
            Ok(Unpacked { region: blob.region.clone(), is_stargz: false, claims })
        }
        Compression::Xz => {
            Err(ImageProblem::MediaType { role, media_type: "xz".to_owned() }.into())
        }
        compression => decompress(archive, role, blob, compression, options, go_on),
    }
}

/// Whether the blob is not what its digest says. A plain layer without one has its `diff_id`.
pub(super) fn damage(role: Role, blob: &Blob, go_on: &dyn Fn() -> bool) -> Option<ImageProblem> {
    let mut magic = [0; MAGIC_LENGTH];
    let length = blob.region.read_at(&mut magic, 0).ok()?;
    let is_plain = Compression::of(&magic[..length]) == Compression::None;
    let uncompressed = is_plain.then(|| blob.diff_id.clone());
    let declared = blob.digest.clone().or(uncompressed)?;
    let found = declared.compute(&blob.region, go_on).ok()??;
    (found != declared).then_some(ImageProblem::Digest { role, declared, found })
}

/// Bytes of a blob on their way to the decoder.
struct Hashed<'a> {
    stream: RegionStream,
    hasher: Hasher,
    go_on: &'a (dyn Fn() -> bool + Sync),
}

impl Read for Hashed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !(self.go_on)() {
            return Err(io::Error::other("another layer failed"));
        }
        let count = self.stream.read(buffer)?;
        self.hasher.update(&buffer[..count]);
        Ok(count)
    }
}

fn decompress(
    archive: &str,
    role: Role,
    blob: &Blob,
    compression: Compression,
    options: &Options,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<Unpacked, LayerFault> {
    let declared = blob.digest.as_ref().unwrap_or(&blob.diff_id);
    let mut input = Hashed { stream: blob.region.stream(), hasher: declared.hasher(), go_on };
    let mut uncompressed = blob.diff_id.hasher();
    let directory = &options.temporary_directory;
    let failed = |source| ImageProblem::Read { role, name: blob.name.clone(), source };
    let decoder = compression.decode(&mut input).map_err(failed)?;
    let file = spool(decoder, archive, directory, &mut |bytes| uncompressed.update(bytes))?;
    // A decoder may stop before the last byte, which the digest counts.
    io::copy(&mut input, &mut io::sink()).map_err(failed)?;
    let found = input.hasher.finish();
    if let Some(declared) = blob.digest.clone().filter(|declared| *declared != found) {
        return Err(ImageProblem::Digest { role, declared, found }.into());
    }
    let found = uncompressed.finish();
    if found != blob.diff_id {
        let (blob, declared) = (blob.name.clone(), blob.diff_id.clone());
        return Err(ImageProblem::DiffId { role, blob, declared, found }.into());
    }
    let region = Region::whole(Arc::new(file)).map_err(|source| ImageProblem::Read {
        role,
        name: blob.name.clone(),
        source,
    })?;
    Ok(Unpacked { region, is_stargz: is_stargz(&blob.region), claims: Vec::new() })
}

/// Whether the blob ends with the footer of eStargz: an empty gzip member with the place of the
/// table of contents in a field of its header.
fn is_stargz(blob: &Region) -> bool {
    const LENGTH: usize = 51;
    let mut footer = [0; LENGTH];
    let start = blob.length().checked_sub(LENGTH as u64);
    let read = start.is_some_and(|start| blob.read_exact_at(&mut footer, start).is_ok());
    let is_member = footer.starts_with(&[0x1f, 0x8b, 8, 4]) && &footer[12..14] == b"SG";
    let (digits, name) = (&footer[16..32], &footer[32..38]);
    read && is_member && digits.iter().all(u8::is_ascii_hexdigit) && name == b"STARGZ"
}

#[cfg(all(test, not(feature = "zstd")))]
mod tests {
    use super::*;
    use std::fs::File;
    use std::sync::Arc;

    #[test]
    fn a_layer_whose_decoder_was_left_out_is_named_with_the_feature() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("layer");
        std::fs::write(&path, [0x28, 0xb5, 0x2f, 0xfd, 0, 0]).unwrap();
        let region = Region::whole(Arc::new(File::open(path).unwrap())).unwrap();
        let diff_id = Digest::parse(&format!("sha256:{}", "0".repeat(64))).unwrap();
        let blob = Blob { name: "the blob".to_owned(), region, digest: None, diff_id };
        let Err(LayerFault::Problem(problem)) =
            unpack("image", Role::Layer(2), &blob, &Options::default(), &|| true)
        else {
            panic!("a layer that cannot be read was read, or the fault is of another kind");
        };
        let text = problem.to_string();
        for part in [&Role::Layer(2).to_string(), "the blob", "feature `zstd`"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
