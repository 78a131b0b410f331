//! Block, inode and sequence numbers, each its own type.
//!
//! Numbers of different kinds do not mix: a conversion is a method of
//! [`Geometry`](crate::Geometry), which knows the sizes. Lengths are plain integers in blocks and
//! are named so. Layouts: docs/format/numbers.md.

use std::fmt;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($raw:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $raw);

        impl $name {
            /// All bits one: "none" wherever the format has a null value of this kind.
            pub const NULL: Self = Self(<$raw>::MAX);

            /// The bare number.
            #[must_use]
            pub const fn get(self) -> $raw {
                self.0
            }

            /// Whether this is the null value.
            #[must_use]
            pub const fn is_null(self) -> bool {
                self.0 == <$raw>::MAX
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
    };
}

number! {
    /// Number of an allocation group, from 0.
    AgNumber(u32)
}
number! {
    /// Block inside an allocation group.
    AgBlock(u32)
}
number! {
    /// Block of the file system: group and block in the group, packed. Not linear: there are gaps
    /// where the group size is not a power of two.
    FsBlock(u64)
}
number! {
    /// Block inside a file (data or attribute fork), in file system blocks.
    FileBlock(u64)
}
number! {
    /// Inode: group and inode in the group, packed.
    InodeNumber(u64)
}
number! {
    /// Inode inside an allocation group.
    AgInode(u32)
}
number! {
    /// Log sequence number: cycle in the high half, log block in the low one.
    Lsn(u64)
}

impl Lsn {
    /// The position of `block` in the `cycle`th round of the log.
    #[must_use]
    pub const fn new(cycle: u32, block: u32) -> Self {
        Self((cycle as u64) << 32 | block as u64)
    }

    /// Round of the log.
    #[must_use]
    pub const fn cycle(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Block of the log, of 512 bytes.
    #[must_use]
    pub const fn block(self) -> u32 {
        self.0 as u32
    }
}

impl AgBlock {
    /// The block `count` further on; `None` past the end of the number space.
    #[must_use]
    pub const fn checked_add(self, count: u32) -> Option<Self> {
        match self.0.checked_add(count) {
            Some(block) => Some(Self(block)),
            None => None,
        }
    }
}

impl FileBlock {
    /// The largest block a mapping may start at.
    pub const MAX: Self = Self((1 << 54) - 1);
}
