//! Commands on an open volume: the same on the command line, behind the name of an image, and in a
//! shell. The table is in one place, the macro `verbs`.

mod attributes;
pub(crate) mod cat;
pub(crate) mod clone;
pub(crate) mod copying;
pub(crate) mod dedupe;
pub(crate) mod fallocate;
pub(crate) mod label;
pub(crate) mod ln;
mod looking;
pub(crate) mod mkdir;
pub(crate) mod mknod;
pub(crate) mod mv;
pub(crate) mod rm;
pub(crate) mod sync;
pub(crate) mod truncate;

use crate::deferred;
use crate::image::{self, ImageArgs};
use crate::report::Outcome;
use crate::session::Session;
use anyhow::Result;
use attributes::{chmod, chown, extsize, getacl, getxattr, rmxattr, setacl, setxattr, touch};
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};
use copying::{get, put};
pub(crate) use looking::NameArgs;
use looking::{df, du, find, ls, stat, tree, whose};
use std::io::Write;

/// One command.
pub(crate) trait Verb {
    /// Whether it may change the volume.
    const CHANGES: bool = true;

    /// Whether the volume is opened for change.
    fn changes(&self) -> bool {
        Self::CHANGES
    }

    /// Does it.
    fn run(&self, session: &Session<'_>, out: &mut dyn Write) -> Result<Outcome>;

    /// Whether it prints JSON.
    fn json(&self) -> bool {
        false
    }
}

/// A verb with its image.
pub(crate) struct On<V> {
    pub(crate) image: ImageArgs,
    pub(crate) verb: V,
}

impl<V: Args + Verb> Args for On<V> {
    // The verb comes last: the help is its own.
    fn augment_args(command: Command) -> Command {
        deferred::augment(command, |command| {
            let command = V::augment_args(ImageArgs::augment_args(command));
            if V::CHANGES { command.mut_arg("no_replay", image::hidden) } else { command }
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        V::augment_args_for_update(ImageArgs::augment_args_for_update(command))
    }
}

impl<V: Args + Verb> FromArgMatches for On<V> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let image = ImageArgs::from_arg_matches(matches)?;
        Ok(Self { image, verb: V::from_arg_matches(matches)? })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.image.update_from_arg_matches(matches)?;
        self.verb.update_from_arg_matches(matches)
    }
}

impl<V: Verb> On<V> {
    fn run(&self, out: &mut dyn Write) -> Result<Outcome> {
        if self.verb.changes() {
            let edit = self.image.open_for_change()?;
            let done = self.verb.run(&Session::new(edit.volume())?, out);
            // Changes before an error stay; the first error counts.
            let closed = edit.close();
            done.and_then(|outcome| closed.map(|()| outcome))
        } else {
            let volume = self.image.open()?;
            self.verb.run(&Session::new(&volume)?, out)
        }
    }
}

/// Makes the two enumerations of verbs: [`OnImage`] for the command line, [`InShell`] for a shell.
macro_rules! verbs {
    ($($(#[$attribute:meta])* $name:ident($module:ident)),+ $(,)?) => {
        /// Verbs on the command line.
        #[derive(Subcommand)]
        pub(crate) enum OnImage {
            $($(#[$attribute])* $name(On<$module::Args>),)+
        }

        impl OnImage {
            /// The image, and whether JSON is printed.
            pub(super) fn image(&self) -> (&ImageArgs, bool) {
                match self {
                    $(Self::$name(on) => (&on.image, on.verb.json()),)+
                }
            }

            /// Opens the volume and does it.
            pub(super) fn run(&self, out: &mut dyn Write) -> Result<Outcome> {
                match self {
                    $(Self::$name(on) => on.run(out),)+
                }
            }
        }

        /// Verbs in a shell.
        #[derive(Subcommand)]
        pub(crate) enum InShell {
            $($(#[$attribute])* $name($module::Args),)+
        }

        impl InShell {
            /// Does it on the volume that is open.
            pub(crate) fn run(
                &self,
                session: &Session<'_>,
                out: &mut dyn Write,
            ) -> Result<Outcome> {
                match self {
                    $(Self::$name(verb) => verb.run(session, out),)+
                }
            }
        }
    };
}

verbs! {
    Ls(ls),
    Tree(tree),
    Find(find),
    Du(du),
    Df(df),
    Stat(stat),
    Owner(whose),
    Cat(cat),
    #[command(visible_alias = "dump")]
    Get(get),
    Put(put),
    Mkdir(mkdir),
    Rm(rm),
    Mv(mv),
    Ln(ln),
    Mknod(mknod),
    Chmod(chmod),
    Chown(chown),
    Touch(touch),
    Truncate(truncate),
    Fallocate(fallocate),
    Extsize(extsize),
    Clone(clone),
    Dedupe(dedupe),
    Getxattr(getxattr),
    Setxattr(setxattr),
    Rmxattr(rmxattr),
    Getacl(getacl),
    Setacl(setacl),
    Label(label),
    Sync(sync),
}
