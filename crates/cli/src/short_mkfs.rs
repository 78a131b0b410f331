//! The short options of mkfs.xfs(8), for those who know them by heart: they become those of
//! `undercroft mkfs` that mean the same.

use crate::failure::Usage;
use crate::value;
use std::ffi::{OsStr, OsString};

/// Option of mkfs.xfs, suboption, and the option here.
const SAME: &[(&str, &str, &str)] = &[
    ("-b", "size", "--block-size"),
    ("-i", "size", "--inode-size"),
    ("-s", "size", "--sector-size"),
    ("-n", "size", "--dir-block-size"),
    ("-l", "size", "--log-size"),
    ("-d", "size", "--size"),
    ("-d", "agcount", "--agcount"),
    ("-m", "uuid", "--uuid"),
];

/// Options whose other suboptions are features.
const FEATURES: &[&str] = &["-m", "-i", "-n"];

/// The arguments of a run, those of mkfs.xfs(8) as those of this command.
///
/// # Errors
/// A suboption has no meaning here.
pub(crate) fn translated(arguments: Vec<OsString>) -> Result<Vec<OsString>, Usage> {
    if arguments.get(1).is_none_or(|command| command != "mkfs") {
        return Ok(arguments);
    }
    let mut words = arguments.into_iter();
    let mut translated: Vec<OsString> = words.by_ref().take(2).collect();
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("-L") => translated.push("--label".into()),
            Some("-f") => translated.push("--force".into()),
            // No blocks are discarded, and there is little to say, without them.
            Some("-K" | "-q") => {}
            Some(option @ ("-b" | "-d" | "-i" | "-l" | "-m" | "-n" | "-s")) => {
                let values =
                    words.next().ok_or_else(|| Usage(format!("{option} wants a value")))?;
                suboptions(option, &values, &mut translated)?;
            }
            _ => translated.push(word),
        }
    }
    Ok(translated)
}

/// Adds what `NAME=VALUE,NAME=VALUE` behind an option means.
fn suboptions(option: &str, values: &OsStr, into: &mut Vec<OsString>) -> Result<(), Usage> {
    let wrong = |part: &str| {
        Usage(format!("{option} {part} has no meaning here; see `undercroft mkfs --help`"))
    };
    let values = values.to_str().ok_or_else(|| wrong("with such a value"))?;
    let (mut unit, mut width) = (None, None);
    for part in values.split(',') {
        let (name, value) = part.split_once('=').ok_or_else(|| wrong(part))?;
        let same = SAME.iter().find(|(of, known, _)| *of == option && *known == name);
        let bytes = || value::size(value).map_err(|why| Usage(format!("{option} {part}: {why}")));
        match (option, name) {
            _ if let Some((_, _, here)) = same => into.extend([here.into(), value.into()]),
            ("-d", "su") => unit = Some(bytes()?),
            ("-d", "sw") => width = Some(bytes()?),
            _ if FEATURES.contains(&option) => into.extend(["--feature".into(), part.into()]),
            _ => return Err(wrong(part)),
        }
    }
    match (unit, width) {
        (None, None) => Ok(()),
        (Some(unit), Some(disks)) => {
            let width = unit.checked_mul(disks).ok_or_else(|| wrong("with such a width"))?;
            into.extend(["--stripe-unit".into(), unit.to_string().into()]);
            into.extend(["--stripe-width".into(), width.to_string().into()]);
            Ok(())
        }
        _ => Err(Usage("-d wants su= and sw= together".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str) -> Result<String, String> {
        let words = line.split(' ').map(OsString::from).collect();
        let words = translated(words).map_err(|error| error.to_string())?;
        Ok(words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn options_become_those_of_the_same_meaning() {
        let line = "undercroft mkfs -f -K -L root -b size=1k -m rmapbt=0,uuid=1-2 -d agcount=3,su=64k,sw=4 a";
        let same = "undercroft mkfs --force --label root --block-size 1k --feature rmapbt=0 --uuid 1-2 \
                    --agcount 3 --stripe-unit 65536 --stripe-width 262144 a";
        assert_eq!(run(line).unwrap(), same);
        let line =
            "undercroft mkfs -n size=8k,parent=1 -i size=1k -l size=64m -d size=1g -s size=4k a";
        let same = "undercroft mkfs --dir-block-size 8k --feature parent=1 --inode-size 1k --log-size \
                    64m --size 1g --sector-size 4k a";
        assert_eq!(run(line).unwrap(), same);
        assert_eq!(run("undercroft ls -l a").unwrap(), "undercroft ls -l a");
    }

    #[test]
    fn what_has_no_meaning_is_named() {
        assert!(run("undercroft mkfs -d rtinherit=1 a").unwrap_err().contains("-d rtinherit=1"));
        assert!(run("undercroft mkfs -d su=64k a").unwrap_err().contains("together"));
        assert!(run("undercroft mkfs -b").unwrap_err().contains("wants a value"));
    }
}
