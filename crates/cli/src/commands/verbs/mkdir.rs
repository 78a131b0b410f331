//! `undercroft mkdir`.

use super::Verb;
use crate::owner::NewOwner;
use crate::report::Outcome;
use crate::session::Session;
use crate::value;
use anyhow::Result;
use std::ffi::OsString;
use std::io::Write;
use undercroft_fs::{NewFile, Owner};

/// Create directories.
///
/// A directory inherits from the one above it: its group if that has the set-group-id bit, its
/// project, flags, and default access list.
///
/// For example: undercroft mkdir --parents root.img /srv/data/new
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Paths from the root directory of the volume.
    #[arg(required = true)]
    path: Vec<OsString>,

    /// Create the directories above as well, and accept existing ones.
    #[arg(short, long)]
    parents: bool,

    /// Permission bits in octal.
    #[arg(short, long, value_name = "MODE", default_value = "755", value_parser = value::mode)]
    mode: u16,

    /// Owner and group by name or number, as `chown` takes them; a part left out is 0.
    #[arg(long, value_name = "USER:GROUP")]
    owner: Option<NewOwner>,
}

impl Verb for Args {
    fn run(&self, session: &Session<'_>, _: &mut dyn Write) -> Result<Outcome> {
        let owner = NewOwner::of_new(self.owner.as_ref(), session, Owner::default())?;
        let new = NewFile { mode: self.mode, owner };
        for path in &self.path {
            if self.parents {
                session.fs.create_dir_all_as(path, &new)?;
                continue;
            }
            let place = session.fs.place(path)?;
            let made = session.fs.nodes().mkdir(place.directory().number(), place.name(), &new);
            made.map_err(|error| place.failed(error))?;
        }
        Ok(Outcome::Done)
    }
}
