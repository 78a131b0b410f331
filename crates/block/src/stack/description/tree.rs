//! The tree of leaves and stacked devices.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::disk_format::DiskFormat;
use super::kind::kind;
use super::network::NetworkLeaf;
use super::options::FileLeaf;
use crate::drivers::Engine;
use crate::stack::bytes::Size;
use crate::stack::delay::Slowness;

/// Deepest nesting that a description may have; deeper devices are made by their constructors.
pub const MAX_DEPTH: usize = 32;

/// The tree of leaves and stacked devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Description {
    /// A file or a block device.
    File(FileLeaf),
    /// A device behind a network.
    Network(NetworkLeaf),
    /// The legs one after the other.
    Linear(Vec<Self>),
    /// The legs in turn, chunk by chunk.
    Stripe {
        /// Bytes on a leg before the next one's turn: a power of two from 4 KiB on.
        chunk: u64,
        /// At least one.
        legs: Vec<Self>,
    },
    /// The same on every leg.
    Mirror(Vec<Self>),
    /// Disks that are one only by what is on them.
    Set {
        /// What they are said to be, such as `lvm`; what is on them decides.
        kind: &'static str,
        /// At least one.
        legs: Vec<Self>,
    },
    /// The leg, answering later than it could.
    Delay {
        /// How much later.
        slowness: Slowness,
        /// What is slow.
        leg: Box<Self>,
    },
}

/// A device at the bottom of a description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeafDescription<'d> {
    /// A file or a block device.
    File(&'d FileLeaf),
    /// A device behind a network.
    Network(&'d NetworkLeaf),
}

impl LeafDescription<'_> {
    /// Its length in bytes, if the description has it.
    pub(super) fn size(self) -> Option<u64> {
        match self {
            Self::File(file) => file.size,
            Self::Network(_) => None,
        }
    }
}

impl Description {
    /// The devices that it is made of; none for a leaf.
    #[must_use]
    pub fn legs(&self) -> &[Self] {
        match self {
            Self::File(_) | Self::Network(_) => &[],
            Self::Delay { leg, .. } => std::slice::from_ref(&**leg),
            Self::Linear(legs)
            | Self::Mirror(legs)
            | Self::Stripe { legs, .. }
            | Self::Set { legs, .. } => legs,
        }
    }

    /// The leaves at the bottom, in order: those of the first leg, then those of the second, ...
    #[must_use]
    pub fn leaves(&self) -> Vec<LeafDescription<'_>> {
        match self {
            Self::File(file) => vec![LeafDescription::File(file)],
            Self::Network(leaf) => vec![LeafDescription::Network(leaf)],
            _ => self.legs().iter().flat_map(Self::leaves).collect(),
        }
    }

    /// The files among the [leaves](Self::leaves).
    #[must_use]
    pub fn files(&self) -> Vec<&FileLeaf> {
        let file = |leaf| match leaf {
            LeafDescription::File(file) => Some(file),
            LeafDescription::Network(_) => None,
        };
        self.leaves().into_iter().filter_map(file).collect()
    }

    /// The same; files for which it has no engine get `engine`.
    #[must_use]
    pub fn with_engine(mut self, engine: Engine) -> Self {
        self.each_file(&mut |file| {
            if file.engine == Engine::Auto {
                file.engine = engine;
            }
        });
        self
    }

    /// The same; files for which it does not say what is made of them get `format`.
    #[must_use]
    pub fn with_format(mut self, format: DiskFormat) -> Self {
        self.each_file(&mut |file| {
            if file.format == DiskFormat::Auto {
                file.format = format;
            }
        });
        self
    }

    /// The same; files for which it names no snapshot get this one.
    #[must_use]
    pub fn with_snapshot(mut self, name: Option<&str>) -> Self {
        self.each_file(&mut |file| {
            if file.snapshot.is_none() {
                file.snapshot = name.map(str::to_owned);
            }
        });
        self
    }

    fn each_file(&mut self, change: &mut dyn FnMut(&mut FileLeaf)) {
        match self {
            Self::File(file) => change(file),
            Self::Network(_) => {}
            Self::Delay { leg, .. } => leg.each_file(change),
            Self::Linear(legs)
            | Self::Mirror(legs)
            | Self::Stripe { legs, .. }
            | Self::Set { legs, .. } => {
                legs.iter_mut().for_each(|leg| leg.each_file(change));
            }
        }
    }

    /// The path, if this is one file without options.
    #[must_use]
    pub fn as_path(&self) -> Option<&Path> {
        match self {
            Self::File(file) if *file == FileLeaf::new(&file.path) => Some(&file.path),
            _ => None,
        }
    }
}

impl From<PathBuf> for Description {
    fn from(path: PathBuf) -> Self {
        Self::File(FileLeaf::new(path))
    }
}

impl From<&Path> for Description {
    fn from(path: &Path) -> Self {
        path.to_owned().into()
    }
}

/// As on the command line: parses back to the same, if all paths are UTF-8.
impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Network(leaf) = self {
            return f.write_str(&leaf.uri);
        }
        let Some(path) = self.as_path() else { return self.nested(f) };
        let bytes = path.as_os_str().as_bytes();
        let is_uri = path.to_str().and_then(NetworkLeaf::parse).is_some();
        if is_uri {
            return self.nested(f);
        }
        if kind(bytes).is_some() || matches!(bytes, [] | [b'@', ..]) {
            f.write_str("file(")?;
            self.nested(f)?;
            return f.write_str(")");
        }
        path.display().fmt(f)
    }
}

impl Description {
    /// As it stands inside parentheses.
    fn nested(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(file) => return file.nested(f),
            Self::Network(leaf) => return leaf.nested(f),
            Self::Linear(_) => f.write_str("linear(")?,
            Self::Mirror(_) => f.write_str("mirror(")?,
            Self::Stripe { chunk, .. } => write!(f, "stripe:{}(", Size(*chunk))?,
            Self::Set { kind, .. } => write!(f, "{kind}(")?,
            Self::Delay { slowness, .. } => write!(f, "delay:{slowness}(")?,
        }
        for (number, leg) in self.legs().iter().enumerate() {
            f.write_str(if number == 0 { "" } else { "," })?;
            leg.nested(f)?;
        }
        f.write_str(")")
    }
}
