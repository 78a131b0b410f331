//! One case of the experiment.

/// The number of files, of threads, and the place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) threads: usize,
    pub(super) directories: usize,
    pub(super) files: usize,
}
