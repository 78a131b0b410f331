//! The options of one file in a description, and their values.

use std::fmt;
use std::path::PathBuf;

use super::disk_format::DiskFormat;
use super::kind::kind;
use super::network::NetworkLeaf;
use super::quotes::quoted;
use crate::drivers::Engine;
use crate::stack::StackError;
use crate::stack::bytes::{Size, size};
use crate::stack::delay::Slowness;
use crate::units::SECTOR_SIZE;

/// A file or block device at the bottom of a description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileLeaf {
    /// Where it is.
    pub path: PathBuf,
    /// Its length in bytes. A file that is made gets it, instead of the length of its part of the
    /// device; one that exists must have it.
    pub size: Option<u64>,
    /// Past the page cache.
    pub direct: bool,
    /// How bytes are moved.
    pub engine: Engine,
    /// Completions are asked for instead of waited for; implies `direct`.
    pub polled: bool,
    /// What is made of it if it looks as if it held a disk in a format of its own.
    pub format: DiskFormat,
    /// The snapshot in it, by name, that is the disk.
    pub snapshot: Option<String>,
}

impl FileLeaf {
    /// The file at `path`, without options.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            size: None,
            direct: false,
            engine: Engine::Auto,
            polled: false,
            format: DiskFormat::Auto,
            snapshot: None,
        }
    }

    /// Sets the option `name`; a flag has no value. The error says what would be right.
    pub(super) fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), String> {
        match (name, value) {
            ("direct", None) => self.direct = true,
            ("polled", None) => self.polled = true,
            ("raw", None) => self.format = DiskFormat::Raw,
            ("backing", None) => self.format = DiskFormat::Backed,
            ("direct" | "polled" | "raw" | "backing", Some(_)) => {
                return Err(format!("{name} takes no value"));
            }
            ("snapshot", Some(name)) if !name.is_empty() => self.snapshot = Some(name.to_owned()),
            ("snapshot", _) => return Err("snapshot needs a name, such as snapshot=before".into()),
            ("size", Some(value)) => self.size = Some(whole_sectors(value)?),
            ("size", None) => return Err("size needs a value, such as size=1G".into()),
            ("engine", Some("auto")) => self.engine = Engine::Auto,
            ("engine", Some("uring")) => self.engine = Engine::Uring,
            ("engine", Some("threads")) => self.engine = Engine::Threads,
            ("engine", Some("mixed")) => self.engine = Engine::Mixed,
            ("engine", Some("around")) => self.engine = Engine::Around,
            ("engine", _) => {
                let engines = "engine=uring, engine=threads, engine=mixed or engine=around";
                return Err(format!("write engine=auto, {engines}"));
            }
            _ => {
                let remedy = "there are backing, direct, engine, polled, raw, size and snapshot";
                return Err(format!("{name:?} is no option of file; {remedy}"));
            }
        }
        Ok(())
    }

    /// As it stands inside parentheses.
    pub(super) fn nested(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.size.map(|size| format!("size={}", Size(size)));
        let engine = match self.engine {
            Engine::Auto => None,
            Engine::Uring => Some("engine=uring".to_owned()),
            Engine::Threads => Some("engine=threads".to_owned()),
            Engine::Mixed => Some("engine=mixed".to_owned()),
            Engine::Around => Some("engine=around".to_owned()),
        };
        let direct = self.direct.then(|| "direct".to_owned());
        let polled = self.polled.then(|| "polled".to_owned());
        let format = match self.format {
            DiskFormat::Auto => None,
            DiskFormat::Backed => Some("backing".to_owned()),
            DiskFormat::Raw => Some("raw".to_owned()),
        };
        let snapshot = self.snapshot.as_ref().map(|name| format!("snapshot={name}"));
        let options = [format, direct, engine, polled, size, snapshot];
        let options: Vec<String> = options.into_iter().flatten().collect();
        let path = self.path.to_string_lossy();
        let path = if is_bare(&path) { path.into_owned() } else { quoted(&path) };
        if options.is_empty() && NetworkLeaf::parse(&path).is_some() {
            write!(f, "file({path})")
        } else if options.is_empty() {
            f.write_str(&path)
        } else {
            write!(f, "file:{}({path})", options.join(","))
        }
    }
}

/// Whether a path can stand inside parentheses as it is.
fn is_bare(path: &str) -> bool {
    !path.is_empty()
        && !path.contains(['(', ')', ',', '"'])
        && path.trim_matches(' ') == path
        && kind(path.as_bytes()).is_none()
}

fn whole_sectors(text: &str) -> Result<u64, String> {
    let bytes = size(text)?;
    if bytes == 0 || !bytes.is_multiple_of(SECTOR_SIZE) {
        return Err(format!("a file of {bytes} bytes; its size must be a multiple of 512"));
    }
    Ok(bytes)
}

/// How slow a delay is: its latency and, perhaps, its bandwidth.
pub(super) fn slowness<'t>(options: impl Iterator<Item = &'t str>) -> Result<Slowness, String> {
    let text = options.collect::<Vec<_>>().join(",");
    text.parse().map_err(|error: StackError| error.to_string())
}

/// The chunk size of a stripe.
pub(super) fn chunk(text: &str) -> Result<u64, String> {
    let bytes = size(text)?;
    crate::stack::Stripe::is_chunk(bytes).then_some(bytes).ok_or_else(|| {
        format!("a chunk of {bytes} bytes; it must be a power of two from 4k to 1G, such as 64k")
    })
}
