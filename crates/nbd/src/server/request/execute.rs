//! From requests to bios, and from their completions to answers.

use std::sync::Arc;

use rustix::io::Errno;
use undercroft_block::{
    Bio, BlockError, Buffer, BufferPool, Completion, Operation, Plug, SECTOR_SIZE, Sector,
    SegmentList,
};

use super::aligned_range::AlignedRange;
use super::status;
use crate::protocol::{Command, CommandFlags, Dialect, Request, StatusFilter, WireError};
use crate::server::answer::{Answers, Asked, Outbox};
use crate::server::connection::negotiation::Session;
use crate::server::export::{Export, MAX_PAYLOAD};
use crate::server::pipe::Pipes;
use crate::server::read::{self, Read};
use crate::server::write::spliced::SplicedWrite;

/// Memory that the answer to a block status may take, for each context.
const STATUS: usize = 128 << 10;

/// Of a range that will be needed, no more bytes than these are loaded.
const MOST_CACHED: usize = 1 << 20;

/// The device of a connection, and the way back.
pub(crate) struct Executor {
    pub(crate) export: Arc<Export>,
    pub(crate) dialect: Dialect,
    contexts: Vec<u32>,
    outbox: Arc<Outbox>,
    pool: BufferPool,
    /// Of reads; none: what is read is copied.
    read_pipes: Option<Arc<Pipes>>,
    /// Of writes; none: they come to memory.
    write_pipes: Option<Arc<Pipes>>,
    /// Constant for the life of the connection.
    size: u64,
    pub(crate) minimum: u64,
}

/// A range in bytes.
type Range = (u64, u64);

impl Executor {
    pub(crate) fn new(
        session: Session,
        outbox: Arc<Outbox>,
        memory: usize,
        read_pipes: Option<Arc<Pipes>>,
        write_pipes: Option<Arc<Pipes>>,
    ) -> Self {
        let Session { export, dialect, contexts, .. } = session;
        let (size, minimum) = (export.size(), u64::from(export.minimum()));
        let pool = BufferPool::new(memory);
        Self { export, dialect, contexts, outbox, pool, read_pipes, write_pipes, size, minimum }
    }

    /// Whether the request can be carried out; if so, bytes of memory that it needs.
    pub(crate) fn check(&self, request: &Request) -> Result<usize, WireError> {
        type Flags = CommandFlags;
        let is_extended = self.dialect == Dialect::Extended;
        let has_chunks = self.dialect != Dialect::Simple;
        let mut allowed = Flags::FUA;
        match request.command {
            Command::Read => allowed.set(Flags::DF, has_chunks),
            Command::Write => allowed.set(Flags::PAYLOAD_LEN, is_extended),
            Command::WriteZeroes => allowed |= Flags::NO_HOLE | Flags::FAST_ZERO,
            Command::BlockStatus => {
                allowed |= Flags::REQ_ONE;
                allowed.set(Flags::PAYLOAD_LEN, is_extended && !self.contexts.is_empty());
            }
            Command::Flush | Command::Trim | Command::Cache => {}
            Command::Disconnect | Command::Unknown(_) => return Err(WireError::Invalid),
        }
        if !(request.flags - allowed).is_empty() {
            return Err(WireError::Invalid);
        }
        let has_payload = request.flags.contains(Flags::PAYLOAD_LEN);
        match request.command {
            Command::Flush => Ok(0),
            Command::BlockStatus if self.contexts.is_empty() => Err(WireError::Invalid),
            // The range is in the payload.
            Command::BlockStatus if has_payload => Ok(STATUS * self.contexts.len()),
            Command::BlockStatus => {
                self.range(request.offset, request.length, WireError::Invalid)?;
                Ok(STATUS * self.contexts.len())
            }
            Command::Cache => {
                self.range(request.offset, request.length, WireError::Invalid)?;
                Ok(self.cached(request))
            }
            Command::Read => {
                self.range(request.offset, request.length, WireError::Invalid)?;
                if request.length > MAX_PAYLOAD.into() {
                    return Err(WireError::Overflow);
                }
                // Checked: some MiB at most.
                Ok(self.aligned_range(request).length() as usize)
            }
            _ if self.export.read_only || !self.outbox.writer.may_write() => {
                Err(WireError::NotPermitted)
            }
            Command::Write if is_extended && !has_payload => Err(WireError::Invalid),
            Command::Write => {
                self.range(request.offset, request.length, WireError::NoSpace)?;
                // The caller has refused longer payloads.
                Ok(request.length as usize)
            }
            Command::WriteZeroes => {
                self.range(request.offset, request.length, WireError::NoSpace)?;
                let has = |flag| request.flags.contains(flag);
                if has(Flags::FAST_ZERO) && (has(Flags::NO_HOLE) || !self.export.fast_zeroes) {
                    return Err(WireError::NotSupported);
                }
                if has(Flags::NO_HOLE) && request.length > MAX_PAYLOAD.into() {
                    return Err(WireError::Overflow);
                }
                Ok(0)
            }
            _ => self.range(request.offset, request.length, WireError::Invalid).map(|_| 0),
        }
    }

