//! Messages against bytes put together by the protocol text, and against any bytes.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Bytes from hexadecimal digits.
fn hex(digits: &str) -> Vec<u8> {
    let digits = digits.split_whitespace().collect::<String>();
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}

#[test]
fn greeting_is_that_of_the_text() {
    let bytes = hex("4e42444d41474943 49484156454f5054 0003");
    let greeting = Greeting { flags: HandshakeFlags::all() };
    assert_eq!(greeting.encode().as_slice(), bytes);
    assert_eq!(Greeting::decode(&bytes.try_into().unwrap()), Ok(greeting));
    let old = hex("4e42444d41474943 0000420281861253 0003");
    let error = Greeting::decode(&old.try_into().unwrap()).unwrap_err();
    assert_eq!(error, ProtocolError::OldStyle);
}

#[test]
fn client_flags_that_are_not_known_are_refused() {
    assert_eq!(ClientFlags::decode([0, 0, 0, 3]), Ok(ClientFlags::all()));
    let error = ProtocolError::Value { what: "client flags", found: 4 };
    assert_eq!(ClientFlags::decode([0, 0, 0, 4]), Err(error));
}

fn option(digits: &str, wanted: &ClientOption) {
    let bytes = hex(digits);
    let mut encoded = Vec::new();
    wanted.encode(&mut encoded).unwrap();
    assert_eq!(encoded, bytes, "{wanted:?}");
    let (header, data) = bytes.split_first_chunk().unwrap();
    let header = OptionHeader::decode(header).unwrap();
    assert_eq!(header.length as usize, data.len());
    assert_eq!(ClientOption::decode(header.code, data).unwrap().as_ref(), Some(wanted));
}

#[test]
fn options_are_those_of_the_text() {
    let magic = "49484156454f5054";
    let request = || InfoRequest { export: "ab".into(), wanted: vec![InfoKind::BLOCK_SIZE] };
    let contexts = || MetaContextRequest { export: "a".into(), queries: vec!["b:".into()] };
    let contexts_data = "0000000f 00000001 61 00000001 00000002 623a";
    for (digits, wanted) in [
        ("00000001 00000002 6162", ClientOption::ExportName("ab".into())),
        ("00000002 00000000", ClientOption::Abort),
        ("00000003 00000000", ClientOption::List),
        ("00000005 00000000", ClientOption::StartTls),
        ("00000006 0000000a 00000002 6162 0001 0003", ClientOption::Info(request())),
        ("00000007 0000000a 00000002 6162 0001 0003", ClientOption::Go(request())),
        ("00000008 00000000", ClientOption::StructuredReply),
        (&format!("00000009 {contexts_data}"), ClientOption::ListMetaContext(contexts())),
        (&format!("0000000a {contexts_data}"), ClientOption::SetMetaContext(contexts())),
        ("0000000b 00000000", ClientOption::ExtendedHeaders),
    ] {
        option(&format!("{magic} {digits}"), &wanted);
    }
}

#[test]
fn options_with_defects_are_refused() {
    let decode = |code, digits| ClientOption::decode(code, &hex(digits));
    let trailing = ProtocolError::Trailing { what: "option without data", left: 1 };
    assert_eq!(decode(OptionCode::LIST, "00"), Err(trailing));
    assert_eq!(decode(OptionCode::ABORT, "00"), Ok(Some(ClientOption::Abort)));
    assert_eq!(decode(OptionCode(4), "00"), Ok(None));
    for (code, digits) in [
        (OptionCode::GO, "00000003 6162 0000"),
        (OptionCode::GO, "ffffffff 6162 0000"),
        (OptionCode::GO, "00000002 6162 0001"),
        (OptionCode::GO, "00000002 6162 0000 00"),
        (OptionCode::GO, "00000002 6100 0000"),
        (OptionCode::SET_META_CONTEXT, "00000001 61 ffffffff"),
        (OptionCode::SET_META_CONTEXT, "00000001 61 00000001 00000002 62"),
        (OptionCode::EXPORT_NAME, "ff"),
    ] {
        decode(code, digits).unwrap_err();
    }
    let long = ClientOption::decode(OptionCode::EXPORT_NAME, &[b'a'; MAX_STRING + 1]).unwrap_err();
    assert!(matches!(long, ProtocolError::TooLong { length: 4097, limit: 4096, .. }), "{long}");
}

