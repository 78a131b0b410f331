//! The workspace: where it is, and its cargo.

use std::path::{Path, PathBuf};
use std::process::Command;

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
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Whether this is a run of continuous integration.
pub(crate) fn in_ci() -> bool {
    std::env::var_os("CI").is_some()
}
