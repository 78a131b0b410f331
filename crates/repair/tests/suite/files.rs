//! The files of a volume by path, with what they are and a digest of their content.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};
use undercroft_block::BlockDevice;
use undercroft_fs::{FileSystem, OpenOptions};

/// Kind and content of each path.
pub(crate) type Files = BTreeMap<PathBuf, (u16, Vec<u8>)>;

/// All files of a volume that are legible.
pub(crate) fn of(device: Arc<dyn BlockDevice>) -> Files {
    let mut files = Files::new();
    if let Ok(fs) = FileSystem::open(device, &OpenOptions::read_only()) {
        directory(&fs, Path::new("/"), &mut files);
    }
    files
}

fn directory(fs: &FileSystem, path: &Path, files: &mut Files) {
    let Ok(entries) = fs.read_dir(path) else { return };
    for entry in entries {
        let Ok(entry) = entry else { break };
        let path = path.join(entry.file_name());
        let Ok(metadata) = fs.symlink_metadata(&path) else { continue };
        let kind = metadata.full_mode() & 0o170_000;
        let content = if metadata.is_dir() {
            directory(fs, &path, files);
            Vec::new()
        } else if metadata.is_symlink() {
            fs.read_link(&path)
                .map(|target| target.into_os_string().into_encoded_bytes())
                .unwrap_or_default()
        } else if metadata.is_file() {
            digest(fs, &path).unwrap_or_default()
        } else {
            Vec::new()
        };
        files.insert(path, (kind, content));
    }
}

fn digest(fs: &FileSystem, path: &Path) -> Option<Vec<u8>> {
    use std::io::Read;
    let mut file = fs.open_file(path).ok()?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    // Files that are all hole are longer than anybody reads.
    for _ in 0..4096 {
        let count = file.read(&mut buffer).ok()?;
        if count == 0 {
            break;
        }
        hash.update(&buffer[..count]);
    }
    Some(hash.finalize().to_vec())
}

/// How many of the files are as they were.
pub(crate) fn right(before: &Files, after: &Files) -> usize {
    before.iter().filter(|(path, file)| after.get(*path) == Some(file)).count()
}
