//! The texts of the repository.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Directories that are not part of the repository's text.
const SKIPPED: [&str; 5] = [".git", "target", "corpus", "artifacts", "proptest-regressions"];

/// Calls `visit` with the path below `root` and the text of each file.
pub(crate) fn walk(
    root: &Path,
    directory: &Path,
    visit: &mut impl FnMut(&Path, &str),
) -> Result<()> {
    let mut entries = fs::read_dir(directory)
        .with_context(|| format!("cannot list {}", directory.display()))?
        .collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let name = entry.file_name();
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if !SKIPPED.iter().any(|skipped| name == *skipped) {
                walk(root, &path, visit)?;
            }
        } else if kind.is_file() && is_text(&path) {
            let text = fs::read_to_string(&path)
                .with_context(|| format!("cannot read {} as text", path.display()))?;
            visit(path.strip_prefix(root)?, &text);
        }
    }
    Ok(())
}

/// Whether the name is one of a file that people write.
fn is_text(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("rs" | "md" | "toml" | "sh" | "yml" | "yaml"))
        || path.ends_with(".ci/run")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_repository_is_walked() {
        let mut seen = 0;
        walk(crate::workspace::root(), crate::workspace::root(), &mut |path, _| {
            seen += 1;
            assert!(!path.starts_with("target"));
        })
        .unwrap();
        assert!(seen > 20);
    }
}
