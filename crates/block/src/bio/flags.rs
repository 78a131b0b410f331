//! What a bio says beside its operation.

/// What the submitter of a bio asks for beside its operation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flags {
    pub(super) force_unit_access: bool,
    pub(super) untorn: bool,
    pub(super) immediate: bool,
    pub(super) unwaiting: bool,
    pub(super) seldom_waiting: bool,
    pub(super) by_place: bool,
}

impl Flags {
    /// Those of a part of a bio, whose bytes have to meet those of the other parts in memory.
    pub(super) fn of_part(self) -> Self {
        Self { by_place: false, ..self }
    }
}
