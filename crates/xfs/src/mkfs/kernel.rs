//! Versions of Linux.

use std::fmt;

/// A version of Linux, such as 6.12.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kernel {
    /// The first number.
    pub major: u16,
    /// The second.
    pub minor: u16,
}

impl Kernel {
    /// Of Linux `major.minor`.
    #[must_use]
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }

    /// The version in the name of a release, such as `6.1.0-44-amd64`.
    #[must_use]
    pub fn of_release(release: &[u8]) -> Option<Self> {
        let mut numbers = release.split(|byte| !byte.is_ascii_digit()).map(|digits| {
            // None beyond what can be counted.
            std::str::from_utf8(digits).ok()?.parse().ok()
        });
        let (major, minor) = (numbers.next()??, numbers.next()??);
        let point = release.iter().find(|byte| !byte.is_ascii_digit());
        (point == Some(&b'.')).then_some(Self { major, minor })
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_begin_with_their_version() {
        let of = |release: &str| Kernel::of_release(release.as_bytes());
        assert_eq!(of("6.1.0-44-amd64"), Some(Kernel::new(6, 1)));
        assert_eq!(of("5.14.0-503.el9.x86_64"), Some(Kernel::new(5, 14)));
        assert_eq!(of("6.12"), Some(Kernel::new(6, 12)));
        for release in ["", "6", "6-1", "extra", "6.x", ".6.1", "99999.1", "6.99999", "6."] {
            assert_eq!(of(release), None, "{release}");
        }
    }
}
