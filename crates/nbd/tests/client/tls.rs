//! Encrypted connections: certificates that are believed, and others.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use undercroft_block::testing::conformance::check;
use undercroft_block::{BlockDevice, MemoryDevice, SECTOR_SIZE, Sector, read_buffer, write_all_at};
use undercroft_judges::nbd::NbdServer;
use undercroft_nbd::client;
use undercroft_nbd::protocol::Uri;
use undercroft_nbd::server::{self, Export, Listener, Server, Settings};

use crate::{chain, device, open};

fn openssl(home: &Path, arguments: &str) {
    let mut command = Command::new("openssl");
    let output = command.args(arguments.split(' ')).current_dir(home).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Makes an authority and certificates of a server, for `localhost`, and of a client.
fn certificates(home: &Path) {
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
    let authority =
        format!("req -x509 {key} -keyout ca-key.pem -out ca-cert.pem -subj /CN=authority -days 2");
    openssl(home, &authority);
    for (name, usage) in [("server", "serverAuth"), ("client", "clientAuth")] {
        let request = format!(
            "req {key} -keyout {name}-key.pem -out {name}.csr -subj /CN={name} \
             -addext subjectAltName=DNS:localhost -addext extendedKeyUsage={usage}"
        );
        openssl(home, &request);
        let sign = format!(
            "x509 -req -in {name}.csr -CA ca-cert.pem -CAkey ca-key.pem -CAcreateserial \
             -copy_extensions copy -days 2 -out {name}-cert.pem"
        );
        openssl(home, &sign);
    }
}

fn server(home: &Path, bytes: u64) -> NbdServer {
    let certificates = format!("--tls-certificates={}", home.display());
    let size = bytes.to_string();
    NbdServer::nbdkit(&["--tls=require", "--tls-verify-peer", &certificates, "memory", &size])
        .unwrap()
}

/// The URI with TLS.
fn encrypted(server: &NbdServer, parameters: &[&str]) -> String {
    server.uri("", parameters).replacen("nbd+unix", "nbds+unix", 1)
}

#[test]
fn encrypted_connections_conform() {
    let home = tempfile::tempdir().unwrap();
    certificates(home.path());
    let servers = std::cell::RefCell::new(Vec::new());
    let directory = format!("tls-certificates={}", home.path().display());
    check(&|capacity: Sector| {
        let server = server(home.path(), capacity.0 * SECTOR_SIZE);
        let device = device(&encrypted(&server, &[&directory]));
        servers.borrow_mut().push(server);
        device
    });
}

#[test]
fn what_is_not_believed_is_refused() {
    let (home, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    certificates(home.path());
    certificates(other.path());
    let server = server(home.path(), 1 << 20);
    let problem = |uri: &str| {
        chain(&client::open(&Uri::parse(uri).unwrap(), true, None).map(drop).unwrap_err())
    };
    let plain = problem(&server.uri("", &[]));
    assert!(plain.contains("write nbds:// instead"), "{plain}");
    let directory = |home: &Path| format!("tls-certificates={}", home.display());
    let foreign = problem(&encrypted(&server, &[&directory(other.path())]));
    let refused = "no TLS with the server of";
    assert!(
        foreign.starts_with(refused) && foreign.contains("invalid peer certificate"),
        "{foreign}"
    );
    let right = directory(home.path());
    let name = problem(&encrypted(&server, &[&right, "tls-hostname=example.org"]));
    assert!(name.contains("example.org") || name.contains("NotValidForName"), "{name}");
    let missing = problem(&encrypted(&server, &["tls-certificates=/nonexistent"]));
    assert!(missing.contains("/nonexistent/ca-cert.pem"), "{missing}");
    // The server wants to know the client as well.
    std::fs::remove_file(other.path().join("client-cert.pem")).unwrap();
    let stranger = problem(&encrypted(&server, &[&directory(other.path()), "tls-verify-peer=0"]));
    assert!(stranger.contains("ertificate"), "{stranger}");
    device(&encrypted(&server, &[&right]));
}

/// Our own server, for our client and for libnbd (GnuTLS).
#[test]
fn a_server_of_our_own_encrypts_for_clients_with_certificates() {
    let (home, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    certificates(home.path());
    certificates(other.path());
    let tls = server::Tls::from_directory(home.path(), true, true).unwrap();
    let listener = Listener::tcp("localhost:0").unwrap();
    let port = listener.port().unwrap().unwrap();
    let memory: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(1 << 20));
    let settings = Settings { tls: Some(tls), ..Settings::default() };
    let exports = vec![Export::new("disk", memory)];
    let served = Server::start(vec![listener], exports, settings).unwrap();
    let uri = |scheme: &str, home: &Path| {
        format!("{scheme}://localhost:{port}/disk?tls-certificates={}", home.display())
    };

    let right = uri("nbds", home.path());
    let encrypted = open(&right);
    // More than a record of TLS, and more than a socket takes at a time.
    let bytes: Vec<u8> = (0..1 << 20).map(|place: u32| (place / 509) as u8).collect();
    write_all_at(&encrypted, Sector(0), &bytes).unwrap();
    assert!(*read_buffer(&encrypted, Sector(0), bytes.len()).unwrap() == *bytes);
    let output = Command::new("nbdinfo").args(["--size", &right]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "1048576", "{said}");

    let problem = |uri: &str| {
        chain(&client::open(&Uri::parse(uri).unwrap(), true, None).map(drop).unwrap_err())
    };
    let plain = problem(&format!("nbd://localhost:{port}/disk"));
    assert!(plain.contains("write nbds:// instead"), "{plain}");
    let foreign = problem(&uri("nbds", other.path()));
    assert!(foreign.contains("invalid peer certificate"), "{foreign}");
    // A client of another authority that believes any server.
    let unknown = problem(&format!("{}&tls-verify-peer=0", uri("nbds", other.path())));
    assert!(unknown.contains("ertificate"), "{unknown}");
    drop(encrypted);
    served.stop().unwrap();
}
