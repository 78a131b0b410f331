//! Messages of the NBD protocol, as a server and as a client decode them.
//!
//! What is decoded is encoded again and decoded: both sides must mean the same.

use undercroft_nbd::protocol::{
    ChunkKind, ClientFlags, ClientOption, Dialect, ErrorChunk, Greeting, Hole, OptionCode,
    OptionReply, OptionReplyHeader, ReplyHeader, Request, StatusChunk, StatusFilter, Uri,
};

use crate::input::Input;

fn dialect(input: &mut Input<'_>) -> Dialect {
    [Dialect::Simple, Dialect::Structured, Dialect::Extended][usize::from(input.byte() % 3)]
}

/// What a server reads, and the text of URIs.
pub(crate) fn requests(input: &[u8]) {
    let mut input = Input(input);
    if let Some(bytes) = input.0.first_chunk() {
        let _ = ClientFlags::decode(*bytes);
    }
    let code = OptionCode(u32::from(input.byte() % 16));
    if let Ok(Some(option)) = ClientOption::decode(code, input.0) {
        let mut bytes = Vec::new();
        option.encode(&mut bytes).expect("what was decoded has lengths that fit");
        let data = &bytes[undercroft_nbd::protocol::OPTION_HEADER..];
        assert_eq!(ClientOption::decode(code, data), Ok(Some(option)), "not read as written");
    }
    let dialect = dialect(&mut input);
    if let Ok(request) = Request::decode(dialect, input.0) {
        let mut bytes = Vec::new();
        request.encode(dialect, &mut bytes).expect("what was decoded has lengths that fit");
        assert_eq!(Request::decode(dialect, &bytes), Ok(request), "not read as written");
    }
    if let Ok(filter) = StatusFilter::decode(input.0) {
        let mut bytes = Vec::new();
        filter.encode(&mut bytes);
        assert_eq!(bytes, input.0, "not written as read");
    }
    if let Ok(uri) = Uri::parse(&String::from_utf8_lossy(input.0)) {
        assert_eq!(Uri::parse(&uri.to_string()), Ok(uri), "not read as written");
    }
}

/// What a client reads.
pub(crate) fn answers(input: &[u8]) {
    let mut input = Input(input);
    if let Some(bytes) = input.0.first_chunk() {
        let _ = Greeting::decode(bytes);
    }
    if let Some(bytes) = input.0.first_chunk() {
        let _ = OptionReplyHeader::decode(bytes);
    }
    let (kind, error) = (u32::from(input.byte() % 8), u32::from(input.byte() % 2) << 31);
    if let Ok(reply) = OptionReply::decode(kind | error, input.0) {
        let mut bytes = Vec::new();
        reply.encode(OptionCode::GO, &mut bytes).expect("what was decoded has lengths that fit");
        let data = &bytes[undercroft_nbd::protocol::OPTION_REPLY_HEADER..];
        assert_eq!(OptionReply::decode(kind | error, data), Ok(reply), "not read as written");
    }
    let dialect = dialect(&mut input);
    if let Ok(Some((header, length))) = ReplyHeader::decode(dialect, input.0) {
        let mut bytes = Vec::new();
        match header {
            ReplyHeader::Simple(reply) => reply.encode(&mut bytes),
            ReplyHeader::Chunk(chunk) => {
                chunk.encode(dialect, &mut bytes).expect("what was decoded has lengths that fit");
            }
        }
        let again = ReplyHeader::decode(dialect, &bytes);
        assert_eq!(again, Ok(Some((header, length))), "not read as written");
    }
    let _ = Hole::decode(input.0);
    for kind in [ChunkKind::Error, ChunkKind::ErrorOffset, ChunkKind::Unknown(0x8004)] {
        let _ = ErrorChunk::decode(kind, input.0);
    }
    let kind = StatusChunk::kind(dialect);
    if let Ok(chunk) = StatusChunk::decode(kind, input.0) {
        let mut bytes = Vec::new();
        chunk.encode(dialect, &mut bytes).expect("what was decoded has numbers that fit");
        assert_eq!(bytes, input.0, "not written as read");
    }
}
