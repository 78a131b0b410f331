//! From a socket to an export: what both sides agree on before requests.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, IoSlice, Read};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::channel::{self, Receiver, Sender};
use super::socket::Socket;
use super::tls::Tls;
use crate::client::error::ClientError;
use crate::protocol::{
    BASE_ALLOCATION, BlockSizes, ClientFlags, ClientOption, Dialect, Export, Greeting, Info,
    InfoKind, InfoRequest, MAX_OPTION_DATA, MetaContextRequest, OPTION_REPLY_HEADER, OptionCode,
    OptionError, OptionReply, OptionReplyHeader, ProtocolError, TransmissionFlags, Uri, WRITER,
};

/// Most answers to one option: exports in a list.
const MAX_REPLIES: usize = 1 << 16;

/// One connection takes no longer to make.
const DIAL_LIMIT: Duration = Duration::from_secs(10);

/// How to reach an export.
#[derive(Clone, Debug)]
pub(crate) struct Dialer {
    pub(crate) uri: Uri,
    pub(crate) tls: Option<Tls>,
    /// How it names itself where it is to be the only one that changes the export.
    writer: Option<String>,
}

/// A connection before the choice of an export.
pub(crate) struct Haggle {
    dialer: Dialer,
    pub(crate) socket: Arc<Socket>,
    pub(crate) receiver: Receiver,
    pub(crate) sender: Sender,
    flags: ClientFlags,
}

/// A connection on which requests may be sent.
pub(crate) struct Connection {
    pub(crate) socket: Arc<Socket>,
    pub(crate) receiver: Receiver,
    pub(crate) sender: Sender,
    pub(crate) terms: Terms,
}

/// What both sides agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) dialect: Dialect,
    pub(crate) export: Export,
    pub(crate) sizes: BlockSizes,
    /// The number of the context of allocation, if the server has it.
    pub(crate) allocation: Option<u32>,
}

impl Terms {
    /// Whether the server refuses changes.
    pub(crate) fn is_read_only(&self) -> bool {
        self.export.flags.contains(TransmissionFlags::READ_ONLY)
    }
}

/// An export as a server describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExportInfo {
    /// Its name; the default export has the empty name.
    pub name: String,
    /// Words for people; may be empty.
    pub description: String,
    /// Size and abilities, if the server tells them.
    pub export: Option<Export>,
    /// Sizes of requests, if the server tells them.
    pub sizes: Option<BlockSizes>,
}

impl Dialer {
    /// One for the export of `uri`, which is going to be changed unless it is `read_only`.
    pub(crate) fn new(uri: Uri, read_only: bool) -> Result<Self, ClientError> {
        let tls = Tls::of(&uri)?;
        let writer = (!read_only).then(|| WRITER.to_owned() + &unique());
        Ok(Self { uri, tls, writer })
    }

    /// Connects, and agrees on encryption, before `deadline`. What is asked on the connection has the same
    /// limit, and one of its own.
    pub(crate) fn dial(&self, deadline: Instant) -> Result<Haggle, ClientError> {
        let deadline = deadline.min(Instant::now() + DIAL_LIMIT);
        let uri = || self.uri.to_string();
        let connect = |source| ClientError::Connect { uri: uri(), source };
        let socket = Arc::new(Socket::connect(&self.uri.transport, deadline).map_err(connect)?);
        let (receiver, sender) = channel::plain(&socket);
        let (dialer, flags) = (self.clone(), ClientFlags::empty());
        let mut haggle = Haggle { dialer, socket, receiver, sender, flags };
        haggle.greet()?;
        if let Some(tls) = &self.tls {
            haggle.must_have_options("encrypt connections")?;
            haggle.must(&ClientOption::StartTls, "encrypt the connection")?;
            let failed =
                |source: io::Error| ClientError::Tls { uri: uri(), problem: source.to_string() };
            let encrypted = channel::encrypted(&haggle.socket, tls).map_err(failed)?;
            (haggle.receiver, haggle.sender) = encrypted;
        }
        Ok(haggle)
    }
}

impl Haggle {
    fn uri(&self) -> String {
        self.dialer.uri.to_string()
    }

    fn io(&self) -> impl Fn(io::Error) -> ClientError + use<> {
        let uri = self.uri();
        move |source| ClientError::Handshake { uri: uri.clone(), source }
    }

    fn protocol(&self) -> impl Fn(ProtocolError) -> ClientError + use<> {
        let uri = self.uri();
        move |source| ClientError::Protocol { uri: uri.clone(), source }
    }

