//! Servers that send something all the time and never what is asked: the limit is one of the whole.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};
use tempfile::TempDir;
use undercroft_block::{BlockDevice, Sector, read_buffer};
use undercroft_nbd::client::{self, ClientError};
use undercroft_nbd::protocol::{
    BASE_ALLOCATION, ChunkHeader, ChunkKind, Dialect, Export, Greeting, HandshakeFlags, Info,
    OptionCode, OptionError, OptionHeader, OptionReply, OptionReplyHeader, ReplyFlags, Request,
    SimpleReply, StatusChunk, StatusExtent, TransmissionFlags, Uri,
};

/// Does not wait to connect.
const NONBLOCK: SocketFlags = SocketFlags::NONBLOCK;

/// Far more than the limit, for machines that do much else.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server whose clients all get `talk`.
fn liar(talk: fn(UnixStream) -> std::io::Result<()>) -> (TempDir, Uri) {
    let home = tempfile::tempdir().unwrap();
    let socket = home.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            // It ends with its client.
            thread::spawn(move || talk(client));
        }
    });
    let uri = format!("nbd+unix:///?socket={}&x-timeout=1s", socket.display());
    (home, uri.parse().unwrap())
}

/// Opens the export, which fails at the limit.
fn fails(uri: &Uri) -> String {
    let started = Instant::now();
    let error: ClientError = client::open(uri, true, None).map(drop).unwrap_err();
    assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
    error.to_string()
}

