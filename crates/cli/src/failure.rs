//! The facts known of an error: for programs, with `--json`, and for the exit status.

use serde::Serialize;
use std::io;
use undercroft_fs::PathError;
use undercroft_image::copy::CopyError;
use undercroft_image::pack::PackError;
use undercroft_image::unpack::UnpackError;
#[cfg(feature = "lab")]
use undercroft_lab::LabError;
use undercroft_xfs::Error;
use undercroft_xfs::mkfs::MkfsError;

/// A value that no volume could take: wrong usage.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl std::fmt::Display for Usage {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// The line of a script, or of a conversation, that failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScriptLine(pub(crate) u64);

impl std::fmt::Display for ScriptLine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "line {} of the script", self.0)
    }
}

/// An error as JSON. Unknown fields are left out.
#[derive(Serialize)]
pub(crate) struct Failure {
    error: String,
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    structure: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<Address>,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip)]
    usage: bool,
}

/// Where a structure is.
#[derive(Default, Serialize)]
struct Address {
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sector: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inode: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    block: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cycle: Option<u32>,
}

impl Failure {
    /// The facts of the causes of an error; `message` is all of it in words.
    pub(crate) fn new(error: &anyhow::Error, message: String) -> Self {
        let mut failure = Self {
            error: message,
            kind: "failed".into(),
            line: error.downcast_ref().map(|ScriptLine(number)| *number),
            structure: None,
            address: None,
            field: None,
            path: None,
            usage: false,
        };
        // The innermost cause has the kind; the outermost path is the whole one.
        for cause in error.chain() {
            failure.add(cause);
        }
        failure
    }

    /// The error in words.
    pub(crate) fn message(&self) -> &str {
        &self.error
    }

    /// Whether an argument was wrong, independent of the volume.
    pub(crate) const fn is_usage(&self) -> bool {
        self.usage
    }

    fn add(&mut self, cause: &(dyn std::error::Error + 'static)) {
        if cause.is::<Usage>() || cause.is::<MkfsError>() {
            self.wrong_usage();
        } else if let Some(error) = cause.downcast_ref::<Error>() {
            self.add_error(error);
        } else if let Some(error) = cause.downcast_ref::<PathError>() {
            self.add_path(&error.path().display());
            self.add_error(error.error());
        } else if let Some(error) = cause.downcast_ref::<io::Error>() {
            self.kind = kebab(&error.kind());
        } else if let Some(error) = cause.downcast_ref::<PackError>() {
            match error {
                PackError::Options(_)
                | PackError::ShortBlocks { .. }
                | PackError::SizeNeeded(_)
                | PackError::FormatOfTarget(_)
                | PackError::VerifyStream
                | PackError::FreeTooLarge => self.wrong_usage(),
                PackError::Disk(error) if error.is_usage() => self.wrong_usage(),
                PackError::Entry { path, .. } | PackError::Verify { path, .. } => {
                    self.add_path(path);
                }
                PackError::HostFull { .. } => self.kind = kebab(&io::ErrorKind::StorageFull),
                PackError::TooSmall { .. }
                | PackError::Inodes { .. }
                | PackError::LittleFree { .. } => {
                    self.kind = kebab(&undercroft_xfs::ErrorKind::NoSpace);
                }
                _ => {}
            }
        } else if let Some(CopyError::Entry { path, .. }) = cause.downcast_ref() {
            self.add_path(path);
        } else if let Some(UnpackError::Volume { path, .. }) = cause.downcast_ref() {
            self.add_path(path);
        } else {
            #[cfg(feature = "lab")]
            self.add_experiment(cause);
        }
    }

    #[cfg(feature = "lab")]
    fn add_experiment(&mut self, cause: &(dyn std::error::Error + 'static)) {
        match cause.downcast_ref() {
            Some(LabError::Format(_)) => self.wrong_usage(),
            Some(LabError::Volume(error)) => self.add_error(error),
            _ => {}
        }
    }

    fn wrong_usage(&mut self) {
        (self.kind, self.usage) = ("usage".into(), true);
    }

    fn add_path(&mut self, path: &impl ToString) {
        self.path.get_or_insert_with(|| path.to_string());
    }

    fn add_error(&mut self, error: &Error) {
        self.kind = match error {
            Error::Device(failed) if failed.is_no_space() => kebab(&io::ErrorKind::StorageFull),
            error => kebab(&error.kind()),
        };
        let at = Address::default();
        let (structure, address) = match error {
            Error::Device(failed) => (
                None,
                Address {
                    device: Some(failed.device.to_string()),
                    sector: Some(failed.sector.0),
                    ..at
                },
            ),
            Error::Block { structure, sector, .. } => {
                (Some(*structure), Address { sector: Some(sector.0), ..at })
            }
            Error::Superblock(defect) => {
                self.field = defect.field();
                (Some("superblock"), Address { sector: Some(0), ..at })
            }
            Error::Header { structure, sector, defect } => {
                self.field = Some(defect.field());
                (Some(*structure), Address { sector: Some(sector.0), ..at })
            }
            Error::Group { structure, group, block, .. } => (
                Some(*structure),
                Address { group: Some(group.0.into()), block: Some(block.0.into()), ..at },
            ),
            Error::Tree(tree) => {
                self.field = Some(tree.defect.field);
                let owner = Some(tree.owner);
                let (inode, group) =
                    if tree.tree.long_pointers() { (owner, None) } else { (None, owner) };
                (Some(tree.tree.name()), Address { inode, group, block: tree.block, ..at })
            }
            Error::Inode { inode, .. } => (Some("inode"), Address { inode: Some(inode.0), ..at }),
            Error::Fork { structure, inode, block, .. } => {
                (Some(*structure), Address { inode: Some(inode.0), block: Some(block.0), ..at })
            }
            Error::Journal { lsn, .. } => (
                Some("journal"),
                Address { cycle: Some(lsn.cycle()), block: Some(lsn.block().into()), ..at },
            ),
            Error::NotFound(path)
            | Error::Exists(path)
            | Error::NotEmpty(path)
            | Error::Loop(path)
            | Error::WrongKind { path, .. } => return self.add_path(path),
            Error::NameTooLong(_)
            | Error::AttributeNameTooLong(_)
            | Error::AttributeTooLarge(_)
            | Error::TooLarge(_) => {
                self.usage = true;
                return;
            }
            _ => return,
        };
        (self.structure, self.address) = (structure, Some(address));
    }
}

/// A kind in lower case, `NotFound` as `not-found`.
fn kebab(kind: &impl std::fmt::Debug) -> String {
    let mut text = String::new();
    for letter in format!("{kind:?}").chars() {
        if letter.is_ascii_uppercase() && !text.is_empty() {
            text.push('-');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}
