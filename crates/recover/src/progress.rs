//! How far the search is.

/// A step of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The inodes that the trees know.
    Inodes,
    /// The journal.
    Journal,
    /// Free space.
    FreeSpace,
    /// All of the device.
    Device,
}

/// Tells how far a search is: the step, bytes read in it, bytes in all where that is known.
pub(crate) struct Progress<'a> {
    report: &'a mut dyn FnMut(Step, u64, u64),
    step: Step,
    done: u64,
    all: u64,
}

impl<'a> Progress<'a> {
    pub(crate) fn new(report: &'a mut dyn FnMut(Step, u64, u64)) -> Self {
        Self { report, step: Step::Inodes, done: 0, all: 0 }
    }

    pub(crate) fn begin(&mut self, step: Step, all: u64) {
        (self.step, self.done, self.all) = (step, 0, all);
        (self.report)(step, 0, all);
    }

    pub(crate) fn read(&mut self, bytes: u64) {
        self.done += bytes;
        (self.report)(self.step, self.done, self.all);
    }
}
