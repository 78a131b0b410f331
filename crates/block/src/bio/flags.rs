//! What a bio says beside its operation: the way in which it is to be done.

use super::body::Bio;
use super::operation::Operation;

impl Bio {
    /// Forced unit access: this bio completes only when its own sectors are durable.
    pub fn force_unit_access(mut self) -> Self {
        self.inner.flags.force_unit_access = true;
        self
    }

    /// Asks that a write be not cut into several on its way to a file: one block with a checksum, or
    /// some that may become durable apart. A stacked device cuts it all the same where it goes to
    /// several devices; a power failure may, where it is longer than what the disk writes at once.
    pub fn untorn(mut self) -> Self {
        self.inner.flags.untorn = true;
        self
    }

    /// Declares that the submitter does nothing but wait for this bio, so that a device may do the
    /// work in the submitting thread instead of handing it to another.
    pub(crate) fn immediate(mut self) -> Self {
        self.inner.flags.immediate = true;
        self
    }

    /// Lets the submitting thread do the work itself if the device has to wait for nothing: what is
    /// in memory already, such as pages of a file. That saves two changes of threads, and takes the
    /// submitter the time of a copy. Anything else goes the usual way.
    pub fn unwaiting(mut self) -> Self {
        self.inner.flags.unwaiting = true;
        self
    }

    /// As [`unwaiting`](Self::unwaiting), and a write may also wait now and then: one into the page
    /// cache of the system, for instance, which takes no more than a copy unless memory is short, or
    /// the journal of the file system is busy. For submitters who look how long it took.
    pub fn seldom_waiting(mut self) -> Self {
        self.inner.flags.seldom_waiting = true;
        self.unwaiting()
    }

    /// Lets a read be answered by the [place](crate::Completion::place) of its bytes instead of the
    /// bytes, in the submitting thread, if the page cache of the system has all of them: for a submitter
    /// that hands them on by `splice` or `sendfile`.
    ///
    /// Bytes at a place are those of the file whenever they are looked at. So a write that is under
    /// way beside the read, or comes before its bytes are used, may show in them. Other operations stay
    /// as they are.
    pub fn by_place(mut self) -> Self {
        // No place would do for another operation.
        self.inner.flags.by_place = self.operation() == Operation::Read;
        self
    }

    /// Whether the bio's own sectors must be durable when it completes.
    #[must_use]
    pub fn is_force_unit_access(&self) -> bool {
        self.inner.flags.force_unit_access
    }

    /// Whether a write should not be cut.
    #[must_use]
    pub fn is_untorn(&self) -> bool {
        self.inner.flags.untorn
    }

    /// Whether the submitter does nothing but wait for this bio.
    pub(crate) fn is_immediate(&self) -> bool {
        self.inner.flags.immediate
    }

    /// Whether the submitting thread may do the work if nothing has to be waited for.
    pub(crate) fn is_unwaiting(&self) -> bool {
        self.inner.flags.unwaiting
    }

    /// Whether the submitting thread may do the work of a write if that seldom waits.
    pub(crate) fn is_seldom_waiting(&self) -> bool {
        self.inner.flags.seldom_waiting
    }

    /// Whether a read may be answered by the place of its bytes.
    pub(crate) fn is_by_place(&self) -> bool {
        self.inner.flags.by_place
    }
}
