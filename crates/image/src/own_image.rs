//! The image is left out of its own content, and so are properties of the volume that the source is
//! on.
//!
//! When the image is written inside the directory that is packed, an older image at its place, and
//! the new one where it has a name before it is whole, are left out of both passes over the source.
//! So are the properties of an XFS volume whose root directory is the source: a new volume has its
//! own.

use std::path::{Path, PathBuf};
use undercroft_source::{
    Data, Entry, Lending, LentFile, Opened, Source, SourceError, SourceSpec, Warnings,
};
use undercroft_xfs::mkfs::is_property;

/// A source without the files that hold an image, where those are in it.
pub struct WithoutImage {
    source: Box<dyn Source>,
    /// Relative to the root of the source.
    hidden: Vec<Vec<u8>>,
    /// The scan that there can be was made.
    is_scanned: bool,
}

impl WithoutImage {
    /// Hides those of `files` that lie inside the directory that `spec` names.
    pub fn new(
        Opened { source, image }: Opened,
        spec: &SourceSpec,
        files: impl IntoIterator<Item = PathBuf>,
    ) -> Self {
        let root = match spec {
            // A container image has nothing of the directory that it is in.
            SourceSpec::Path(path) | SourceSpec::Directory(path) if image.is_none() => {
                path.canonicalize().ok().filter(|path| path.is_dir())
            }
            _ => None,
        };
        let inside = |file: PathBuf| relative(root.as_deref()?, &file);
        Self { source, hidden: files.into_iter().filter_map(inside).collect(), is_scanned: false }
    }

    fn hides(&self, entry: &Entry) -> bool {
        self.hidden.iter().any(|path| path == entry.path.as_bytes())
    }
}

/// The entry of a root directory as it is on any volume.
fn without_properties(mut root: Entry) -> Entry {
    root.xattrs.retain(|xattr| !is_property(&xattr.name));
    root
}

/// The path of `file` relative to `root`, if it lies inside.
fn relative(root: &Path, file: &Path) -> Option<Vec<u8>> {
    let file = file.canonicalize().ok()?;
    Some(file.strip_prefix(root).ok()?.as_os_str().as_encoded_bytes().to_vec())
}

impl Source for WithoutImage {
    /// As often as it is asked for, before the first entry is taken.
    fn scan(&mut self, visit: &mut dyn FnMut(&Entry)) -> Result<(), SourceError> {
        if self.is_scanned {
            while let Some(entry) = self.next_entry()? {
                visit(&entry);
            }
            return self.restart();
        }
        self.is_scanned = true;
        let Self { source, hidden, .. } = self;
        source.scan(&mut |entry| {
            if entry.path.is_root() {
                visit(&without_properties(entry.clone()));
            } else if !hidden.iter().any(|path| path == entry.path.as_bytes()) {
                visit(entry);
            }
        })
    }

    fn next_entry(&mut self) -> Result<Option<Entry>, SourceError> {
        loop {
            match self.source.next_entry()? {
                Some(entry) if self.hides(&entry) => {}
                Some(entry) if entry.path.is_root() => return Ok(Some(without_properties(entry))),
                other => return Ok(other),
            }
        }
    }

    fn next_data(&mut self) -> Result<Option<Data>, SourceError> {
        self.source.next_data()
    }

    fn lend_files(&mut self, lending: &Lending) -> bool {
        self.source.lend_files(lending)
    }

    fn lent_file(&mut self) -> Result<Option<LentFile>, SourceError> {
        self.source.lent_file()
    }

    fn restart(&mut self) -> Result<(), SourceError> {
        self.source.restart()
    }

    fn warnings(&self) -> Warnings {
        self.source.warnings()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use undercroft_source::SourceOptions;

    #[test]
    fn only_files_inside_the_source_are_hidden() {
        let directory = tempfile::tempdir().unwrap();
        let inside = directory.path().join("sub/old.img");
        std::fs::create_dir(directory.path().join("sub")).unwrap();
        std::fs::write(&inside, b"an image").unwrap();
        std::fs::write(directory.path().join("kept"), b"data").unwrap();
        let outside = tempfile::NamedTempFile::new().unwrap();
        let spec = SourceSpec::Path(directory.path().to_path_buf());
        let source = undercroft_source::open(&spec, &SourceOptions::default()).unwrap();
        let files = [inside, outside.path().to_path_buf(), directory.path().join("absent")];
        let mut source = WithoutImage::new(source, &spec, files);
        let mut scanned = 0;
        source.scan(&mut |_| scanned += 1).unwrap();
        let mut paths = Vec::new();
        while let Some(entry) = source.next_entry().unwrap() {
            paths.push(entry.path.as_bytes().to_vec());
        }
        assert_eq!(paths, [&b""[..], b"kept", b"sub"]);
        assert_eq!(scanned, 3);
    }
}