#[test]
fn answers_to_options_are_those_of_the_text() {
    let export = Export {
        size: 0x0123_4567_89ab_cdef,
        flags: TransmissionFlags::HAS_FLAGS | TransmissionFlags::READ_ONLY,
    };
    let sizes = BlockSizes { minimum: 512, preferred: 4096, maximum: 1 << 25 };
    let error = |error, message: &str| OptionReply::Error { error, message: message.into() };
    for (digits, wanted) in [
        ("00000001 00000000", OptionReply::Ack),
        (
            "00000002 00000006 00000001 61 62",
            OptionReply::Server { name: "a".into(), description: "b".into() },
        ),
        ("00000003 0000000c 0000 0123456789abcdef 0003", OptionReply::Info(Info::Export(export))),
        ("00000003 00000003 0001 61", OptionReply::Info(Info::Name("a".into()))),
        ("00000003 00000003 0002 61", OptionReply::Info(Info::Description("a".into()))),
        (
            "00000003 0000000e 0003 00000200 00001000 02000000",
            OptionReply::Info(Info::BlockSize(sizes)),
        ),
        ("00000004 00000005 00000007 61", OptionReply::MetaContext { id: 7, name: "a".into() }),
        ("80000001 00000000", error(OptionError::UNSUPPORTED, "")),
        ("80000002 00000000", error(OptionError::POLICY, "")),
        ("80000003 00000001 61", error(OptionError::INVALID, "a")),
        ("80000004 00000000", error(OptionError::PLATFORM, "")),
        ("80000005 00000000", error(OptionError::TLS_REQUIRED, "")),
        ("80000006 00000000", error(OptionError::UNKNOWN, "")),
        ("80000007 00000000", error(OptionError::SHUTDOWN, "")),
        ("80000008 00000000", error(OptionError::BLOCK_SIZE_REQUIRED, "")),
        ("80000009 00000000", error(OptionError::TOO_BIG, "")),
        ("8000000a 00000000", error(OptionError::EXTENDED_HEADERS_REQUIRED, "")),
    ] {
        let bytes = hex(&format!("0003e889045565a9 00000007 {digits}"));
        let mut encoded = Vec::new();
        wanted.encode(OptionCode::GO, &mut encoded).unwrap();
        assert_eq!(encoded, bytes, "{wanted:?}");
        let (header, data) = bytes.split_first_chunk().unwrap();
        let header = OptionReplyHeader::decode(header).unwrap();
        assert_eq!((header.option, header.length as usize), (OptionCode::GO, data.len()));
        assert_eq!(OptionReply::decode(header.kind, data), Ok(wanted));
    }
    assert_eq!(OptionReply::decode(9, b"x"), Ok(OptionReply::Unknown(9)));
}

#[test]
fn block_sizes_obey_the_text() {
    let decode = |minimum: u32, preferred: u32, maximum: u32| {
        BlockSizes::decode(&BlockSizes { minimum, preferred, maximum }.encode())
    };
    decode(1, 512, u32::MAX).unwrap();
    decode(1 << 16, 1 << 16, 1 << 16).unwrap();
    for (minimum, preferred, maximum) in
        [(0, 4096, 4096), (3, 4096, 4096), (1 << 17, 1 << 17, 1 << 20), (1, 256, 4096)]
            .into_iter()
            .chain([(4096, 512, 4096), (1, 4095, 4096), (1, 4096, 4095)])
    {
        decode(minimum, preferred, maximum).unwrap_err();
    }
}

