//! Whether the kernel can be asked, and the record of the tests that could not ask it.
//!
//! A test that mounts a volume starts with
//!
//! ```
//! # fn the_test() {
//! if !undercroft_judges::kernel::available_or_report() {
//!     return;
//! }
//! # }
//! ```
//!
//! As another user than root the test is then written to the record, which `cargo xtask test`
//! prints at its end by name and count. In CI (`CI` set in the environment) it fails instead.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The environment variable that names the record; without it, it is in the workspace's target
/// directory.
pub const RECORD_VARIABLE: &str = "UNDERCROFT_NOT_RUN";

/// Why the kernel cannot judge here, or `None` when it can.
#[must_use]
pub fn obstacle() -> Option<&'static str> {
    if !rustix::process::geteuid().is_root() {
        return Some("mounting a volume needs root");
    }
    if !Path::new("/dev/loop-control").exists() {
        return Some("there is no /dev/loop-control; load the module `loop`");
    }
    // The module loads on the first mount; the list shows it only afterwards.
    let known = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let listed = known.lines().any(|line| line.trim() == "xfs");
    let modules = Path::new("/lib/modules")
        .join(rustix::system::uname().release().to_string_lossy().as_ref());
    let loadable = modules.join("kernel/fs/xfs").exists();
    (!listed && !loadable).then_some("this kernel has no XFS")
}

/// Why no volume can be mounted through FUSE here, or `None` when it can. Tests of mounts compare
/// with the kernel's, so they need both.
#[must_use]
pub fn fuse_obstacle() -> Option<&'static str> {
    let missing = !Path::new("/dev/fuse").exists();
    obstacle().or(missing.then_some("there is no /dev/fuse; load the module `fuse`"))
}

/// The file that collects the names of tests that did not run, one a line.
#[must_use]
pub fn record() -> PathBuf {
    std::env::var_os(RECORD_VARIABLE).map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tests-not-run"),
        PathBuf::from,
    )
}

/// Whether the kernel can judge; if not, the test that runs in this thread goes to the record as
/// not run.
///
/// # Panics
/// In CI when the kernel cannot judge, and when the record cannot be written: a test must not
/// pass unseen. In a thread without a name, which is not that of a test.
#[must_use]
pub fn available_or_report() -> bool {
    unobstructed_or_report(obstacle(), &own_name())
}

/// The same for tests that mount through FUSE as well.
///
/// # Panics
/// As [`available_or_report`].
#[must_use]
pub fn fuse_available_or_report() -> bool {
    unobstructed_or_report(fuse_obstacle(), &own_name())
}

/// The test that runs in this thread, behind its package's directory and its program.
fn own_name() -> String {
    let thread = std::thread::current();
    let test = thread.name().expect("asked in the thread that the test has from its program");
    let last = |path: PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).and_then(last);
    let program = std::env::current_exe().ok().and_then(last);
    // Cargo adds a hash to the program's name.
    let program =
        program.as_deref().map(|name| name.rsplit_once('-').map_or(name, |(name, _)| name));
    let before = [package.as_deref(), program].into_iter().flatten();
    before.chain([test]).collect::<Vec<_>>().join(" ")
}

fn unobstructed_or_report(obstacle: Option<&str>, test: &str) -> bool {
    let Some(obstacle) = obstacle else { return true };
    assert!(std::env::var_os("CI").is_none(), "{test} did not run: {obstacle}");
    write_record(&record(), test, obstacle);
    false
}

fn write_record(record: &Path, test: &str, obstacle: &str) {
    let written = record
        .parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| OpenOptions::new().create(true).append(true).open(record))
        // One write call per line: tests of one process and of several append side by side.
        .and_then(|mut file| file.write_all(format!("{test}: {obstacle}\n").as_bytes()));
    if let Err(error) = written {
        panic!("{test} did not run ({obstacle}), and {} says: {error}", record.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_knows_its_name() {
        let name = own_name();
        let (program, test) = name.rsplit_once(' ').unwrap();
        assert!(program.ends_with("undercroft_judges"), "{name}");
        assert_eq!(test, "kernel::tests::a_test_knows_its_name");
    }

    #[test]
    fn each_test_not_run_is_one_line() {
        let scratch = tempfile::tempdir().unwrap();
        let record = scratch.path().join("deep/record");
        write_record(&record, "a::b", "no reason");
        write_record(&record, "a::c", "no reason");
        assert_eq!(fs::read_to_string(record).unwrap(), "a::b: no reason\na::c: no reason\n");
    }
}
