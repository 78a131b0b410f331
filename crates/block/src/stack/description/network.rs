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
const SCHEMES: [&str; 4] = ["nbd:", "nbds:", "nbd+", "nbds+"];

/// A device behind a network, by the URI of its export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkLeaf {
    /// Begins with `nbd://`, `nbds://`, `nbd+unix://` or `nbds+unix://`; or with another form, which its client
    /// refuses.
    pub uri: String,
}

/// Opens a device behind a network.
pub type OpenNetwork =
    fn(&NetworkLeaf, LeafOptions) -> Result<Arc<dyn BlockDevice>, Box<dyn Error + Send + Sync>>;

static OPENER: OnceLock<OpenNetwork> = OnceLock::new();

/// Says how devices behind a network are opened, for the whole process. The first call counts.
pub fn register_network(open: OpenNetwork) {
    let _ = OPENER.set(open);
}

impl NetworkLeaf {
    /// The device that `text` names, if it is a URI.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let begins = |scheme: &&str| {
            text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
                && (!scheme.ends_with('+') || text.contains("://"))
        };
        SCHEMES.iter().any(begins).then(|| Self { uri: text.to_owned() })
    }

    /// Opens the device.
    ///
    /// # Errors
    /// It cannot be opened, or this process has no client for it.
    pub fn open(&self, options: LeafOptions) -> Result<Arc<dyn BlockDevice>, StackError> {
        let Some(open) = OPENER.get() else {
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
