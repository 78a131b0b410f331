//! `undercroft mknod`.

use super::Verb;
use crate::failure::Usage;
use crate::owner::NewOwner;
use crate::report::Outcome;
use crate::session::Session;
use crate::value;
use anyhow::Result;
use clap::ValueEnum;
use std::ffi::OsString;
use std::io::Write;
use undercroft_fs::{DeviceNumber, FileType, NewFile, Owner};

/// Create a device, FIFO or socket.
///
/// For example: undercroft mknod --mode 666 root.img /null c 1 3
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Path from the root directory of the volume.
    path: OsString,

    /// What to create.
    #[arg(value_name = "TYPE")]
    kind: Kind,

    /// Major number of a device.
    #[arg(value_parser = clap::value_parser!(u32).range(..16384))]
    major: Option<u32>,

    /// Minor number of a device.
    #[arg(value_parser = clap::value_parser!(u32).range(..262_144))]
    minor: Option<u32>,

    /// Permission bits in octal.
    #[arg(short, long, value_name = "MODE", default_value = "644", value_parser = value::mode)]
    mode: u16,

    /// Owner and group by name or number, as `chown` takes them; a part left out is 0.
    #[arg(long, value_name = "USER:GROUP")]
    owner: Option<NewOwner>,
}

/// Types as `mknod` writes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Block device.
    B,
    /// Character device.
    C,
    /// FIFO.
    P,
    /// Socket.
    S,
}

impl Verb for Args {
    fn run(&self, session: &Session<'_>, _: &mut dyn Write) -> Result<Outcome> {
        let kind = match self.kind {
            Kind::B => FileType::Block,
            Kind::C => FileType::Character,
            Kind::P => FileType::Fifo,
            Kind::S => FileType::Socket,
        };
        let is_device = matches!(self.kind, Kind::B | Kind::C);
        let wrong = |what: &str| Err(Usage(what.to_owned()));
        let device = match (is_device, self.major, self.minor) {
            (true, Some(major), Some(minor)) => DeviceNumber { major, minor },
            (false, None, None) => DeviceNumber::default(),
            (true, ..) => wrong("a device has a major and a minor number: add them")?,
            (false, ..) => wrong("a FIFO or socket has no numbers: leave them out")?,
        };
        let owner = NewOwner::of_new(self.owner.as_ref(), session, Owner::default())?;
        let new = NewFile { mode: self.mode, owner };
        let place = session.fs.place(&self.path)?;
        place.expect_kind(kind)?;
        let directory = place.directory().number();
        let made = session.fs.nodes().mknod(directory, place.name(), kind, device, &new);
        made.map_err(|error| place.failed(error))?;
        Ok(Outcome::Done)
    }
}
