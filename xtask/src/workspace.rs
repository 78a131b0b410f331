//! The workspace: where it is, and its cargo.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use crate::shell;

/// The root directory of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a directory of the workspace")
}

/// A path in the target directory.
pub(crate) fn target(path: &str) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root().join("target"), |directory| root().join(directory))
        .join(path)
}

/// The cargo that runs us, in the root directory.
pub(crate) fn cargo() -> Command {
    builder(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// A program that builds crates, in the root directory.
pub(crate) fn builder(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    // What says which package we are. Build scripts that look at it (that of ring) would run again, and
    // all above them be built again, whenever a build from a shell and one by us take turns.
    for (name, _) in std::env::vars_os() {
        let is_ours = |start: &[u8]| name.as_encoded_bytes().starts_with(start);
        if is_ours(b"CARGO_PKG_") || is_ours(b"CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    command
}

/// Fails when there are files in the repository at `root` that are not committed, and names them;
/// `remedy` says what they are in the way of, and what helps.
pub(crate) fn ensure_committed(root: &Path, remedy: &str) -> Result<()> {
    let mut git = Command::new("git");
    let changed = shell::output(git.current_dir(root).args(["status", "--porcelain"]))?;
    ensure!(changed.is_empty(), "files are not committed; {remedy}:\n{}", changed.trim_end());
    Ok(())
}

/// Whether this is a run of continuous integration.
pub(crate) fn in_ci() -> bool {
    std::env::var_os("CI").is_some()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn files_that_are_not_committed_are_named() {
        let home = tempfile::tempdir().unwrap();
        let git = |words: &[&str]| {
            let mut git = Command::new("git");
            git.current_dir(home.path());
            git.args(["-c", "user.name=nobody", "-c", "user.email=nobody@localhost"]);
            shell::output(git.args(words)).unwrap()
        };
        git(&["init", "--quiet"]);
        fs::write(home.path().join("kept"), "first").unwrap();
        git(&["add", "kept"]);
        git(&["commit", "--quiet", "--message", "first"]);
        ensure_committed(home.path(), "commit them").unwrap();
        fs::write(home.path().join("kept"), "second, which is longer").unwrap();
        fs::write(home.path().join("new"), "").unwrap();
        let error = ensure_committed(home.path(), "commit them").unwrap_err().to_string();
        assert_eq!(error, "files are not committed; commit them:\n M kept\n?? new");
    }
}
