//! Why a volume cannot be planned.

use super::feature::{Feature, Preset};
use crate::error::Error;

/// An option that cannot be, or a combination that cannot.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum MkfsError {
    /// A number is outside its range.
    #[error("{option} is {value}, the range is {min} to {max} {unit}; {remedy}")]
    Range {
        /// Name of the option.
        option: &'static str,
        /// Value given.
        value: u64,
        /// Lowest legal value.
        min: u64,
        /// Highest legal value.
        max: u64,
        /// Unit of the three numbers.
        unit: &'static str,
        /// What to do.
        remedy: &'static str,
    },

    /// A size must be a power of two.
    #[error("{option} is {value} bytes, it must be a power of two from {min} to {max}")]
    PowerOfTwo {
        /// Name of the option.
        option: &'static str,
        /// Value given.
        value: u64,
        /// Lowest legal value.
        min: u64,
        /// Highest legal value.
        max: u64,
    },

    /// A size must be a multiple of another.
    #[error("{option} is {value} bytes, it must be a multiple of the {unit} of {size} bytes")]
    Multiple {
        /// Name of the option.
        option: &'static str,
        /// Value given.
        value: u64,
        /// Name of the other size.
        unit: &'static str,
        /// The other size.
        size: u64,
    },

    /// Two options that exclude or require each other.
    #[error("{option} is {value}: {rule}")]
    Conflict {
        /// Name of the option.
        option: &'static str,
        /// Value given.
        value: u64,
        /// The rule, with its remedy.
        rule: &'static str,
    },

    /// No feature of that name.
    #[error("there is no feature {name}; the features are {}", Feature::names())]
    UnknownFeature {
        /// Name given.
        name: String,
    },

    /// No preset of that name.
    #[error("there is no preset {name}; the presets are {}", Preset::names())]
    UnknownPreset {
        /// Name given.
        name: String,
    },

    /// A feature setting that is neither on nor off.
    #[error("{setting} is no feature setting; write NAME=0 or NAME=1")]
    FeatureSetting {
        /// Text given.
        setting: String,
    },

    /// A feature that version 5 always has.
    #[error("{feature}=0 is not possible: every volume made here has {feature}")]
    FixedFeature {
        /// The feature.
        feature: Feature,
    },

    /// A feature that needs another.
    #[error("{feature}=1 needs {needed}=1; turn both on or both off")]
    MissingFeature {
        /// The feature.
        feature: Feature,
        /// The feature it needs.
        needed: Feature,
    },

    /// No room for a log that kernels accept, or that was asked for.
    #[error(
        "the log needs {needed} blocks of {block_size} bytes with these options, a group of \
         {group} blocks has room for {room}; use a larger size, fewer groups, a \
         smaller log, or smaller blocks or directory blocks"
    )]
    LogTooLarge {
        /// Least length of the log in blocks, or the one that was asked for.
        needed: u64,
        /// Blocks a log may take in the group.
        room: u64,
        /// Length of the group in blocks.
        group: u32,
        /// Block size in bytes.
        block_size: u64,
    },

    /// The place where the root directory must be is not free.
    #[error(
        "the root directory must be at block {block} of group 0, where {occupant}; use a larger \
         size, or leave stripe unit and width out"
    )]
    RootPlace {
        /// First block of the first inode chunk.
        block: u64,
        /// The structure in the way.
        occupant: &'static str,
    },
}

impl From<MkfsError> for Error {
    fn from(error: MkfsError) -> Self {
        Self::Invalid(error.to_string())
    }
}
