//! The laboratory of Undercroft: classic experiments on storage stacks, repeated in user space.
//!
//! ```text
//! options -> workload x variants -> outcome --+-> records (JSON lines) -> tables, plots, page
//!                                   session --+
//! ```
//!
//! An experiment runs one workload on several variants of a mechanism, in turn and in one run, so
//! that a disturbance of the machine hits all of them. Its results are [`Outcome`]s. Together with
//! the [`Session`] (machine, version, seed, command) each becomes a [`Record`], one line of JSON.
//! Tables and plots are made of records and of nothing else: a table printed after a run and one
//! made of its file a year later are the same. The page holds them against the published figures.
//!
//! The crate has no mechanism of its own: tags, queues and drivers are those of all programs. It
//! simulates only the layer below them, a device that takes its time.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod affinity;
pub mod age;
pub mod alloc;
mod calibration;
mod error;
pub mod fsync;
pub mod iops;
mod machine;
mod measure;
pub mod meta;
pub mod mount;
mod options;
mod outcome;
mod record;
mod report;
mod statistics;
pub mod tags;
pub mod unplug;

pub use calibration::calibrate;
pub use error::LabError;
pub use machine::Machine;
pub use measure::destination::Destination;
pub use measure::histogram::Line;
pub use measure::latency::{Latency, LatencyRecorder};
pub use measure::rate::Rate;
pub use measure::scratch::Scratch;
pub use measure::usage::Usage;
pub use options::{RunOptions, Size};
pub use outcome::Outcome;
pub use record::{Record, Session, read_records, write_record};
pub use report::comparison::Comparison;
pub use report::figures::plot;
pub use report::markdown::document;
pub use report::page::{layout_map, layout_page, page, records_of_page};
pub use report::tables::write_tables;
pub use statistics::Spread;
