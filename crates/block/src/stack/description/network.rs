//! Devices behind a network at the bottom of a description.
//!
//! This crate has no client of a network. A crate that has one says how its devices are opened
//! ([`register_network`]), as a driver does in a kernel, and all descriptions have them.

use std::error::Error;
use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::device::BlockDevice;
use crate::stack::StackError;

use super::leaf_options::LeafOptions;
use super::quotes::quoted;

/// Beginnings of texts that name a device behind a network, also in forms that its client refuses by name
/// instead of a file that is not there.
const EXPORTS: [&str; 4] = ["nbd:", "nbds:", "nbd+", "nbds+"];

/// Beginnings of texts that name an object, or an image in chunks in a store of objects.
const OBJECTS: [&str; 6] = ["s3://", "gs://", "az://", "http://", "https://", "file://"];

/// What a URI names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkKind {
    /// An export of a server of network block devices.
    Export,
    /// An object in a store, or behind HTTP; or an image whose chunks are objects.
    Object,
}

/// A device behind a network, by its URI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkLeaf {
    /// Begins with `nbd://`, `nbds://`, `nbd+unix://`, `nbds+unix://` (an export), or with `s3://`, `gs://`,
    /// `az://`, `https://`, `http://`, `file://` (an object); or with another form, which its client
    /// refuses.
    pub uri: String,
}

/// Opens a device behind a network.
pub type OpenNetwork =
    fn(&NetworkLeaf, LeafOptions) -> Result<Arc<dyn BlockDevice>, Box<dyn Error + Send + Sync>>;

static EXPORT_OPENER: OnceLock<OpenNetwork> = OnceLock::new();
static OBJECT_OPENER: OnceLock<OpenNetwork> = OnceLock::new();

impl NetworkKind {
    const fn opener(self) -> &'static OnceLock<OpenNetwork> {
        match self {
            Self::Export => &EXPORT_OPENER,
            Self::Object => &OBJECT_OPENER,
        }
    }
}

/// Says how devices of a kind behind a network are opened, for the whole process. The first call for each
/// kind counts.
pub fn register_network(kind: NetworkKind, open: OpenNetwork) {
    let _ = kind.opener().set(open);
}

fn begins(text: &str, scheme: &str) -> bool {
    text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        && (!scheme.ends_with('+') || text.contains("://"))
}

impl NetworkLeaf {
    /// The device that `text` names, if it is a URI.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut schemes = EXPORTS.iter().chain(&OBJECTS);
        schemes.any(|scheme| begins(text, scheme)).then(|| Self { uri: text.to_owned() })
    }

    /// What the URI names.
    #[must_use]
    pub fn kind(&self) -> NetworkKind {
        match OBJECTS.iter().any(|scheme| begins(&self.uri, scheme)) {
            true => NetworkKind::Object,
            false => NetworkKind::Export,
        }
    }

    /// Opens the device.
    ///
    /// # Errors
    /// It cannot be opened, or this process has no client for it.
    pub fn open(&self, options: LeafOptions) -> Result<Arc<dyn BlockDevice>, StackError> {
        let Some(open) = self.kind().opener().get() else {
            return Err(StackError::NoClient { uri: self.uri.as_str().into() });
        };
        open(self, options).map_err(StackError::Network)
    }

    /// As it stands inside parentheses.
    pub(super) fn nested(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.uri.contains(['(', ')', ',', '"', ' ']) {
            f.write_str(&quoted(&self.uri))
        } else {
            f.write_str(&self.uri)
        }
    }
}
