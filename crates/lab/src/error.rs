//! Why an experiment or a report ended early.

use std::io;
use std::path::PathBuf;

/// An experiment could not be run, or a record not be read.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A line of a file of records is not a record.
    #[error("line {line} is not a record of this program: {source}")]
    NotARecord {
        /// Number of the line, from 1.
        line: usize,
        /// Its defect.
        source: serde_json::Error,
    },
    /// A page has no records in it.
    #[error("this is not a page that `undercroft lab report` wrote: it has no records")]
    NoRecordsInPage,
    /// Records could not be read.
    #[error("cannot read records: {0}")]
    Read(#[source] io::Error),
    /// A record could not be written.
    #[error("cannot write a record: {0}")]
    Write(#[source] io::Error),
    /// A file that the machine describes itself with.
    #[error("cannot read {}: {source}", path.display())]
    Machine {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Tags, commands and completions of a run do not add up: a defect of the measured code.
    #[error(
        "{ios} I/Os were completed with {gets} gets and {puts} puts of tags; {in_use} tags are still \
         in use and {waiting} waiters asleep. This is a defect of the tags or of the experiment"
    )]
    Sums {
        /// Tags had.
        gets: u64,
        /// Tags given back.
        puts: u64,
        /// Commands completed.
        ios: u64,
        /// Tags in use at the end.
        in_use: u32,
        /// Waiters at the end.
        waiting: usize,
    },
    /// A policy that wakes one waiter for a tag woke more: a defect of the tags.
    #[error(
        "{granted} wake-ups were given for {puts} tags put back and {passed_on} wake-ups passed on. \
         This is a defect of the tags"
    )]
    Herd {
        /// Wake-ups given.
        granted: u64,
        /// Tags given back.
        puts: u64,
        /// Wake-ups that a waiter had no use for and another got.
        passed_on: u64,
    },
    /// A device could not be opened, or a hardware queue not be claimed.
    #[error(transparent)]
    Open(#[from] undercroft_block::OpenError),
    /// Devices could not be stacked.
    #[error(transparent)]
    Stack(#[from] undercroft_block::stack::StackError),
    /// An I/O of the workload failed.
    #[error(transparent)]
    Io(#[from] undercroft_block::BlockError),
    /// The file that file drivers work on.
    #[error("cannot prepare {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A device counted other I/Os than were submitted: a defect of the block layer.
    #[error("{submitted} I/Os were submitted and {counted} reached the devices")]
    Lost {
        /// I/Os submitted.
        submitted: u64,
        /// I/Os counted by the devices.
        counted: u64,
    },
    /// A device could not be served, or its client not reach it.
    #[error("a network disk of the experiment: {0}")]
    Served(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Where requests were queued and completed does not add up: a defect of the block layer.
    #[error("{submitted} I/Os were submitted, and the device counted {counted:?}")]
    Placement {
        /// I/Os submitted to the device.
        submitted: u64,
        /// The statistics of the device.
        counted: Box<undercroft_block::Statistics>,
    },
    /// An operation in a directory failed.
    #[error("cannot {what} {}: {source}", path.display())]
    Target {
        /// The operation.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// fio could not be run.
    #[error("fio: {0}")]
    Fio(String),
    /// A change of the volume that an experiment works on failed.
    #[error(transparent)]
    Volume(#[from] undercroft_xfs::Error),
    /// The volume of an experiment cannot be made.
    #[error(transparent)]
    Format(#[from] undercroft_xfs::mkfs::MkfsError),
    /// Free space cannot be made to look as asked for.
    #[error("cannot age the volume: {0}")]
    Map(String),
    /// The volume that an experiment left is damaged: a defect of the measured code.
    #[error("the volume is damaged after the run, a defect of what was measured: {0}")]
    Unsound(String),
    /// A volume of an experiment cannot be mounted.
    #[error(transparent)]
    Mount(#[from] undercroft_fuse::MountFailure),
    /// A volume of an experiment stays mounted.
    #[error(transparent)]
    Unmount(#[from] undercroft_fuse::UnmountFailure),
    /// The server of a mount met an error.
    #[error("the server of the mount says: {0}")]
    Server(String),
    /// A program that works on a mounted volume could not be run.
    #[error(
        "cannot run `{program}`: {source}; the experiment builds a project and needs tar, make and a C compiler (Debian packages tar, make, gcc, libc6-dev)"
    )]
    Program {
        /// Its command line.
        program: String,
        /// Why not.
        source: io::Error,
    },
    /// A program that works on a mounted volume failed.
    #[error("`{program}` ended with {status}: {said}")]
    Failed {
        /// Its command line.
        program: String,
        /// How it ended.
        status: std::process::ExitStatus,
        /// The end of what it said.
        said: String,
    },
    /// What was built on a mounted volume is not what was to be built.
    #[error(
        "the program that was built printed {printed:?} instead of {expected:?}: data was lost, a defect of what was measured"
    )]
    WrongProgram {
        /// What it printed.
        printed: String,
        /// What it should have.
        expected: String,
    },
    /// Signals cannot be held back.
    #[error("cannot block signals: {0}")]
    Signals(#[source] io::Error),
    /// A thread could not be bound to a CPU.
    #[error("cannot run a thread on CPU {cpu} alone: {source}")]
    Pin {
        /// The CPU.
        cpu: u32,
        /// Why not.
        source: io::Error,
    },
    /// A thread could not be started.
    #[error("cannot start thread {index} of {count}: {source}; fewer workers need fewer threads")]
    Thread {
        /// Which one, from 0.
        index: usize,
        /// How many were wanted.
        count: usize,
        /// Why not.
        source: io::Error,
    },
}
