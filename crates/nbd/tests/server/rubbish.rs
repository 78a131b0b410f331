//! Clients that send rubbish cost their connection, and nothing else.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use crate::served::{Served, runs};

/// Bytes of rubbish.
const BYTES: usize = 4 << 20;

/// What a client says to get to the transmission phase, by the export's name.
fn chosen(name: &str) -> Vec<u8> {
    let mut bytes = 3_u32.to_be_bytes().to_vec();
    bytes.extend_from_slice(b"IHAVEOPT\0\0\0\x01");
    bytes.extend_from_slice(&(name.len() as u32).to_be_bytes());
    bytes.extend_from_slice(name.as_bytes());
    bytes
}

/// A request that is right but for its numbers.
fn request(random: &mut fastrand::Rng) -> Vec<u8> {
    let mut bytes = vec![0; 28];
    random.fill(&mut bytes);
    bytes[..4].copy_from_slice(&0x2560_9513_u32.to_be_bytes());
    let kind = [0, bytes[5] & 0x1f, 0, bytes[7] % 9];
    bytes[4..8].copy_from_slice(&kind);
    // Many of them short, so that they are carried out.
    bytes[16..20].fill(0);
    bytes[24] &= 1;
    bytes
}

/// It has no range, whatever its numbers are.
#[test]
fn a_flush_with_any_numbers_is_a_flush() {
    let served = Served::file(1 << 20);
    let mut client = UnixStream::connect(served.path("socket")).unwrap();
    let mut bytes = chosen("disk");
    bytes.extend_from_slice(&0x2560_9513_u32.to_be_bytes());
    bytes.extend_from_slice(b"\0\0\0\x03the name");
    bytes.extend_from_slice(&[0xff; 12]);
    client.write_all(&bytes).unwrap();
    // Behind the greeting, the size and the flags.
    let mut answer = [0; 18 + 10 + 16];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(answer[28..], *b"\x67\x44\x66\x98\0\0\0\0the name");
}

#[test]
fn rubbish_ends_a_connection_and_the_server_goes_on() {
    let served = Served::file(16 << 20);
    let mut random = fastrand::Rng::with_seed(7);
    let mut sent = 0;
    while sent < BYTES {
        let mut client = UnixStream::connect(served.path("socket")).unwrap();
        let kind = random.u32(..3);
        let mut bytes = if kind == 0 { Vec::new() } else { chosen("disk") };
        for _ in 0..random.u32(..64) {
            if kind == 2 {
                bytes.extend_from_slice(&request(&mut random));
            } else {
                let mut rubbish = vec![0; random.usize(..4096)];
                random.fill(&mut rubbish);
                bytes.extend_from_slice(&rubbish);
            }
        }
        sent += bytes.len().max(1);
        // The server may have ended it already.
        let _ = client.write_all(&bytes);
        let _ = client.shutdown(std::net::Shutdown::Write);
        let _ = client.read_to_end(&mut Vec::new());
    }
    assert_eq!(runs("nbdinfo", &["--size", &served.uri("disk")]).trim(), (16 << 20).to_string());
}