#[test]
fn requests_are_those_of_the_text() {
    let request = |command, flags, length| Request {
        command,
        flags,
        cookie: 0x1122_3344_5566_7788,
        offset: 0x99aa_bbcc_ddee_ff00,
        length,
    };
    let fua = CommandFlags::FUA;
    let payload = CommandFlags::PAYLOAD_LEN;
    let rest = "1122334455667788 99aabbccddeeff00";
    let commands = [
        Command::Read,
        Command::Write,
        Command::Disconnect,
        Command::Flush,
        Command::Trim,
        Command::Cache,
        Command::WriteZeroes,
        Command::BlockStatus,
        Command::Unknown(8),
    ];
    for (number, command) in commands.into_iter().enumerate() {
        for dialect in [Dialect::Simple, Dialect::Structured, Dialect::Extended] {
            let (flags, wanted, digits) = if dialect == Dialect::Extended {
                let digits = format!("21e41c71 0020 {number:04x} {rest} 0000000000000200");
                (payload, 512, digits)
            } else {
                let wanted = if command == Command::Write { 512 } else { 0 };
                (fua, wanted, format!("25609513 0001 {number:04x} {rest} 00000200"))
            };
            let request = request(command, flags, 512);
            let mut bytes = Vec::new();
            request.encode(dialect, &mut bytes).unwrap();
            assert_eq!(bytes, hex(&digits));
            assert_eq!(bytes.len(), dialect.request_length());
            assert_eq!(Request::decode(dialect, &bytes), Ok(request));
            assert_eq!(request.payload(dialect), wanted);
        }
    }
    let long = request(Command::Trim, fua, 1 << 32);
    assert_eq!(long.payload(Dialect::Extended), 0);
    long.encode(Dialect::Extended, &mut Vec::new()).unwrap();
    long.encode(Dialect::Structured, &mut Vec::new()).unwrap_err();
}

#[test]
fn a_filter_of_contexts_is_that_of_the_text() {
    let bytes = hex("0000000000001000 00000001 00000005");
    let filter = StatusFilter { length: 4096, contexts: vec![1, 5] };
    let mut encoded = Vec::new();
    filter.encode(&mut encoded);
    assert_eq!(encoded, bytes);
    assert_eq!(StatusFilter::decode(&bytes), Ok(filter));
    StatusFilter::decode(&bytes[..11]).unwrap_err();
}

#[test]
fn replies_are_those_of_the_text() {
    let mut bytes = Vec::new();
    SimpleReply { error: Some(WireError::NoSpace), cookie: 0x10 }.encode(&mut bytes);
    assert_eq!(bytes, hex("67446698 0000001c 0000000000000010"));
    let simple = SimpleReply { error: Some(WireError::NoSpace), cookie: 16 };
    for dialect in [Dialect::Simple, Dialect::Structured] {
        let found = ReplyHeader::decode(dialect, &bytes);
        assert_eq!(found, Ok(Some((ReplyHeader::Simple(simple), 16))));
        assert_eq!(ReplyHeader::decode(dialect, &bytes[..15]), Ok(None));
        assert_eq!(ReplyHeader::decode(dialect, &bytes[..3]), Ok(None));
    }
    ReplyHeader::decode(Dialect::Extended, &bytes).unwrap_err();

    for (number, kind) in [
        ("0000", ChunkKind::None),
        ("0001", ChunkKind::OffsetData),
        ("0002", ChunkKind::OffsetHole),
        ("0005", ChunkKind::BlockStatus),
        ("0006", ChunkKind::BlockStatusExtended),
        ("8001", ChunkKind::Error),
        ("8002", ChunkKind::ErrorOffset),
        ("8003", ChunkKind::Unknown(0x8003)),
    ] {
        assert_eq!(kind.is_error(), number.starts_with('8'));
        let cookie = "0000000000000010";
        for (dialect, digits, offset) in [
            (Dialect::Structured, format!("668e33ef 0001 {number} {cookie} 00000008"), 0),
            (
                Dialect::Extended,
                format!("6e8a278c 0001 {number} {cookie} 0000000000000200 0000000000000008"),
                512,
            ),
        ] {
            let header =
                ChunkHeader { flags: ReplyFlags::DONE, kind, cookie: 16, offset, length: 8 };
            let mut bytes = Vec::new();
            header.encode(dialect, &mut bytes).unwrap();
            assert_eq!(bytes, hex(&digits));
            assert_eq!(bytes.len(), dialect.chunk_length());
            let found = ReplyHeader::decode(dialect, &bytes);
            assert_eq!(found, Ok(Some((ReplyHeader::Chunk(header), bytes.len()))));
            header.encode(Dialect::Simple, &mut Vec::new()).unwrap_err();
        }
    }
}

