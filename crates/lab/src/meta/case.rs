//! One case of the experiment.

/// How many files, and who works on them where.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) threads: usize,
    pub(super) directories: usize,
    pub(super) files: usize,
}
