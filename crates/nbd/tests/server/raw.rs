//! Clients that send bytes as they like.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::served::Served;

/// The command to read.
pub(crate) const READ: u16 = 0;
/// The command to write.
pub(crate) const WRITE: u16 = 1;

/// A client without chunks that has named the export and read nothing.
pub(crate) fn unread(served: &Served) -> UnixStream {
    let mut client = UnixStream::connect(served.path("socket")).unwrap();
    client.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\x04disk").unwrap();
    client
}

/// A client without chunks, past the handshake.
pub(crate) fn client(served: &Served) -> UnixStream {
    let mut client = unread(served);
    client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    client.read_exact(&mut [0; 18 + 10]).unwrap();
    client
}

/// A request without its payload.
pub(crate) fn request(command: u16, cookie: u64, offset: usize, length: usize) -> Vec<u8> {
    let mut request = 0x2560_9513_u32.to_be_bytes().to_vec();
    request.extend_from_slice(&[0; 2]);
    request.extend_from_slice(&command.to_be_bytes());
    request.extend_from_slice(&cookie.to_be_bytes());
    request.extend_from_slice(&(offset as u64).to_be_bytes());
    request.extend_from_slice(&(length as u32).to_be_bytes());
    request
}

/// Cookie and error of the next answer, which is simple.
pub(crate) fn answer(client: &mut UnixStream) -> (u64, u32) {
    let mut head = [0; 16];
    client.read_exact(&mut head).unwrap();
    assert_eq!(head[..4], 0x6744_6698_u32.to_be_bytes());
    let error = u32::from_be_bytes(head[4..8].try_into().unwrap());
    (u64::from_be_bytes(head[8..].try_into().unwrap()), error)
}

/// Writes `data` and returns the error of the answer.
pub(crate) fn write(client: &mut UnixStream, cookie: u64, offset: usize, data: &[u8]) -> u32 {
    client.write_all(&request(WRITE, cookie, offset, data.len())).unwrap();
    client.write_all(data).unwrap();
    let (answered, error) = answer(client);
    assert_eq!(answered, cookie);
    error
}