    /// The range, if it is one of the device; else `behind` if it reaches behind the end.
    fn range(&self, offset: u64, length: u64, behind: WireError) -> Result<Range, WireError> {
        let end = offset.checked_add(length).filter(|end| *end <= self.size).ok_or(behind)?;
        Ok((offset, end))
    }

    /// The blocks of a request whose range is one of the device; none of a flush, whose range is of no
    /// account and was not checked.
    pub(crate) fn aligned_range(&self, request: &Request) -> AlignedRange {
        let (offset, length) = match request.command {
            Command::Flush => (0, 0),
            _ => (request.offset, request.length),
        };
        AlignedRange::new(offset, length, self.minimum)
    }

    /// Bytes that a request to load its range has loaded.
    fn cached(&self, request: &Request) -> usize {
        // At most a constant of some MiB.
        self.aligned_range(request).length().min(MOST_CACHED as u64) as usize
    }

    /// What the answer repeats.
    pub(crate) fn asked(&self, request: &Request) -> Asked {
        Asked::new(self.dialect, request)
    }

    /// Memory for data.
    pub(crate) fn buffer(&self, length: usize) -> Buffer {
        // The pool lags behind what the connection has given back, by what is being freed.
        self.pool.try_get(length).unwrap_or_else(|| Buffer::zeroed(length))
    }

    /// The write `request`, which was checked, if its payload may go to the page cache by a pipe now.
    pub(crate) fn spliced_write(&self, request: &Request, charge: usize) -> Option<SplicedWrite> {
        let (pipes, range) = (self.write_pipes.as_ref()?, self.aligned_range(request));
        SplicedWrite::may_be(&*self.export.device, &range)
            .then(|| SplicedWrite::new(&self.outbox, pipes, &range, self.asked(request), charge))
    }

    /// Refuses a request.
    pub(crate) fn refuse(&self, request: &Request, error: WireError, charge: usize) {
        let asked = self.asked(request);
        self.outbox.push(|answers| asked.failed(answers, error, &error.to_string(), charge));
    }

