//! The answers to options, and what they agree on.

use std::sync::Arc;

use super::end::End;
use super::tls::Tls;
use crate::protocol::{
    ClientFlags, ClientOption, Dialect, Export as ExportInfo, Info, InfoKind, InfoRequest,
    MetaContextRequest, OptionCode, OptionError, OptionReply, ProtocolError, WRITER,
};
use crate::server::export::Export;
use crate::server::writer::Writer;
use crate::server::writers::Party;

/// What a connection has agreed on.
pub(crate) struct Session {
    pub(crate) export: Arc<Export>,
    pub(crate) dialect: Dialect,
    /// Indices of the export's contexts; their numbers for the client, too.
    pub(crate) contexts: Vec<u32>,
    pub(crate) writer: Arc<Writer>,
}

/// What follows an option.
pub(crate) enum Step {
    /// The next option.
    Option,
    /// Encryption, then the next option.
    Encrypt,
    /// Requests.
    Transmit(Session),
    /// The end, when the answer is out.
    End(End),
}

/// The state of a handshake.
pub(crate) struct Negotiation<'h> {
    exports: &'h [Arc<Export>],
    tls: Option<&'h Tls>,
    flags: ClientFlags,
    is_encrypted: bool,
    dialect: Dialect,
    chosen: Option<Chosen>,
}

/// What a client has chosen for an export.
struct Chosen {
    /// The name that the client gave the export.
    export: String,
    /// Indices of contexts.
    contexts: Vec<u32>,
    party: Party,
}

/// What an option is refused with.
type Refusal = (OptionError, String);

fn refuse<T>(error: OptionError, words: impl Into<String>) -> Result<T, Refusal> {
    Err((error, words.into()))
}

/// The party that a client names among the contexts that it chooses.
fn party(queries: &[String]) -> Party {
    let name = queries.iter().find_map(|query| query.strip_prefix(WRITER));
    name.map_or(Party::Unnamed, |name| Party::Program(name.to_owned()))
}

impl<'h> Negotiation<'h> {
    pub(crate) fn new(
        exports: &'h [Arc<Export>],
        tls: Option<&'h Tls>,
        flags: ClientFlags,
    ) -> Self {
        Self { exports, tls, flags, is_encrypted: false, dialect: Dialect::Simple, chosen: None }
    }

    /// The connection is encrypted from now on; what was agreed on before does not count.
    pub(crate) fn encrypted(&mut self) {
        (self.is_encrypted, self.dialect, self.chosen) = (true, Dialect::Simple, None);
    }

    /// Appends the answers to an option.
    pub(crate) fn answer(
        &mut self,
        code: OptionCode,
        option: Result<Option<ClientOption>, ProtocolError>,
        out: &mut Vec<u8>,
    ) -> Result<Step, End> {
        if code == OptionCode::EXPORT_NAME {
            return self.export_name(option?, out);
        }
        let (replies, step) = match self.decide(code, option) {
            Ok((replies, step)) => (replies, step),
            Err((error, message)) => (vec![OptionReply::Error { error, message }], Step::Option),
        };
        for reply in replies {
            reply.encode(code, out)?;
        }
        Ok(step)
    }

    /// An export name ends the handshake, in one way or another.
    fn export_name(&self, option: Option<ClientOption>, out: &mut Vec<u8>) -> Result<Step, End> {
        let Some(ClientOption::ExportName(name)) = option else {
            return Err(End::Violation("an export name without a name"));
        };
        if self.must_encrypt() {
            return Err(End::Violation("an export was chosen before TLS"));
        }
        if self.dialect == Dialect::Extended {
            return Err(End::Violation("an export was chosen by name after extended headers"));
        }
        let Some(export) = self.find(&name) else {
            return Err(End::Violation("there is no export of that name"));
        };
        let info = self.info(export, &name);
        let Ok(session) = self.session(export, &name) else {
            return Err(End::Violation("the export is changed by another client"));
        };
        out.extend_from_slice(&info.encode());
        if !self.flags.contains(ClientFlags::NO_ZEROES) {
            out.extend_from_slice(&[0; ExportInfo::ZEROES]);
        }
        Ok(Step::Transmit(session))
    }

    fn decide(
        &mut self,
        code: OptionCode,
        option: Result<Option<ClientOption>, ProtocolError>,
    ) -> Result<(Vec<OptionReply>, Step), Refusal> {
        if self.must_encrypt() && ![OptionCode::STARTTLS, OptionCode::ABORT].contains(&code) {
            return refuse(OptionError::TLS_REQUIRED, "this server wants TLS first");
        }
        if code == OptionCode::SET_META_CONTEXT {
            // Also where it fails.
            self.chosen = None;
        }
        let option = option.or_else(|error| refuse(OptionError::INVALID, error.to_string()))?;
        let Some(option) = option else { return refuse(OptionError::UNSUPPORTED, "") };
        let done = |step| Ok((vec![OptionReply::Ack], step));
        match option {
            ClientOption::Abort => done(Step::End(End::Client)),
            ClientOption::StartTls if self.is_encrypted => {
                refuse(OptionError::INVALID, "TLS is in use")
            }
            ClientOption::StartTls if self.tls.is_none() => {
                refuse(OptionError::POLICY, "this server has no certificates")
            }
            ClientOption::StartTls => done(Step::Encrypt),
            ClientOption::List => Ok((self.list(), Step::Option)),
            ClientOption::Info(request) => Ok((self.infos(&request)?, Step::Option)),
            ClientOption::Go(request) => {
                // Before what is told of the export: it may have to wait for another client to end.
                let session =
                    self.session(self.find_or_refuse(&request.export)?, &request.export)?;
                Ok((self.infos(&request)?, Step::Transmit(session)))
            }
            ClientOption::StructuredReply if self.dialect == Dialect::Extended => {
                refuse(OptionError::EXTENDED_HEADERS_REQUIRED, "extended headers are in use")
            }
            ClientOption::StructuredReply => {
                self.dialect = Dialect::Structured;
                done(Step::Option)
            }
            ClientOption::ExtendedHeaders => {
                self.dialect = Dialect::Extended;
                done(Step::Option)
            }
            ClientOption::ListMetaContext(request) => {
                Ok((self.contexts(&request, true)?.0, Step::Option))
            }
            ClientOption::SetMetaContext(request) => {
                let (replies, contexts) = self.contexts(&request, false)?;
                let party = party(&request.queries);
                self.chosen = Some(Chosen { export: request.export, contexts, party });
                Ok((replies, Step::Option))
            }
            ClientOption::ExportName(_) => refuse(OptionError::INVALID, ""),
        }
    }

