//! The command under the names and in the forms that `mount(8)` and `fsck(8)` use.
//!
//! `mount -t undercroft` runs `mount.undercroft IMAGE DIR -o OPTIONS`, `mount -t fuse.undercroft` runs
//! `mount.fuse.undercroft` so, or by way of `mount.fuse` `undercroft IMAGE DIR -o OPTIONS`. All of them
//! become `undercroft mount`. `fsck -t undercroft` runs `fsck.undercroft`, which becomes `undercroft fsck`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What usage is told of: a command under another name is one of these, with its name behind it.
const COMMAND: &str = "undercroft";

/// What is to be run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Invocation {
    /// The command with these arguments, its name among them.
    Command(Vec<OsString>),
    /// The same, for mount(8), which has its own exit statuses.
    Mount(Vec<OsString>),
    /// Nothing: `mount -f` only pretends.
    Nothing,
}

/// Exit status of wrong usage (mount(8)).
pub(crate) const WRONG_USAGE: u8 = 1;

/// Exit status of a mount that failed.
pub(crate) const NOT_MOUNTED: u8 = 32;

/// The arguments of the command, from those of the process.
pub(crate) fn arguments(
    arguments: impl IntoIterator<Item = OsString>,
    is_command: impl Fn(&OsStr) -> bool,
    is_root: bool,
) -> Invocation {
    let mut all: Vec<OsString> = arguments.into_iter().collect();
    if let [_, help, asked] = &mut all[..]
        && help == "help"
        && (asked == "--help" || asked == "-h")
    {
        *asked = help.clone();
    }
    let name = all.first().and_then(|name| Path::new(name).file_name());
    let is_helper = name.is_some_and(|name| name.as_bytes().starts_with(b"mount."));
    if name.is_some_and(|name| name == "fsck.undercroft") {
        let given = all.into_iter().skip(1);
        return Invocation::Command(
            [COMMAND, "fsck"].map(OsString::from).into_iter().chain(given).collect(),
        );
    }
    let is_short = match all.get(1..) {
        Some([image, _, option, ..]) => {
            option == "-o" && !image.as_bytes().starts_with(b"-") && !is_command(image)
        }
        _ => false,
    };
    if is_helper || is_short {
        // mount(8) does not pass on what is its default; `mount.fuse` does.
        of_helper(all, is_helper && is_root)
    } else {
        Invocation::Command(all)
    }
}

fn of_helper(all: Vec<OsString>, is_privileged: bool) -> Invocation {
    let mut given = all.into_iter().skip(1);
    let mut command = [COMMAND, "mount"].map(OsString::from).to_vec();
    if is_privileged {
        command.extend(["-o", "dev,suid"].map(OsString::from));
    }
    let mut is_sloppy = false;
    while let Some(argument) = given.next() {
        match argument.as_bytes() {
            // Flags that are joined, such as -sfn.
            [b'-', flags @ ..]
                if !flags.is_empty() && flags.iter().all(|f| b"sfnv".contains(f)) =>
            {
                if flags.contains(&b'f') {
                    return Invocation::Nothing;
                }
                is_sloppy |= flags.contains(&b's');
            }
            // A name space that mount(8) has entered, and the type that it was asked for.
            b"-N" | b"-t" => drop(given.next()),
            b"-r" => command.push("--read-only".into()),
            b"-w" => {}
            _ => command.push(argument),
        }
    }
    if is_sloppy {
        // In front: it counts for what is behind it.
        command.splice(2..2, ["-o", "sloppy"].map(OsString::from));
    }
    Invocation::Mount(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str) -> Invocation {
        arguments(line.split(' ').map(OsString::from), |word| word == "ls", true)
    }

    fn command(line: &str) -> Invocation {
        Invocation::Command(line.split(' ').map(OsString::from).collect())
    }

    fn mount(line: &str) -> Invocation {
        Invocation::Mount(line.split(' ').map(OsString::from).collect())
    }

    #[test]
    fn the_forms_of_mount_become_one() {
        let form = "/sbin/mount.undercroft disk.img /mnt -n -o rw,noatime -t undercroft";
        let whole = "undercroft mount -o dev,suid disk.img /mnt -o rw,noatime";
        assert_eq!(run(form), mount(whole));
        let form = "mount.undercroft disk.img /mnt -sn";
        assert_eq!(run(form), mount("undercroft mount -o sloppy -o dev,suid disk.img /mnt"));
        let form = "undercroft disk.img /mnt -o rw";
        assert_eq!(run(form), mount("undercroft mount disk.img /mnt -o rw"));
        assert_eq!(run("mount.fuse.undercroft disk.img /mnt -sf"), Invocation::Nothing);
    }

    #[test]
    fn help_has_a_help() {
        for form in ["undercroft help --help", "undercroft help -h"] {
            assert_eq!(run(form), command("undercroft help help"));
        }
    }

    #[test]
    fn the_name_of_fsck_is_a_command() {
        let form = "/sbin/fsck.undercroft -a /dev/sda1";
        assert_eq!(run(form), command("undercroft fsck -a /dev/sda1"));
    }

    #[test]
    fn commands_stay_as_they_are() {
        for line in ["undercroft ls disk.img -o", "undercroft mount a b -o ro", "undercroft --help"]
        {
            let is_command = |word: &OsStr| word == "ls" || word == "mount";
            let given = line.split(' ').map(OsString::from);
            assert_eq!(arguments(given, is_command, true), command(line));
        }
    }
}