    fn greet(&mut self) -> Result<(), ClientError> {
        let mut bytes = [0; Greeting::LENGTH];
        self.receiver.read_exact(&mut bytes).map_err(self.io())?;
        let greeting = Greeting::decode(&bytes).map_err(self.protocol())?;
        // All that is known, of what is offered: the bits are the same.
        self.flags = ClientFlags::from_bits_truncate(greeting.flags.bits().into());
        self.send(&self.flags.encode())
    }

    /// Whether the server answers options. One that does not is told the name of an export at once.
    fn has_options(&self) -> bool {
        self.flags.contains(ClientFlags::FIXED_NEWSTYLE)
    }

    fn must_have_options(&self, what: &'static str) -> Result<(), ClientError> {
        if self.has_options() {
            return Ok(());
        }
        Err(ClientError::Unable { uri: self.uri(), what })
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        self.sender.send(&mut [IoSlice::new(bytes)]).map_err(self.io())
    }

    /// Sends `option`; returns what is answered before the last answer, or the error of the server.
    fn ask(
        &mut self,
        option: &ClientOption,
    ) -> Result<Result<Vec<OptionReply>, (OptionError, String)>, ClientError> {
        let mut bytes = Vec::new();
        option.encode(&mut bytes).map_err(self.protocol())?;
        self.send(&bytes)?;
        let mut replies = Vec::new();
        loop {
            match self.reply(option.code())? {
                OptionReply::Ack => return Ok(Ok(replies)),
                OptionReply::Error { error, message } => return Ok(Err((error, message))),
                other => replies.push(other),
            }
            if replies.len() > MAX_REPLIES {
                let (length, limit) = (replies.len() as u64, MAX_REPLIES as u64);
                let error = ProtocolError::TooLong { what: "answers to an option", length, limit };
                return Err(self.protocol()(error));
            }
        }
    }

    fn reply(&mut self, option: OptionCode) -> Result<OptionReply, ClientError> {
        let mut header = [0; OPTION_REPLY_HEADER];
        self.receiver.read_exact(&mut header).map_err(self.io())?;
        let header = OptionReplyHeader::decode(&header).map_err(self.protocol())?;
        if header.option != option {
            let found = header.option.0.into();
            let error = ProtocolError::Value { what: "option that is answered", found };
            return Err(self.protocol()(error));
        }
        if header.length > MAX_OPTION_DATA {
            let error = ProtocolError::TooLong {
                what: "answer to an option",
                length: header.length.into(),
                limit: MAX_OPTION_DATA.into(),
            };
            return Err(self.protocol()(error));
        }
        let mut data = vec![0; header.length as usize];
        self.receiver.read_exact(&mut data).map_err(self.io())?;
        OptionReply::decode(header.kind, &data).map_err(self.protocol())
    }

    /// Sends `option`, which the server must be able to do.
    fn must(
        &mut self,
        option: &ClientOption,
        action: &'static str,
    ) -> Result<Vec<OptionReply>, ClientError> {
        let answer = self.ask(option)?;
        self.granted(answer, action)
    }

    fn granted(
        &self,
        answer: Result<Vec<OptionReply>, (OptionError, String)>,
        action: &'static str,
    ) -> Result<Vec<OptionReply>, ClientError> {
        answer.map_err(|(error, message)| {
            let uri = self.uri();
            ClientError::Refused { uri, action, error, message }
        })
    }

    /// Agrees on the best headers that both know.
    fn agree_on_dialect(&mut self) -> Result<Dialect, ClientError> {
        if !self.has_options() {
            return Ok(Dialect::Simple);
        }
        for (option, dialect) in [
            (ClientOption::ExtendedHeaders, Dialect::Extended),
            (ClientOption::StructuredReply, Dialect::Structured),
        ] {
            match self.ask(&option)? {
                Ok(_) => return Ok(dialect),
                Err((OptionError::TLS_REQUIRED, message)) => {
                    let (uri, action) = (self.uri(), "go on without TLS; write nbds:// instead");
                    let error = OptionError::TLS_REQUIRED;
                    return Err(ClientError::Refused { uri, action, error, message });
                }
                Err(_) => {}
            }
        }
        Ok(Dialect::Simple)
    }