    fn must_encrypt(&self) -> bool {
        !self.is_encrypted && self.tls.is_some_and(|tls| tls.required)
    }

    /// The export of a name. The empty name is that of the only export, too.
    fn find(&self, name: &str) -> Option<&'h Arc<Export>> {
        match self.exports {
            [only] if name.is_empty() => Some(only),
            exports => exports.iter().find(|export| export.name == name),
        }
    }

    fn find_or_refuse(&self, name: &str) -> Result<&'h Arc<Export>, Refusal> {
        let names = || self.exports.iter().map(|export| &export.name[..]).collect::<Vec<_>>();
        self.find(name).ok_or_else(|| {
            let mut words = format!("no export {name:?}; there are {}", names().join(", "));
            if words.len() > 512 {
                words = "no such export; list them".into();
            }
            (OptionError::UNKNOWN, words)
        })
    }

    /// What the client has chosen for the export that it calls `name`.
    fn choice(&self, name: &str) -> (&[u32], &Party) {
        match &self.chosen {
            Some(chosen) if chosen.export == name => (&chosen.contexts, &chosen.party),
            _ => (&[], &Party::Unnamed),
        }
    }

    /// What is agreed on as the client chooses `export`, which it calls `name`.
    fn session(&self, export: &Arc<Export>, name: &str) -> Result<Session, Refusal> {
        let (contexts, party) = self.choice(name);
        let writer = Writer::of(export, party)
            .or_else(|refusal| refuse(OptionError::POLICY, refusal.words()))?;
        let (export, contexts) = (Arc::clone(export), contexts.to_vec());
        Ok(Session { export, dialect: self.dialect, contexts, writer: Arc::new(writer) })
    }

    fn info(&self, export: &Export, name: &str) -> ExportInfo {
        let (contexts, party) = self.choice(name);
        let filter = self.dialect == Dialect::Extended && !contexts.is_empty();
        let keeps_out = export.writers.keep_out(party);
        export.info(self.dialect != Dialect::Simple, filter, keeps_out)
    }

    fn list(&self) -> Vec<OptionReply> {
        let server = |export: &Arc<Export>| OptionReply::Server {
            name: export.name.clone(),
            description: export.description.clone(),
        };
        self.exports.iter().map(server).chain([OptionReply::Ack]).collect()
    }

    fn infos(&self, request: &InfoRequest) -> Result<Vec<OptionReply>, Refusal> {
        let export = self.find_or_refuse(&request.export)?;
        let mut infos = vec![Info::Export(self.info(export, &request.export))];
        let wants = |kind| request.wanted.contains(&kind);
        if wants(InfoKind::NAME) {
            infos.push(Info::Name(export.name.clone()));
        }
        if wants(InfoKind::DESCRIPTION) && !export.description.is_empty() {
            infos.push(Info::Description(export.description.clone()));
        }
        if wants(InfoKind::BLOCK_SIZE) {
            infos.push(Info::BlockSize(export.block_sizes()));
        }
        let replies = infos.into_iter().map(OptionReply::Info).chain([OptionReply::Ack]);
        Ok(replies.collect())
    }

    /// The contexts that a client asks for. In lists a namespace with its colon is all of them, and
    /// so is no query.
    fn contexts(
        &self,
        request: &MetaContextRequest,
        is_list: bool,
    ) -> Result<(Vec<OptionReply>, Vec<u32>), Refusal> {
        if self.dialect == Dialect::Simple {
            return refuse(OptionError::INVALID, "ask for structured replies first");
        }
        let export = self.find_or_refuse(&request.export)?;
        let is_wanted = |name: &str| {
            let matches = |query: &String| {
                query == name || is_list && query.ends_with(':') && name.starts_with(&query[..])
            };
            is_list && request.queries.is_empty() || request.queries.iter().any(matches)
        };
        let (mut replies, mut chosen) = (Vec::new(), Vec::new());
        for (number, context) in (0..).zip(&export.contexts) {
            if is_wanted(context.name()) {
                let id = if is_list { 0 } else { number };
                replies.push(OptionReply::MetaContext { id, name: context.name().to_owned() });
                chosen.push(number);
            }
        }
        replies.push(OptionReply::Ack);
        Ok((replies, chosen))
    }
}