/// A byte now and then, for minutes.
fn trickle(mut client: &UnixStream, bytes: &[u8]) -> std::io::Result<()> {
    for byte in bytes.iter().cycle().take(5_000) {
        client.write_all(&[*byte])?;
        thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

fn greet(mut client: &UnixStream) -> std::io::Result<()> {
    client.write_all(&Greeting { flags: HandshakeFlags::all() }.encode())?;
    client.read_exact(&mut [0; 4])
}

fn option(mut client: &UnixStream) -> std::io::Result<OptionCode> {
    let mut header = [0; 16];
    client.read_exact(&mut header)?;
    let header = OptionHeader::decode(&header).unwrap();
    client.read_exact(&mut vec![0; header.length as usize])?;
    Ok(header.code)
}

fn reply(
    mut client: &UnixStream,
    code: OptionCode,
    replies: &[OptionReply],
) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    for reply in replies {
        reply.encode(code, &mut bytes).unwrap();
    }
    client.write_all(&bytes)
}

fn unsupported() -> OptionReply {
    OptionReply::Error { error: OptionError::UNSUPPORTED, message: String::new() }
}

/// No liar: it is old.
#[test]
fn a_server_that_only_knows_names_is_used() {
    let (_home, uri) = liar(|client| {
        greet(&client)?;
        loop {
            let code = option(&client)?;
            if code == OptionCode::EXPORT_NAME {
                break;
            }
            reply(&client, code, &[unsupported()])?;
        }
        let export = Export { size: 64 << 20, flags: TransmissionFlags::HAS_FLAGS };
        (&client).write_all(&export.encode())?;
        let mut request = vec![0; Dialect::Simple.request_length()];
        (&client).read_exact(&mut request)?;
        let request = Request::decode(Dialect::Simple, &request).unwrap();
        let mut answer = Vec::new();
        SimpleReply { error: None, cookie: request.cookie }.encode(&mut answer);
        answer.resize(answer.len() + 512, request.offset as u8);
        (&client).write_all(&answer)?;
        (&client).read_exact(&mut [0; 28])
    });
    let device = client::open(&uri, true, None).unwrap();
    assert_eq!(device.capacity().0, (64 << 20) / 512);
    assert!(read_buffer(&device, Sector(0), 512).unwrap().iter().all(|byte| *byte == 0));
}

#[test]
fn words_of_a_server_do_not_reach_a_terminal_as_they_are() {
    let (_home, uri) = liar(|client| {
        greet(&client)?;
        loop {
            let code = option(&client)?;
            let message = "\x1b[2J\nerror: all is well".to_owned();
            let error = OptionReply::Error { error: OptionError::POLICY, message };
            reply(&client, code, &[error])?;
        }
    });
    let text = fails(&uri);
    assert!(text.contains("(\\u{1b}[2J\\nerror: all is well)"), "{text}");
}

#[test]
fn a_greeting_of_a_byte_now_and_then() {
    let (_home, uri) = liar(|client| trickle(&client, b"NBDMAGICIHAVEOPT\0\x03"));
    let text = fails(&uri);
    assert!(text.contains("does not answer: timed out"), "{text}");
}

#[test]
fn an_answer_to_an_option_of_a_byte_now_and_then() {
    let (_home, uri) = liar(|client| {
        greet(&client)?;
        let header = OptionReplyHeader { option: option(&client)?, kind: 3, length: 65_536 };
        (&client).write_all(&header.encode())?;
        trickle(&client, b"x")
    });
    assert!(fails(&uri).contains("does not answer: timed out"));
}

#[test]
fn answers_to_an_option_without_end() {
    let (_home, uri) = liar(|client| {
        greet(&client)?;
        let code = option(&client)?;
        loop {
            reply(&client, code, &[OptionReply::Unknown(77)])?;
            thread::sleep(Duration::from_millis(1));
        }
    });
    assert!(fails(&uri).contains("does not answer: timed out"));
}

/// Each comes at once, and none is the last.
#[test]
fn chunks_of_extents_without_end() {
    let (_home, uri) = liar(|client| {
        let flags = TransmissionFlags::HAS_FLAGS;
        greet(&client)?;
        loop {
            let code = option(&client)?;
            let replies = match code {
                OptionCode::STRUCTURED_REPLY => vec![OptionReply::Ack],
                OptionCode::SET_META_CONTEXT => {
                    let context = OptionReply::MetaContext { id: 9, name: BASE_ALLOCATION.into() };
                    vec![context, OptionReply::Ack]
                }
                OptionCode::GO => {
                    let export = Export { size: 64 << 20, flags };
                    vec![OptionReply::Info(Info::Export(export)), OptionReply::Ack]
                }
                _ => vec![unsupported()],
            };
            reply(&client, code, &replies)?;
            if code == OptionCode::GO {
                break;
            }
        }
        let mut request = vec![0; Dialect::Structured.request_length()];
        (&client).read_exact(&mut request)?;
        let cookie = Request::decode(Dialect::Structured, &request).unwrap().cookie;
        let extents = vec![StatusExtent { length: 1, flags: 0 }];
        let mut payload = Vec::new();
        StatusChunk { context: 9, extents }.encode(Dialect::Structured, &mut payload).unwrap();
        let (kind, flags) = (ChunkKind::BlockStatus, ReplyFlags::empty());
        let length = payload.len() as u64;
        let mut chunk = Vec::new();
        ChunkHeader { flags, kind, cookie, offset: 0, length }
            .encode(Dialect::Structured, &mut chunk)
            .unwrap();
        chunk.extend_from_slice(&payload);
        loop {
            (&client).write_all(&chunk.repeat(100))?;
        }
    });
    assert!(fails(&uri).contains("does not answer: timed out"));
}

/// Its queue of clients is full.
#[test]
fn a_server_that_takes_no_clients() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("socket");
    let address = SocketAddrUnix::new(&path).unwrap();
    let socket = || socket_with(AddressFamily::UNIX, SocketType::STREAM, NONBLOCK, None).unwrap();
    let listener = socket();
    bind(&listener, &address).unwrap();
    listen(&listener, 0).unwrap();
    let mut waiting = Vec::new();
    while waiting.len() < 100 {
        waiting.push(socket());
        if connect(waiting.last().unwrap(), &address).is_err() {
            break;
        }
    }
    let uri = format!("nbd+unix:///?socket={}&x-timeout=1s", path.display());
    let text = fails(&uri.parse().unwrap());
    assert!(text.starts_with("cannot connect to") && text.ends_with("timed out"), "{text}");
}