    /// Carries out a request that was checked, with the payload of a write; `here`
    /// if this thread may wait for the device now and then.
    pub(crate) fn run(
        &self,
        plug: &Plug,
        request: &Request,
        payload: Option<Buffer>,
        charge: usize,
        here: bool,
    ) {
        let asked = self.asked(request);
        if request.length == 0 && request.command != Command::Flush {
            return self.outbox.push(|answers| asked.done(answers, charge));
        }
        let range = self.aligned_range(request);
        let is_write = matches!(request.command, Command::Write | Command::WriteZeroes);
        if is_write && !range.is_exact() {
            let done = self.patch(request, payload);
            return self.outbox.push(|answers| asked.ended(answers, &done, charge));
        }
        let (sector, length) = (range.sector(), range.length());
        let bio = match request.command {
            Command::Read => {
                let (export, outbox) = (Arc::clone(&self.export), Arc::clone(&self.outbox));
                let pipes = self.read_pipes.as_ref().filter(|_| read::may_be_piped(&range));
                let pipes = pipes.cloned();
                let read = Read { export, outbox, pipes, asked, range, charge };
                let buffer = self.buffer(length as usize);
                let submit = if read.is_long() { read::long::submit } else { Read::submit };
                return submit(read, plug, buffer);
            }
            Command::Cache => Bio::read(sector, self.buffer(self.cached(request))),
            Command::Write => match payload {
                Some(data) => Bio::write(sector, data),
                None => return self.refuse(request, WireError::Invalid, charge),
            },
            Command::Flush => Bio::flush(),
            Command::Trim => match range.inner(self.minimum) {
                (start, end) if start < end => {
                    Bio::discard(Sector(start / SECTOR_SIZE), end - start)
                }
                // A hint, and nothing can be made of it.
                _ => return self.outbox.push(|answers| asked.done(answers, charge)),
            },
            Command::WriteZeroes if request.flags.contains(CommandFlags::NO_HOLE) => {
                let mut zeroes = SegmentList::new();
                // Checked: some MiB at most.
                zeroes.push_zeroes(length as usize);
                Bio::write(sector, zeroes)
            }
            Command::WriteZeroes => Bio::write_zeroes(sector, length),
            Command::BlockStatus => {
                return self.status(request, request.length, &self.contexts, charge);
            }
            Command::Disconnect | Command::Unknown(_) => {
                return self.refuse(request, WireError::Invalid, charge);
            }
        };
        let is_durable = request.flags.contains(CommandFlags::FUA) && bio.operation().modifies();
        let bio = if is_durable { bio.force_unit_access() } else { bio };
        let bio = if range.is_short() { bio.unwaiting() } else { bio };
        let bio = if here { bio.seldom_waiting() } else { bio };
        let outbox = Arc::clone(&self.outbox);
        outbox.quota.begin();
        plug.submit(bio.on_complete(move |completion| {
            outbox.push(|answers| answer(asked, answers, &completion, charge));
            outbox.quota.end(&outbox.wake);
        }));
    }

    /// Block status with a payload that names contexts.
    pub(crate) fn filtered_status(&self, request: &Request, payload: &[u8], charge: usize) {
        let Ok(filter) = StatusFilter::decode(payload) else {
            return self.refuse(request, WireError::Invalid, charge);
        };
        let mut wanted = filter.contexts;
        let count = wanted.len();
        wanted.sort_unstable();
        wanted.dedup();
        let is_known = wanted.iter().all(|context| self.contexts.contains(context));
        if !is_known || wanted.is_empty() || wanted.len() < count || filter.length == 0 {
            return self.refuse(request, WireError::Invalid, charge);
        }
        self.status(request, filter.length, &wanted, charge);
    }

    fn status(&self, request: &Request, length: u64, contexts: &[u32], charge: usize) {
        let offset = request.offset;
        // An export may end within a block.
        let is_block = |at: u64| at.is_multiple_of(self.minimum) || at == self.size;
        let range = match self.range(offset, length, WireError::Invalid) {
            Ok(range) if is_block(range.0) && is_block(range.1) => range,
            Ok(_) => return self.refuse(request, WireError::Invalid, charge),
            Err(error) => return self.refuse(request, error, charge),
        };
        let only_one = request.flags.contains(CommandFlags::REQ_ONE);
        let chunks: Vec<_> = contexts
            .iter()
            .filter_map(|&context| {
                let source = self.export.contexts.get(context as usize)?;
                Some(status::chunk(context, &**source, range, self.dialect, only_one))
            })
            .collect();
        let asked = self.asked(request);
        self.outbox.push(|answers| asked.status(answers, &chunks, charge));
    }
}

fn answer(asked: Asked, answers: &mut Answers, completion: &Completion, charge: usize) {
    let result = match &completion.result {
        // A hint, which the device need not follow.
        Err(error) if completion.operation == Operation::Discard && is_missing(error) => &Ok(()),
        result => result,
    };
    asked.ended(answers, result, charge);
}

/// Whether the device does not have the operation.
fn is_missing(error: &BlockError) -> bool {
    error.io_error().and_then(Errno::from_io_error) == Some(Errno::OPNOTSUPP)
}
