//! What to do about an error of the libraries: they say what is wrong, and know no commands and
//! options.

use std::error::Error;
use undercroft_block::stack::StackError;
use undercroft_container::ContainerError;
use undercroft_fs::PathError;
use undercroft_fuse::options::OptionError;
use undercroft_image::copy::CopyError;
use undercroft_image::disk::DiskError;
use undercroft_image::layer::LayerError;
use undercroft_image::pack::PackError;
use undercroft_image::unpack::UnpackError;
use undercroft_source::description::{ContentsProblem, DescriptionError, DescriptionProblem};
use undercroft_source::oci::{ImageError, ImageProblem};
use undercroft_source::{FileError, OpenError, SourceError};
use undercroft_xfs::Error as VolumeError;

const CHECK: &str = "run `undercroft check` for the whole picture";

/// The remedy for one of the causes of an error.
pub(crate) fn of(cause: &(dyn Error + 'static)) -> Option<String> {
    if let Some(error) = cause.downcast_ref::<PackError>() {
        return of_pack(error);
    }
    let remedy = if let Some(error) = cause.downcast_ref::<VolumeError>() {
        of_volume(error)
    } else if let Some(error) = cause.downcast_ref::<PathError>() {
        of_volume(error.error())
    } else if let Some(error) = cause.downcast_ref::<UnpackError>() {
        of_unpack(error)
    } else if let Some(error) = cause.downcast_ref::<SourceError>() {
        of_source(error)
    } else if let Some(OptionError::Unknown(_)) = cause.downcast_ref() {
        Some("`undercroft mount --help` lists those that are")
    } else if let Some(StackError::Container(error)) = cause.downcast_ref() {
        of_container(error.downcast_ref()?)
    } else if let Some(LayerError::NoRoom { .. }) = cause.downcast_ref() {
        Some("`undercroft grow` does that")
    } else if let Some(error) = cause.downcast_ref() {
        of_copy(error)
    } else {
        None
    };
    remedy.map(str::to_owned)
}

fn of_container(error: &ContainerError) -> Option<&'static str> {
    match error {
        ContainerError::Named { .. } => Some("--backing reads both"),
        _ => None,
    }
}

fn of_copy(error: &CopyError) -> Option<&'static str> {
    match error {
        CopyError::Source(error) => of_source(error),
        CopyError::Exists { .. } => Some("use --force to replace it"),
        CopyError::NoRoom { .. } => Some("`undercroft grow` makes the volume larger"),
        _ => None,
    }
}

fn of_volume(error: &VolumeError) -> Option<&'static str> {
    match error {
        VolumeError::Journal { .. } => Some(
            "read the volume without its journal (--no-replay), or give the latest changes up with \
             `xfs_repair -L`",
        ),
        error if error.is_damage() => Some(CHECK),
        _ => None,
    }
}

fn of_source(error: &SourceError) -> Option<&'static str> {
    let SourceError::Fault(fault) = error else { return None };
    let fault: &(dyn Error + 'static) = fault.as_ref();
    if let Some(error) = fault.downcast_ref::<FileError>() {
        return match error {
            FileError::Read { .. }
            | FileError::SymlinkTarget { .. }
            | FileError::Fragmented { .. }
            | FileError::PathLength { .. } => Some("--exclude does that"),
            _ => None,
        };
    }
    if let Some(error) = fault.downcast_ref::<DescriptionError>() {
        return match &error.problem {
            DescriptionProblem::NoContents { .. }
            | DescriptionProblem::Owner { .. }
            | DescriptionProblem::Contents(ContentsProblem::Unreadable { .. }) => {
                Some("--contents DIR names it")
            }
            DescriptionProblem::Slash { .. } => Some("--slashes-are-spaces does that"),
            _ => None,
        };
    }
    match fault.downcast_ref::<ImageError>().map(|error| &error.problem) {
        Some(ImageProblem::Platforms { .. }) => Some("--platform names it"),
        _ => match fault.downcast_ref() {
            Some(OpenError::NoDescription(_)) => Some("leave --contents out"),
            _ => None,
        },
    }
}

fn of_unpack(error: &UnpackError) -> Option<&'static str> {
    match error {
        UnpackError::Name { .. }
        | UnpackError::Duplicate { .. }
        | UnpackError::Repeated { .. }
        | UnpackError::Links { .. } => Some(CHECK),
        UnpackError::PathLength { .. } => Some("`undercroft extract` takes it as it is"),
        UnpackError::NotEmpty(_) => Some("--force replaces what is there"),
        _ => None,
    }
}

fn of_pack(error: &PackError) -> Option<String> {
    let remedy = match error {
        PackError::Source(error) => return of_source(error).map(str::to_owned),
        PackError::Exists(_) => "use --force to replace it",
        PackError::Holds { .. } => "use --force to overwrite it",
        PackError::TooSmall { needed: Some(bytes), .. }
        | PackError::Inodes { needed: Some(bytes), .. } => {
            return Some(format!("use --size {bytes} or --size auto"));
        }
        PackError::TooSmall { needed: None, .. } | PackError::Inodes { needed: None, .. } => {
            "use a larger --size or --size auto"
        }
        PackError::SizeNeeded(_) => "give the size of the volume with --size",
        PackError::NothingToShare(_) | PackError::NotShared { .. } => "or use --reflink auto",
        PackError::VerifyStream => "or leave --verify out",
        PackError::Disk(DiskError::SizeOfVolume(_)) => "give it with --size",
        PackError::Disk(DiskError::SizeOfDevice { .. }) => "leave --disk-size out",
        PackError::FormatOfTarget(_) => "leave --format out, or name a file",
        _ => return None,
    };
    Some(remedy.to_owned())
}
