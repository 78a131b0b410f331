//! Placeholder.
/// Sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sector(pub u64);
impl std::fmt::Display for Sector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}
/// Error.
#[derive(Debug, thiserror::Error)]
#[error("device")]
pub struct BlockError;
