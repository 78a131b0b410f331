//! Where the files of an image are: in a directory, or in an archive.

use super::documents::{Descriptor, MAX_DOCUMENT};
use super::error::{ImageProblem, Role};
use crate::Kind;
use crate::Options;
use crate::SourceError;
use crate::compression::{Compression, MAGIC_LENGTH};
use crate::region::Region;
use crate::tar::spool;
use crate::tar::{Member, TarReader};
use rustc_hash::FxHashMap;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most links from name to name in an archive.
const MAX_LINKS: usize = 40;

/// The files of an image, by their names.
pub(super) enum Store {
    Directory(PathBuf),
    /// The members of an archive.
    Archive(FxHashMap<Vec<u8>, Place>),
}

/// Where a member of an archive is.
pub(super) enum Place {
    File(Region),
    /// Another member: old versions of docker link equal layers.
    Link(Vec<u8>),
    /// It is no file.
    Other,
}

/// The error of something that is no file.
fn no_file() -> io::Error {
    io::Error::other("it is no regular file; copy the image again")
}

impl Store {
    /// Reads the names in the archive at `path`. Memory grows with their number, and an archive that
    /// is compressed, or a pipe, is first copied.
    pub(super) fn archive(path: &Path, options: &Options) -> Result<Self, SourceError> {
        let name = path.display().to_string();
        let region = plain(path, &name, options)?;
        let mut reader = TarReader::headers_of(&name, region.clone(), &Options::default());
        let mut members = FxHashMap::default();
        while let Some(Member { entry, data, .. }) = reader.next_member()? {
            let place = match entry.kind {
                Kind::Regular { size, data: ranges } => {
                    let whole = ranges.iter().map(|range| range.length).sum::<u64>() == size;
                    let part = region.part(data, size).filter(|_| whole);
                    part.map(Place::File)
                }
                Kind::HardLink(target) => Some(Place::Link(target.as_bytes().to_vec())),
                Kind::Symlink(target) => {
                    let parent = entry.path.split_last().map_or(&[][..], |(parent, _)| parent);
                    Some(Place::Link(joined(parent, &target)))
                }
                Kind::Directory => None,
                _ => Some(Place::Other),
            };
            if let Some(place) = place {
                members.insert(entry.path.as_bytes().to_vec(), place);
            }
        }
        Ok(Self::Archive(members))
    }

    /// The file of a name, which is relative and clean; `None` if there is none.
    pub(super) fn find(&self, name: &str) -> io::Result<Option<Region>> {
        match self {
            Self::Directory(directory) => {
                // A pipe must not make this wait.
                let mut how = File::options();
                how.read(true).custom_flags(libc::O_NONBLOCK);
                match how.open(directory.join(name)) {
                    Ok(file) if file.metadata()?.is_file() => {
                        Region::whole(Arc::new(file)).map(Some)
                    }
                    Ok(_) => Err(no_file()),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                    Err(error) => Err(error),
                }
            }
            Self::Archive(members) => {
                let clean = joined(&[], name.as_bytes());
                let mut name = &clean;
                for _ in 0..MAX_LINKS {
                    match members.get(name) {
                        Some(Place::File(region)) => return Ok(Some(region.clone())),
                        Some(Place::Link(target)) => name = target,
                        Some(Place::Other) => return Err(no_file()),
                        None => return Ok(None),
                    }
                }
                Ok(None)
            }
        }
    }

    /// The file of a name, which must be there.
    pub(super) fn get(&self, role: Role, name: &str) -> Result<Region, ImageProblem> {
        let name = name.to_owned();
        match self.find(&name) {
            Ok(Some(region)) => Ok(region),
            Ok(None) => Err(ImageProblem::Missing { role, name }),
            Err(source) => Err(ImageProblem::Read { role, name, source }),
        }
    }

    /// The blob of a descriptor, of the right length.
    pub(super) fn blob(&self, role: Role, descriptor: &Descriptor) -> Result<Region, ImageProblem> {
        let digest = descriptor.digest.clone();
        let region = self.get(role, &digest.blob_path()).map_err(|problem| match problem {
            ImageProblem::Missing { role, .. } => {
                ImageProblem::Missing { role, name: format!("blob {digest}") }
            }
            other => other,
        })?;
        if region.length() != descriptor.size {
            let (declared, found) = (descriptor.size, region.length());
            return Err(ImageProblem::Size { role, digest, declared, found });
        }
        Ok(region)
    }

    /// The document of a descriptor, of the right digest.
    pub(super) fn document(
        &self,
        role: Role,
        descriptor: &Descriptor,
    ) -> Result<Vec<u8>, ImageProblem> {
        let bytes = contents(role, descriptor.digest.as_str(), &self.blob(role, descriptor)?)?;
        let mut hasher = descriptor.digest.hasher();
        hasher.update(&bytes);
        let found = hasher.finish();
        if found == descriptor.digest {
            Ok(bytes)
        } else {
            Err(ImageProblem::Digest { role, declared: descriptor.digest.clone(), found })
        }
    }
}

/// All bytes of a document.
pub(super) fn contents(role: Role, name: &str, region: &Region) -> Result<Vec<u8>, ImageProblem> {
    let (size, limit) = (region.length(), MAX_DOCUMENT);
    if size > limit {
        return Err(ImageProblem::DocumentSize { role, size, limit });
    }
    // At most the limit, which fits.
    let mut bytes = vec![0; size as usize];
    let read = region.read_exact_at(&mut bytes, 0);
    read.map_err(|source| ImageProblem::Read { role, name: name.to_owned(), source })?;
    Ok(bytes)
}

/// The uncompressed bytes of an archive.
fn plain(path: &Path, name: &str, options: &Options) -> Result<Region, SourceError> {
    let failed = |source| SourceError::Open { path: path.into(), source };
    let mut file = if path.as_os_str() == "-" {
        File::from(rustix::io::dup(rustix::stdio::stdin()).map_err(|error| failed(error.into()))?)
    } else {
        File::open(path).map_err(failed)?
    };
    let seekable =
        file.metadata().map_err(failed)?.is_file() && file.stream_position().map_err(failed)? == 0;
    let mut magic = Vec::with_capacity(MAGIC_LENGTH);
    (&mut file).take(MAGIC_LENGTH as u64).read_to_end(&mut magic).map_err(failed)?;
    let compression = Compression::of(&magic);
    let file = if seekable && compression == Compression::None {
        file
    } else {
        let stream = compression.decode(Cursor::new(magic).chain(file)).map_err(failed)?;
        spool(stream, name, &options.temporary_directory, &mut |_| ())?
    };
    Region::whole(Arc::new(file)).map_err(failed)
}

/// The path that `target` means in the directory `parent`; not above the root.
fn joined(parent: &[u8], target: &[u8]) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = Vec::new();
    let base = if target.starts_with(b"/") { &[][..] } else { parent };
    for part in base.split(|&byte| byte == b'/').chain(target.split(|&byte| byte == b'/')) {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join(&b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_stay_inside() {
        assert_eq!(joined(b"a/b", b"../c/layer.tar"), b"a/c/layer.tar");
        assert_eq!(joined(b"a", b"../../../x"), b"x");
        assert_eq!(joined(b"a", b"/x/./y"), b"x/y");
    }
}
