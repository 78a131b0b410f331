//! A device in words: files and network disks, and how they are stacked.
//!
//! On the command line:
//!
//! ```text
//! device  = PATH | "PATH" | URI | "URI" | kind [":" options] "(" device { "," device } ")"
//! kind    = "file" | "linear" | "stripe" | "mirror" | "delay" | "lvm" | "raid"
//! options = option { "," option }
//! ```
//!
//! A file that holds a disk in a format of its own is that disk, where the program knows the format
//! ([`register_containers`]); `file:raw(x.qcow2)` is its bytes, `file:backing(x.qcow2)` reads the file
//! below, too, and `file:snapshot=NAME(x.qcow2)` is the disk as it was.
//!
//! For instance `disk.img`, `linear(a.img,b.img)`, `stripe:64k(mirror(a,b),mirror(c,d))`,
//! `file:direct("odd, name.img")`, `delay:20ms,100M(a)` (20 ms to every answer, 100 MiB a second).
//! `lvm(a.img,b.img)` and `raid(a.img,b.img)` are disks that belong together, and what is on them says what they are.
//! A text that does not begin with a kind and `(` or `:` is the path of a file. Inside parentheses a
//! path that holds `(`, `)`, `,` or `"`, or begins or ends with a space, stands in double quotes,
//! with `\"` and `\\` for these two. A file whose name begins like a device is written with its
//! directory: `./mirror(old).img`.
//!
//! A URI (`nbd://host/export`, `nbds://…`, `nbd+unix:///export?socket=PATH`) names a disk behind a
//! network wherever a path may stand, and so does one of an object (`s3://bucket/disk.img`, `https://…`);
//! `file(nbd://x)` is a file all the same.
//!
//! In a TOML file, named on the command line as `@stack.toml`, every device is a path, a URI or a table
//! with one of the keys `file`, `linear`, `stripe`, `mirror`, `delay`, `lvm`,
//! `raid`; options are further keys:
//!
//! ```toml
//! chunk = "64k"
//! stripe = [
//!     { mirror = ["a.img", "b.img"] },
//!     { mirror = ["c.img", { file = "d.img", direct = true }] },
//! ]
//! ```
//!
//! Relative paths in it start at the directory of the TOML file.

mod build;
mod container;
mod disk_format;
mod error;
mod kind;
mod leaf_options;
mod mirror_leg;
mod network;
mod options;
mod quotes;
mod read;
mod size;
mod text;
mod toml;
mod tree;

pub use build::{OpenLeaf, StackObserver};
pub use container::{OpenContainer, register_containers};
pub use disk_format::DiskFormat;
pub use error::DescriptionError;
pub use leaf_options::LeafOptions;
pub use mirror_leg::MirrorLeg;
pub use network::{NetworkKind, NetworkLeaf, OpenNetwork, register_network};
pub use options::FileLeaf;
pub use size::{Allotment, NoRoom};
pub use tree::{Description, LeafDescription, MAX_DEPTH};

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