#[test]
fn payloads_are_those_of_the_text() {
    let hole = Hole { offset: 512, length: 4096 };
    assert_eq!(hole.encode().as_slice(), hex("0000000000000200 00001000"));
    assert_eq!(Hole::decode(&hole.encode()), Ok(hole));
    Hole::decode(&hex("0000000000000200 00000000")).unwrap_err();

    let place = Some(512);
    for (digits, offset) in [("", None), ("0000000000000200", place)] {
        let bytes = hex(&format!("00000005 0002 6162 {digits}"));
        let chunk = ErrorChunk { error: WireError::Io, message: "ab".into(), offset };
        let mut encoded = Vec::new();
        chunk.encode(&mut encoded).unwrap();
        assert_eq!(encoded, bytes);
        assert_eq!(ErrorChunk::decode(chunk.kind(), &bytes), Ok(chunk));
    }
    ErrorChunk::decode(ChunkKind::Error, &hex("00000000 0000")).unwrap_err();
    ErrorChunk::decode(ChunkKind::Error, &hex("00000005 0003 6162")).unwrap_err();
    let unknown = ErrorChunk::decode(ChunkKind::Unknown(0x8009), &hex("000000ff 0000 01")).unwrap();
    assert_eq!(unknown.error, WireError::Invalid);

    let extents = vec![
        StatusExtent { length: 4096, flags: 0 },
        StatusExtent { length: 512, flags: (AllocationFlags::HOLE | AllocationFlags::ZERO).bits() },
    ];
    let chunk = StatusChunk { context: 7, extents };
    for (dialect, digits) in [
        (Dialect::Structured, "00000007 00001000 00000000 00000200 00000003"),
        (
            Dialect::Extended,
            "00000007 00000002 0000000000001000 0000000000000000 \
             0000000000000200 0000000000000003",
        ),
    ] {
        let mut encoded = Vec::new();
        chunk.encode(dialect, &mut encoded).unwrap();
        assert_eq!(encoded, hex(digits));
        let kind = StatusChunk::kind(dialect);
        assert_eq!(StatusChunk::decode(kind, &encoded).as_ref(), Ok(&chunk));
    }
    for (kind, digits) in [
        (ChunkKind::BlockStatus, "00000007"),
        (ChunkKind::BlockStatus, "00000007 00000000 00000000"),
        (ChunkKind::BlockStatus, "00000007 00001000 0000"),
        (ChunkKind::BlockStatusExtended, "00000007 00000002 0000000000001000 0000000000000000"),
    ] {
        StatusChunk::decode(kind, &hex(digits)).unwrap_err();
    }
}

#[test]
fn errors_have_the_numbers_of_the_text() {
    for (number, error) in [
        (1, WireError::NotPermitted),
        (5, WireError::Io),
        (12, WireError::NoMemory),
        (22, WireError::Invalid),
        (28, WireError::NoSpace),
        (75, WireError::Overflow),
        (95, WireError::NotSupported),
        (108, WireError::Shutdown),
    ] {
        assert_eq!((WireError::from_number(number), error.number()), (Some(error), number));
    }
    assert_eq!(WireError::from_number(0), None);
    assert_eq!(WireError::from_number(77), Some(WireError::Invalid));
}

fn tcp(host: &str, port: u16, export: &str) -> Uri {
    Uri::tcp(host, port, export)
}

