//! Passphrases and the contents of key files.

use zeroize::Zeroizing;

/// Longest key file: that of cryptsetup.
pub const MAX_KEY_BYTES: usize = 8 << 20;

/// Passphrases that are tried. They are overwritten when they are no longer needed, and not shown.
#[derive(Clone, Default)]
pub struct Keys(Vec<Zeroizing<Vec<u8>>>);

impl Keys {
    /// Adds one.
    pub fn add(&mut self, key: Vec<u8>) {
        self.0.push(Zeroizing::new(key));
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(|key| key.as_slice())
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Keys({})", self.0.len())
    }
}
