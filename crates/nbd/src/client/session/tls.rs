//! TLS: certificates from files, and who is trusted.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::client::error::ClientError;
use crate::protocol::{Transport, Uri};

/// Files in a directory of certificates; the names are those that libnbd and QEMU use.
const AUTHORITY: &str = "ca-cert.pem";
const CERTIFICATE: &str = "client-cert.pem";
const KEY: &str = "client-key.pem";

/// Where systems keep the authorities that everybody trusts.
const SYSTEM: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// What a client needs for TLS.
#[derive(Clone, Debug)]
pub(crate) struct Tls {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) name: ServerName<'static>,
}

impl Tls {
    /// What `uri` asks for; none if that is no TLS.
    pub(crate) fn of(uri: &Uri) -> Result<Option<Self>, ClientError> {
        if !uri.tls {
            return Ok(None);
        }
        let failed = |problem: String| ClientError::Tls { uri: uri.to_string(), problem };
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| failed(error.to_string()))?;
        let directory = uri.tls_certificates.as_deref();
        let builder = if uri.tls_verify_peer {
            builder.with_root_certificates(authorities(directory)?)
        } else {
            let anybody = Arc::new(Anybody(provider));
            builder.dangerous().with_custom_certificate_verifier(anybody)
        };
        let own = directory.filter(|directory| directory.join(CERTIFICATE).exists());
        let config = match own {
            None => builder.with_no_client_auth(),
            Some(directory) => {
                let certificates = certificates(&directory.join(CERTIFICATE))?;
                let key = directory.join(KEY);
                let read = PrivateKeyDer::from_pem_file(&key);
                let read = read.map_err(|error| wrong(&key, &error.to_string()))?;
                builder
                    .with_client_auth_cert(certificates, read)
                    .map_err(|error| wrong(&key, &error.to_string()))?
            }
        };
        let name = match (&uri.tls_hostname, &uri.transport) {
            (Some(name), _) => name.as_str(),
            (None, Transport::Tcp { host, .. }) => host.as_str(),
            (None, Transport::Unix(_)) => "localhost",
        };
        let name = ServerName::try_from(name.to_owned())
            .map_err(|_| failed(format!("{name} is no name of a host; write tls-hostname=NAME")))?;
        Ok(Some(Self { config: Arc::new(config), name }))
    }
}

/// The authorities whose certificates are believed.
fn authorities(directory: Option<&Path>) -> Result<RootCertStore, ClientError> {
    let path = match directory {
        Some(directory) => directory.join(AUTHORITY),
        None => {
            let found = SYSTEM.iter().map(Path::new).find(|path| path.exists());
            found.map(Path::to_owned).ok_or_else(|| {
                let problem = "no list of authorities; write tls-certificates=DIRECTORY";
                wrong(Path::new(SYSTEM[0]), problem)
            })?
        }
    };
    let mut store = RootCertStore::empty();
    let (added, _) = store.add_parsable_certificates(certificates(&path)?);
    if added == 0 {
        return Err(wrong(&path, "no certificate of an authority can be used"));
    }
    Ok(store)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ClientError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    read.map_err(|error| wrong(path, &error.to_string()))
}

fn wrong(path: &Path, problem: &str) -> ClientError {
    ClientError::Certificate { path: path.to_owned(), problem: problem.to_owned() }
}

/// Believes any certificate: `tls-verify-peer=0`. Signatures are checked all the same.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