#[test]
fn uris_are_those_of_the_text() {
    for (text, wanted) in [
        ("nbd://example.com/disk", tcp("example.com", 10809, "disk")),
        ("nbd+unix:///disk?socket=sock", Uri::unix("sock".as_ref(), "disk")),
        ("nbd://example.com/", tcp("example.com", 10809, "")),
        ("nbd://example.com", tcp("example.com", 10809, "")),
        ("nbd://example.com//disk", tcp("example.com", 10809, "/disk")),
        ("nbd://example.com/hello%20world", tcp("example.com", 10809, "hello world")),
        ("nbd://example.com:10810/export", tcp("example.com", 10810, "export")),
        ("nbd://[::1]:7/a", tcp("::1", 7, "a")),
        ("NBD://[::1]", tcp("::1", 10809, "")),
        ("nbd+unix:///?socket=%00/abstract", Uri::unix("\0/abstract".as_ref(), "")),
        ("nbds://h/x", Uri { tls: true, ..tcp("h", 10809, "x") }),
        (
            "nbds+unix://user@/x?socket=/s&tls-type=x509&tls-hostname=h&tls-verify-peer=0\
             &tls-certificates=/c%20d&x-a=b",
            Uri {
                tls: true,
                user: Some("user".into()),
                tls_hostname: Some("h".into()),
                tls_verify_peer: false,
                tls_certificates: Some("/c d".into()),
                experimental: vec![("x-a".into(), "b".into())],
                ..Uri::unix("/s".as_ref(), "x")
            },
        ),
    ] {
        assert_eq!(Uri::parse(text).as_ref(), Ok(&wanted), "{text}");
        assert_eq!(Uri::parse(&wanted.to_string()).as_ref(), Ok(&wanted), "{wanted}");
    }
}

#[test]
fn uris_with_defects_are_refused() {
    for (text, wanted) in [
        ("http://a/b", UriError::Scheme),
        ("disk.img", UriError::Scheme),
        ("nbd:///x", UriError::Host),
        ("nbd://h:99999/x", UriError::Port("99999".into())),
        ("nbd://[::1]x/", UriError::Port("x".into())),
        ("nbd://[::1/", UriError::Host),
        ("nbd://h/%2", UriError::Escape("%2".into())),
        ("nbd://h/%zz", UriError::Escape("%zz".into())),
        ("nbd://h/%+1", UriError::Escape("%+1".into())),
        ("nbd://h/%ff", UriError::Text("%ff".into())),
        ("nbd://h/a%00", UriError::Text("a%00".into())),
        ("nbd+unix:///x", UriError::Socket),
        ("nbd+unix:///x?socket=", UriError::Socket),
        ("nbd+unix://h/x?socket=s", UriError::UnixHost),
        ("nbd://h/x?socket=s", UriError::TcpSocket),
        ("nbd+unix:///x?socket=s&socket=t", UriError::Twice("socket")),
        ("nbd://h/x?color=red", UriError::Parameter("color".into())),
    ] {
        assert_eq!(Uri::parse(text), Err(wanted), "{text}");
    }
    for text in ["nbds://h/x?tls-type=psk", "nbds://h/x?tls-verify-peer=yes"] {
        assert!(matches!(Uri::parse(text), Err(UriError::Value { .. })), "{text}");
    }
}

proptest! {
    #[test]
    fn an_export_and_a_socket_of_any_name_survive_a_uri(
        export in "[^\0]{0,40}",
        socket in vec(any::<u8>(), 1..40),
    ) {
        use std::os::unix::ffi::OsStrExt as _;
        let socket = std::path::Path::new(std::ffi::OsStr::from_bytes(&socket));
        let uri = Uri::unix(socket, &export);
        prop_assert_eq!(Uri::parse(&uri.to_string()), Ok(uri));
    }

    #[test]
    fn any_bytes_are_answered(bytes in vec(any::<u8>(), 0..200), number in any::<u16>()) {
        for code in 0..13 {
            let _ = ClientOption::decode(OptionCode(code), &bytes);
        }
        for kind in (0..6).chain([1 << 31 | u32::from(number)]) {
            let _ = OptionReply::decode(kind, &bytes);
        }
        for dialect in [Dialect::Simple, Dialect::Structured, Dialect::Extended] {
            let _ = Request::decode(dialect, &bytes);
            let _ = ReplyHeader::decode(dialect, &bytes);
            let _ = StatusChunk::decode(StatusChunk::kind(dialect), &bytes);
        }
        let _ = ErrorChunk::decode(ChunkKind::Unknown(number), &bytes);
        let _ = StatusFilter::decode(&bytes);
        let _ = Uri::parse(&String::from_utf8_lossy(&bytes));
    }
}
