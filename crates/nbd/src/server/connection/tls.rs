//! Certificates and keys of a server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use thiserror::Error;

/// What a server needs to encrypt: X.509 certificates.
#[derive(Clone, Debug)]
pub struct Tls {
    config: Arc<ServerConfig>,
    pub(crate) required: bool,
}

/// Why a server cannot encrypt.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file with certificates or a key cannot be used.
    #[error("cannot use {path}: {reason}")]
    File {
        /// The file.
        path: PathBuf,
        /// Words on it.
        reason: String,
    },
    /// They do not go together.
    #[error("the certificates in {directory} cannot be used: {reason}")]
    Certificates {
        /// The directory.
        directory: PathBuf,
        /// Words on it.
        reason: String,
    },
}

impl Tls {
    /// From a directory with `server-cert.pem` and `server-key.pem`; with `verify_peer` also
    /// `ca-cert.pem`, by which the certificates of clients must be signed. If not `required`,
    /// clients may do without.
    ///
    /// # Errors
    /// Files that are missing or do not go together.
    pub fn from_directory(
        directory: &Path,
        verify_peer: bool,
        required: bool,
    ) -> Result<Self, TlsError> {
        let unusable = |error: &dyn std::fmt::Display| TlsError::Certificates {
            directory: directory.to_owned(),
            reason: error.to_string(),
        };
        let chain = certificates(&directory.join("server-cert.pem"))?;
        let path = directory.join("server-key.pem");
        let key = PrivateKeyDer::from_pem_file(&path)
            .map_err(|error| TlsError::File { path, reason: error.to_string() })?;
        let provider = Arc::new(default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(&error))?;
        let builder = if verify_peer {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(&directory.join("ca-cert.pem"))? {
                roots.add(certificate).map_err(|error| unusable(&error))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().map_err(|error| unusable(&error))?)
        } else {
            builder.with_no_client_auth()
        };
        let config = builder.with_single_cert(chain, key).map_err(|error| unusable(&error))?;
        Ok(Self { config: Arc::new(config), required })
    }

    pub(crate) fn session(&self) -> Result<ServerConnection, rustls::Error> {
        ServerConnection::new(Arc::clone(&self.config))
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let unusable = |reason: String| TlsError::File { path: path.to_owned(), reason };
    let found = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unusable(error.to_string()))?;
    if found.is_empty() {
        return Err(unusable("there is no certificate in it".into()));
    }
    Ok(found)
}
