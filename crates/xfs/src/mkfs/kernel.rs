//! Versions of Linux, and which of them mount a new volume.

use super::feature::{Feature, Preset};
use super::options::MkfsOptions;
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

impl Feature {
    /// The oldest kernel that knows it (docs/format/features.md#masks).
    #[must_use]
    pub const fn first_kernel(self) -> Kernel {
        match self {
            Self::Crc | Self::Ftype => Kernel::new(3, 12),
            Self::Finobt => Kernel::new(3, 16),
            Self::Sparse => Kernel::new(4, 2),
            Self::Rmapbt => Kernel::new(4, 8),
            Self::Reflink => Kernel::new(4, 9),
            Self::Bigtime | Self::Inobtcount => Kernel::new(5, 10),
            Self::Nrext64 => Kernel::new(5, 19),
            Self::Exchange | Self::Parent => Kernel::new(6, 10),
        }
    }
}

impl Preset {
    /// The preset for a kernel: the default if it mounts that, else the newest of a version that is
    /// no newer; `None` if it mounts none.
    #[must_use]
    pub fn for_kernel(kernel: Kernel) -> Option<Self> {
        let mounts = |preset: Self| first_kernel(preset.features().iter().copied()) <= kernel;
        if mounts(Self::Default) {
            return Some(Self::Default);
        }
        let fits = |preset: &Self| preset.kernel().is_some_and(|of| of <= kernel);
        let newest = Self::all().filter(fits).last();
        newest.or_else(|| Some(Self::Linux4_19).filter(|oldest| mounts(*oldest)))
    }
}

impl MkfsOptions {
    /// The oldest kernel that mounts a volume with these features.
    #[must_use]
    pub fn first_kernel(&self) -> Kernel {
        first_kernel(super::features::chosen(self.preset, &self.features))
    }
}

fn first_kernel(features: impl Iterator<Item = Feature>) -> Kernel {
    features.map(Feature::first_kernel).fold(Feature::Crc.first_kernel(), Kernel::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

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

    #[test]
    fn presets_are_those_that_kernels_mount() {
        let preset = |major, minor| Preset::for_kernel(Kernel::new(major, minor));
        assert_eq!(preset(3, 10), None);
        assert_eq!(preset(4, 18), Some(Preset::Linux4_19));
        assert_eq!(preset(5, 14), Some(Preset::Linux5_10));
        assert_eq!(preset(6, 1), Some(Preset::Linux6_1));
        assert_eq!(preset(6, 9), Some(Preset::Linux6_6));
        assert_eq!(preset(6, 10), Some(Preset::Default));
        for preset in Preset::all() {
            let options = MkfsOptions { preset, ..MkfsOptions::new(0, Uuid::nil()) };
            let of = preset.kernel().unwrap_or(Kernel::new(6, 18));
            assert!(options.first_kernel() <= of, "{preset:?}");
        }
    }

    #[test]
    fn single_features_count() {
        let features = vec![(Feature::Parent, false), (Feature::Exchange, false)];
        let options = MkfsOptions { features, ..MkfsOptions::new(0, Uuid::nil()) };
        assert_eq!(options.first_kernel(), Kernel::new(5, 19));
    }
}
