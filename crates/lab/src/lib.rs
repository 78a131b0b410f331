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
mod blocks;
mod buckets;
mod calibration;
mod chapters;
mod comparison;
mod cpus;
mod crew;
mod destination;
mod error;
pub mod fsync;
pub mod iops;
mod latency;
mod live_image;
mod machine;
pub mod meta;
pub mod mount;
mod options;
mod outcome;
mod page;
mod plot;
mod random;
mod rate;
mod record;
mod scratch;
mod soundness;
mod spread;
mod statistics;
mod tables;
pub mod tags;
pub mod unplug;
mod usage;

pub use buckets::{Line, lines};
pub use calibration::calibrate;
pub use comparison::Comparison;
pub use destination::Destination;
pub use error::LabError;
pub use latency::{Latency, LatencyRecorder};
pub use machine::Machine;
pub use options::{RunOptions, Size};
pub use outcome::Outcome;
pub use page::{layout_map, layout_page, page, records_of_page};
pub use plot::plot;
pub use rate::Rate;
pub use record::{Record, Session, read_records, write_record};
pub use scratch::Scratch;
pub use spread::Spread;
pub use tables::write_tables;
pub use usage::Usage;
