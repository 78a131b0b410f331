//! Changes of permission bits: octal digits, or letters as `chmod` takes them.

use std::str::FromStr;

/// What becomes of permission bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModeChange {
    /// These.
    Set(u16),
    /// One step after the other.
    Steps(Vec<Step>),
}

/// One operation on the bits of some classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The bits that the classes have.
    whose: u16,
    operation: Operation,
    what: Permissions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Add,
    Remove,
    Assign,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Permissions {
    /// These bits, and with `search` the executable ones if it is a directory or one is set.
    Bits { bits: u16, search: bool },
    /// The bits of another class, as a shift.
    Copy(u32),
}

const EXECUTE: u16 = 0o111;
const SET_ID: u16 = 0o6000;

impl ModeChange {
    /// The new bits of a file.
    pub fn apply(&self, mode: u16, is_directory: bool) -> u16 {
        match self {
            Self::Set(bits) => *bits,
            Self::Steps(steps) => {
                steps.iter().fold(mode & 0o7777, |mode, step| step.apply(mode, is_directory))
            }
        }
    }
}

impl Step {
    fn apply(&self, mode: u16, is_directory: bool) -> u16 {
        let bits = match self.what {
            Permissions::Bits { bits, search } => {
                let search = search && (is_directory || mode & EXECUTE != 0);
                bits | if search { EXECUTE } else { 0 }
            }
            Permissions::Copy(shift) => (mode >> shift & 7) * EXECUTE,
        };
        let named = bits & self.whose;
        match self.operation {
            Operation::Add => mode | named,
            Operation::Remove => mode & !named,
            Operation::Assign => {
                // As GNU has it, a directory keeps its set-ID bits where they are not named.
                let kept = if is_directory { SET_ID & !bits } else { 0 };
                mode & (!self.whose | kept) | named
            }
        }
    }
}

impl FromStr for ModeChange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with(|first: char| first.is_ascii_digit()) {
            let bits = u16::from_str_radix(text, 8).ok().filter(|mode| mode & !0o7777 == 0);
            return bits
                .map(Self::Set)
                .ok_or_else(|| "write up to four octal digits, such as 755 or 1777".to_owned());
        }
        let steps: Option<Vec<Vec<Step>>> = text.split(',').map(steps).collect();
        let steps = steps.ok_or("write octal digits, such as 755, or letters, such as u+x,go-w")?;
        Ok(Self::Steps(steps.concat()))
    }
}

/// The steps of one clause: whose bits, then one or more operations.
fn steps(clause: &str) -> Option<Vec<Step>> {
    let start = clause.find(['+', '-', '='])?;
    let (classes, mut rest) = clause.split_at(start);
    let whose = classes.chars().try_fold(0, |whose, class| {
        Some(
            whose
                | match class {
                    'u' => 0o4700,
                    'g' => 0o2070,
                    'o' => 0o1007,
                    'a' => 0o7777,
                    _ => return None,
                },
        )
    })?;
    let whose = if classes.is_empty() { 0o7777 } else { whose };
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let operation = match rest.as_bytes()[0] {
            b'+' => Operation::Add,
            b'-' => Operation::Remove,
            _ => Operation::Assign,
        };
        let end = rest[1..].find(['+', '-', '=']).map_or(rest.len(), |at| at + 1);
        steps.push(Step { whose, operation, what: permissions(&rest[1..end])? });
        rest = &rest[end..];
    }
    Some(steps)
}

fn permissions(letters: &str) -> Option<Permissions> {
    match letters {
        "u" => return Some(Permissions::Copy(6)),
        "g" => return Some(Permissions::Copy(3)),
        "o" => return Some(Permissions::Copy(0)),
        _ => {}
    }
    let (mut bits, mut search) = (0, false);
    for letter in letters.chars() {
        match letter {
            'r' => bits |= 0o444,
            'w' => bits |= 0o222,
            'x' => bits |= EXECUTE,
            'X' => search = true,
            's' => bits |= SET_ID,
            't' => bits |= 0o1000,
            _ => return None,
        }
    }
    Some(Permissions::Bits { bits, search })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    /// GNU chmod is asked the same.
    #[test]
    fn letters_mean_what_they_mean_to_gnu_chmod() {
        let scratch = tempfile::tempdir().unwrap();
        let (file, directory) = (scratch.path().join("file"), scratch.path().join("directory"));
        fs::write(&file, "").unwrap();
        fs::create_dir(&directory).unwrap();
        let changes = [
            "u+x,g-w",
            "a=r",
            "+x",
            "u=rwx,go=",
            "go=u",
            "u=g-x",
            "a+X",
            "g+s",
            "u+s,o+t",
            "=",
            "o=t",
            "ug=rws",
            "u+rw-x",
            "a-x+X",
            "g=o,u-s",
            "+t",
            "u+t",
            "a=,u+r",
            "g=s",
            "uo=rX",
        ];
        for change in changes {
            let ours: ModeChange = change.parse().unwrap();
            for (path, is_directory) in [(&file, false), (&directory, true)] {
                for mode in [0, 0o644, 0o755, 0o7777, 0o4711, 0o2750, 0o1070] {
                    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
                    let mut gnu = Command::new("sh");
                    gnu.args(["-c", "umask 0; exec chmod -- \"$1\" \"$2\"", "sh", change])
                        .arg(path);
                    assert!(gnu.status().unwrap().success(), "{change}");
                    let theirs = path.metadata().unwrap().permissions().mode() & 0o7777;
                    let ours = ours.apply(mode as u16, is_directory);
                    assert_eq!(u32::from(ours), theirs, "{change} of {mode:o}, {path:?}");
                }
            }
        }
        for wrong in ["", "x", "u", "u+q", "z+x", "u+x,", "u+ug", "8", "17777", "u+x g-w"] {
            assert!(wrong.parse::<ModeChange>().is_err(), "{wrong}");
        }
    }
}
