//! Rules over a source as options: one list, in the order of the command line.

use crate::failure::Usage;
use anyhow::Result;
use clap::builder::OsStringValueParser;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Args, Command, FromArgMatches, ValueHint};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use undercroft_source::{Exclude, RuleError, RuleList, Rules, Timestamp};

/// The rules of a command line.
#[derive(Debug, Default)]
pub(crate) struct RuleArgs {
    /// In their order.
    given: Vec<Given>,
}

/// One option with its values.
#[derive(Debug)]
struct Given {
    option: &'static str,
    values: Vec<OsString>,
}

/// An option: its name, its values, and its help.
struct RuleOption(&'static str, &'static [&'static str], &'static str);

/// The option that names a file of rules.
const FILE: &str = "rules";

const OPTIONS: [RuleOption; 14] = [
    RuleOption(
        FILE,
        &["FILE"],
        "Read rules from a file: on each line one of the options of this section without its \
         dashes (see below)",
    ),
    RuleOption(
        "exclude",
        &["GLOB"],
        "Leave out what matches: a name at any depth (*.o), or with a slash a path from the root \
         (/build, src/**/*.o). Repeat for more",
    ),
    RuleOption("include", &["GLOB"], "Keep what matches although an --exclude before left it out"),
    RuleOption(
        "add",
        &["FILE:/PATH"],
        "Put a file of this machine into the image, in place of one that the source has there: \
         owner 0:0, mode and modification time of FILE. Missing directories are made",
    ),
    RuleOption("mkdir", &["/PATH"], "Make a directory, mode 755, if the source has none there"),
    RuleOption("symlink", &["TARGET:/PATH"], "Make a symbolic link, in place of a file there"),
    RuleOption(
        "owner-map",
        &["MAP"],
        "Map owners and groups, those in access lists too: FROM:TO or FROM:TO:COUNT, several \
         separated by commas, with u: or g: before for users or groups alone",
    ),
    RuleOption("owner", &["UID:GID"], "Owner and group of everything, as numbers"),
    RuleOption(
        "chown",
        &["UID:GID", "GLOB"],
        "Owner, group or both (UID, :GID) of what matches; ** is everything, / the root directory",
    ),
    RuleOption(
        "chmod",
        &["MODE", "GLOB"],
        "Permission bits of what matches, in octal or as chmod takes them (u+x,go-w)",
    ),
    RuleOption("root-mode", &["MODE"], "Permission bits of the root directory"),
    RuleOption(
        "xattr",
        &["NAME=VALUE", "GLOB"],
        "Set an extended attribute of what matches; a value that begins with 0x is in hexadecimal",
    ),
    RuleOption(
        "mtime",
        &["TIME"],
        "Modification time of everything: @SECONDS since 1970, or 2024-05-01T12:00:00Z",
    ),
    RuleOption(
        "selinux",
        &["FILE[:POLICY]"],
        "SELinux labels of everything by a file_contexts, or by the one of a policy directory such \
         as /etc/selinux/targeted. The files beside it count: .homedirs, .local, .subs, .subs_dist; \
         with :POLICY those of that directory. No SELinux is needed here",
    ),
];

impl Args for RuleArgs {
    fn augment_args(command: Command) -> Command {
        let names = OPTIONS.iter().map(|RuleOption(name, ..)| name);
        let group = ArgGroup::new("RuleArgs").multiple(true).args(names);
        OPTIONS
            .into_iter()
            .fold(command, |command, RuleOption(name, values, help)| {
                let hint = match name {
                    FILE | "add" | "selinux" => ValueHint::FilePath,
                    _ => ValueHint::Other,
                };
                command.arg(
                    Arg::new(name)
                        .long(name)
                        .value_names(values.iter().copied())
                        .num_args(values.len())
                        .action(ArgAction::Append)
                        .value_parser(OsStringValueParser::new())
                        .value_hint(hint)
                        .help(help),
                )
            })
            .group(group)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for RuleArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut given = Vec::new();
        for RuleOption(option, values, _) in OPTIONS {
            let indices = matches.indices_of(option).into_iter().flatten().step_by(values.len());
            let occurrences = matches.get_occurrences::<OsString>(option).into_iter().flatten();
            given.extend(indices.zip(occurrences).map(|(index, values)| {
                (index, Given { option, values: values.cloned().collect() })
            }));
        }
        given.sort_by_key(|(index, _)| *index);
        Ok(Self { given: given.into_iter().map(|(_, given)| given).collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl RuleArgs {
    /// What is left out, and the other rules. `epoch` is the time of entries that they make.
    pub(crate) fn rules(&self, epoch: Option<i64>) -> Result<(Exclude, Rules)> {
        Ok(self.read(epoch).map_err(|error| Usage(error.to_string()))?)
    }

    fn read(&self, epoch: Option<i64>) -> Result<(Exclude, Rules), RuleError> {
        let mut list = RuleList::default();
        list.made_at(Timestamp { seconds: epoch.unwrap_or(0), nanoseconds: 0 });
        for Given { option, values } in &self.given {
            if *option == FILE {
                values.iter().try_for_each(|file| list.add_file(Path::new(file)))?;
            } else {
                let shown: Vec<_> =
                    values.iter().map(|value| value.display().to_string()).collect();
                let words: Vec<_> = values.iter().map(|value| value.as_bytes()).collect();
                let place = format!("--{option} {}", shown.join(" "));
                list.add(option, &words, place, Path::new(""))?;
            }
        }
        list.finish()
    }
}