    /// The number of the context of allocation, if the server has it. One of ours learns who is going to
    /// change the export.
    fn allocation(&mut self, dialect: Dialect) -> Result<Option<u32>, ClientError> {
        if dialect == Dialect::Simple {
            return Ok(None);
        }
        let export = self.dialer.uri.export.clone();
        let writer = self.dialer.writer.clone();
        let queries = std::iter::once(BASE_ALLOCATION.to_owned()).chain(writer).collect();
        let option = ClientOption::SetMetaContext(MetaContextRequest { export, queries });
        let replies = self.ask(&option)?.unwrap_or_default();
        Ok(replies.into_iter().find_map(|reply| match reply {
            OptionReply::MetaContext { id, name } if name == BASE_ALLOCATION => Some(id),
            _ => None,
        }))
    }

    /// Chooses the export of the URI. From here on requests may be sent.
    pub(crate) fn go(mut self) -> Result<Connection, ClientError> {
        let dialect = self.agree_on_dialect()?;
        let allocation = self.allocation(dialect)?;
        let (export, sizes) = match self.choose()? {
            Some(limits) => limits,
            None => (self.choose_by_name()?, None),
        };
        let terms =
            Terms { dialect, export, sizes: sizes.unwrap_or(BlockSizes::DEFAULT), allocation };
        let Self { socket, receiver, sender, .. } = self;
        Ok(Connection { socket, receiver, sender, terms })
    }

    /// Chooses the export, and learns of it; none if the server does not know this way.
    fn choose(&mut self) -> Result<Option<(Export, Option<BlockSizes>)>, ClientError> {
        if !self.has_options() {
            return Ok(None);
        }
        let export = self.dialer.uri.export.clone();
        let wanted = vec![InfoKind::BLOCK_SIZE];
        let option = ClientOption::Go(InfoRequest { export, wanted });
        let replies = match self.ask(&option)? {
            Err((OptionError::UNSUPPORTED, _)) => return Ok(None),
            other => self.granted(other, "open it")?,
        };
        let (export, sizes) = limits(replies);
        let Some(export) = export else {
            let error = ProtocolError::Short { what: "information on an export" };
            return Err(self.protocol()(error));
        };
        Ok(Some((export, sizes)))
    }

    /// Chooses the export in the way that all servers know. One that does not want to ends the connection.
    fn choose_by_name(&mut self) -> Result<Export, ClientError> {
        let mut bytes = Vec::new();
        let option = ClientOption::ExportName(self.dialer.uri.export.clone());
        option.encode(&mut bytes).map_err(self.protocol())?;
        self.send(&bytes)?;
        let mut answer = [0; Export::LENGTH];
        self.receiver.read_exact(&mut answer).map_err(|source| match source.kind() {
            io::ErrorKind::UnexpectedEof => {
                let why = "it closed the connection; does it have an export of this name?";
                self.io()(io::Error::new(source.kind(), why))
            }
            _ => self.io()(source),
        })?;
        if !self.flags.contains(ClientFlags::NO_ZEROES) {
            self.receiver.skip(Export::ZEROES as u64).map_err(self.io())?;
        }
        Export::decode(&answer).map_err(self.protocol())
    }

    /// The exports that the server lists.
    pub(crate) fn list(&mut self, deadline: Instant) -> Result<Vec<ExportInfo>, ClientError> {
        self.must_have_options("list its exports")?;
        self.socket.set_deadline(Some(deadline));
        let replies = self.must(&ClientOption::List, "list its exports")?;
        let mut exports = Vec::new();
        for reply in replies {
            let OptionReply::Server { name, description } = reply else { continue };
            let wanted = vec![InfoKind::BLOCK_SIZE];
            let option = ClientOption::Info(InfoRequest { export: name.clone(), wanted });
            // One that cannot be opened is listed all the same.
            let (export, sizes) = limits(self.ask(&option)?.unwrap_or_default());
            exports.push(ExportInfo { name, description, export, sizes });
        }
        let mut bytes = Vec::new();
        ClientOption::Abort.encode(&mut bytes).map_err(self.protocol())?;
        self.send(&bytes)?;
        Ok(exports)
    }
}

/// A word that no other program has.
fn unique() -> String {
    let number = || RandomState::new().hash_one(std::process::id());
    format!("{:016x}{:016x}", number(), number())
}

/// The limits among the answers to a question for an export.
fn limits(replies: Vec<OptionReply>) -> (Option<Export>, Option<BlockSizes>) {
    let (mut export, mut sizes) = (None, None);
    for reply in replies {
        match reply {
            OptionReply::Info(Info::Export(found)) => export = Some(found),
            OptionReply::Info(Info::BlockSize(found)) => sizes = Some(found),
            _ => {}
        }
    }
    (export, sizes)
}
