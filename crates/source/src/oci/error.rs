//! Errors of a container image.

use super::digest::Digest;
use crate::SourceError;
use std::fmt;
use std::io;

/// A fault of an image.
#[derive(Debug)]
pub struct ImageError {
    /// The image as it was named.
    pub image: String,
    /// The fault.
    pub problem: ImageProblem,
}

impl From<Box<ImageError>> for SourceError {
    fn from(error: Box<ImageError>) -> Self {
        Self::Fault(error)
    }
}

impl fmt::Display for ImageError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.image, self.problem)
    }
}

impl std::error::Error for ImageError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.problem)
    }
}

/// What a part of an image is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The index of a layout, or one that it names.
    Index,
    /// A manifest.
    Manifest,
    /// The config.
    Config,
    /// A layer: its number from the bottom, counted from 1.
    Layer(usize),
    /// The list in a docker archive.
    SavedList,
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index => formatter.write_str("the index"),
            Self::Manifest => formatter.write_str("the manifest"),
            Self::Config => formatter.write_str("the config"),
            Self::Layer(number) => write!(formatter, "layer {number}"),
            Self::SavedList => formatter.write_str("manifest.json"),
        }
    }
}

/// The fault of an image.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageProblem {
    /// There is no image.
    #[error("this is no {kind}: {missing} is missing; {remedy}")]
    NoImage {
        /// What should be there.
        kind: &'static str,
        /// The file that it lacks.
        missing: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// An archive is read as a tree of files, and is an image, which only its last name shows.
    #[error(
        "this stream is a container image, whose form is known at its end; say before that it is one (docker-archive:- or oci-archive:- on standard input), or take its files as they are (tar:/dev/stdin)"
    )]
    InStream,
    /// A whole image where one of its layers is wanted.
    #[error(
        "this is a container image, where the archive of one layer is wanted: name one of those in it, or take its files as they are (tar:FILE)"
    )]
    NotALayer,
    /// A part is not there.
    #[error("{role}, {name}, is missing; copy the image again, with all of its blobs")]
    Missing {
        /// Which part.
        role: Role,
        /// Its digest or its name in the archive.
        name: String,
    },
    /// A part cannot be read.
    #[error("cannot read {role}, {name}: {source}")]
    Read {
        /// Which part.
        role: Role,
        /// Its digest or its name in the archive.
        name: String,
        /// Why not.
        source: io::Error,
    },
    /// A blob has another length than its descriptor says.
    #[error(
        "{role}, blob {digest}, has {found} bytes and should have {declared}; it is truncated or damaged, copy the image again"
    )]
    Size {
        /// Which part.
        role: Role,
        /// The digest of the blob.
        digest: Digest,
        /// Bytes that its descriptor says.
        declared: u64,
        /// Bytes it has.
        found: u64,
    },
    /// A blob has another digest than its name.
    #[error("{role}, blob {declared}, has the digest {found}; it is damaged, copy the image again")]
    Digest {
        /// Which part.
        role: Role,
        /// The digest that it should have.
        declared: Digest,
        /// The digest that it has.
        found: Digest,
    },
    /// The uncompressed bytes of a layer have another digest than the config says.
    #[error(
        "{role}, blob {blob}: uncompressed it has the digest {found}, and the config says diff_id {declared}; config and layers are not of one image, copy it again"
    )]
    DiffId {
        /// Which layer.
        role: Role,
        /// The digest or name of the blob.
        blob: String,
        /// The digest that the config says.
        declared: Digest,
        /// The digest that it has.
        found: Digest,
    },
    /// A document is no JSON, or not that of an image.
    #[error("{role} cannot be understood: {source}; the image is damaged, or no container image")]
    Document {
        /// Which document.
        role: Role,
        /// The place and the defect.
        source: serde_json::Error,
    },
    /// A document is larger than any that is read.
    #[error("{role} has {size} bytes, the most that is read is {limit}")]
    DocumentSize {
        /// Which document.
        role: Role,
        /// Its bytes.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// A blob of a type that is not known.
    #[error("{role} has the media type \"{}\", which is not known here; layers are tar archives, plain, gzip or zstd", media_type.escape_default())]
    MediaType {
        /// Which part.
        role: Role,
        /// Its media type.
        media_type: String,
    },
    /// An encrypted layer.
    #[error("{role} is encrypted (\"{}\"); decrypt the image first, for instance with skopeo copy --decryption-key", media_type.escape_default())]
    Encrypted {
        /// Which layer.
        role: Role,
        /// Its media type.
        media_type: String,
    },
    /// The config does not have as many digests as there are layers.
    #[error(
        "the config has {diff_ids} diff_ids for {layers} layers; config and layers are not of one image"
    )]
    LayerCount {
        /// Layers in the manifest.
        layers: usize,
        /// Digests in the config.
        diff_ids: usize,
    },
    /// A list or an index that names no image.
    #[error("{0} names no image; copy the image again")]
    Empty(Role),
    /// There is no image of this name, or a name is needed.
    #[error("{}", tag_fault(wanted.as_deref(), has))]
    Tags {
        /// The tag that was asked for.
        wanted: Option<String>,
        /// The tags there are.
        has: Vec<String>,
    },
    /// There is no image for the platform.
    #[error("there is no image for {wanted}; name another platform: {}", has.join(", "))]
    Platforms {
        /// The platform that was asked for.
        wanted: String,
        /// The platforms there are.
        has: Vec<String>,
    },
    /// Indexes in indexes, too deep or too many.
    #[error("its indexes are nested more than {0} deep, or name too many manifests")]
    Nesting(usize),
    /// The name of a whiteout without the name of what it hides.
    #[error("{role}: \"{}\" is a whiteout of nothing that can have a name; the layer is damaged", path.escape_ascii())]
    Whiteout {
        /// Which layer.
        role: Role,
        /// The path.
        path: Vec<u8>,
    },
    /// An entry below a whiteout.
    #[error("{role}: \"{}\" lies below the name of a whiteout, which is no directory", path.escape_ascii())]
    BelowWhiteout {
        /// Which layer.
        role: Role,
        /// The path.
        path: Vec<u8>,
    },
    /// A hard link to nothing that the layer or those below it have.
    #[error("{role}: \"{}\" is a hard link to \"{}\", which {reason}", path.escape_ascii(), target.escape_ascii())]
    Link {
        /// Which layer.
        role: Role,
        /// The link.
        path: Vec<u8>,
        /// The name that it links to.
        target: Vec<u8>,
        /// What is wrong with that.
        reason: &'static str,
    },
    /// An attribute by which overlayfs finds contents elsewhere.
    #[error("{role}: \"{}\" has the attribute {attribute}: it is a part of an overlay, not of a layer", path.escape_ascii())]
    OverlayAttribute {
        /// Which layer.
        role: Role,
        /// The path.
        path: Vec<u8>,
        /// Its attribute.
        attribute: String,
    },
    /// A label that no attribute can hold.
    #[error("the label \"{}\" is too long for an attribute; build without labels", name.escape_default())]
    Label {
        /// Its name.
        name: String,
    },
    /// More entries than are counted.
    #[error("the layers have more than {0} entries")]
    Entries(u32),
}

fn tag_fault(wanted: Option<&str>, has: &[String]) -> String {
    let there = || match has {
        [] => "the images there have no tags".to_owned(),
        has => format!("there are the tags {}", has.join(", ")),
    };
    match wanted {
        Some(wanted) => format!("there is no image \"{}\"; {}", wanted.escape_default(), there()),
        None => {
            let how = "there are several images, name one by its tag, as in oci:DIR:TAG";
            format!("{how}; {}", there())
        }
    }
}
