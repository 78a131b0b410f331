//! How often a test repeats: a few times in a check, many times in a soak.

/// The environment variable that makes tests repeat as in a soak; `cargo xtask soak tests` sets it.
pub const SOAK_VARIABLE: &str = "UNDERCROFT_SOAK";

/// `check`, or `soak` while the tests are run as a soak: a number of rounds, or the size of a case.
#[must_use]
pub fn rounds<T>(check: T, soak: T) -> T {
    if std::env::var_os(SOAK_VARIABLE).is_some() { soak } else { check }
}
