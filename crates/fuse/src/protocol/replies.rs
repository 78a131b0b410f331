//! Results as replies to the kernel.

use super::Translator;
use super::attributes::{FOR_EVER, attributes, errno, generation, node};
use crate::failure::Failure;
use fuser::{Errno, INodeNo, ReplyAttr, ReplyEmpty, ReplyEntry, ReplyXattr};
use std::sync::Arc;
use undercroft_fs::Metadata;

/// Sends `$sent` for the value of a result, or its error.
macro_rules! answer {
    ($self:ident, $reply:ident, $result:expr, $value:pat => $sent:expr) => {
        match $result {
            Ok($value) => $sent,
            Err(failure) => $reply.error($self.errno(&failure)),
        }
    };
}
pub(super) use answer;

impl Translator {
    pub(super) fn send_entry(&self, reply: ReplyEntry, made: Result<Metadata, Failure>) {
        answer!(self, reply, made, metadata => {
            let attributes = attributes(&metadata, node(metadata.number, self.root));
            reply.entry(&FOR_EVER, &attributes, generation(&metadata));
        });
    }

    /// Calls `send` when names in a directory have changed, and that is as durable as it is to be
    /// before it is answered; with the error if it is not.
    pub(super) fn name_changed(
        &self,
        directory: INodeNo,
        send: impl FnOnce(Option<Errno>) + Send + 'static,
    ) {
        if !self.syncs_names {
            return send(None);
        }
        let server = Arc::clone(&self.server);
        self.server.sync(self.number(directory), false, move |done| {
            send(done.err().map(|failure| errno(server.failures.number(&failure))));
        });
    }

    pub(super) fn send_made(
        &self,
        directory: INodeNo,
        reply: ReplyEntry,
        made: Result<Metadata, Failure>,
    ) {
        answer!(self, reply, made, metadata => {
            let attributes = attributes(&metadata, node(metadata.number, self.root));
            self.name_changed(directory, move |failed| match failed {
                None => reply.entry(&FOR_EVER, &attributes, generation(&metadata)),
                Some(errno) => reply.error(errno),
            });
        });
    }

    pub(super) fn send_renamed(
        &self,
        directory: INodeNo,
        reply: ReplyEmpty,
        done: Result<(), Failure>,
    ) {
        answer!(self, reply, done, () => self.name_changed(directory, move |failed| match failed {
            None => reply.ok(),
            Some(errno) => reply.error(errno),
        }));
    }

    pub(super) fn send_attributes(&self, reply: ReplyAttr, found: Result<Metadata, Failure>) {
        answer!(self, reply, found, metadata => {
            // Programs see the true number of the root, too.
            reply.attr(&FOR_EVER, &attributes(&metadata, INodeNo(metadata.number.0)));
        });
    }

    pub(super) fn send_done(&self, reply: ReplyEmpty, done: Result<(), Failure>) {
        answer!(self, reply, done, () => reply.ok());
    }

    pub(super) fn sync(&self, ino: INodeNo, data_only: bool, reply: ReplyEmpty) {
        let server = Arc::clone(&self.server);
        self.server.sync(self.number(ino), data_only, move |done| match done {
            Ok(()) => reply.ok(),
            Err(failure) => reply.error(errno(server.failures.number(&failure))),
        });
    }
}

/// A value of a size that the caller asks for first, or in the room that it has.
pub(super) fn send_sized(reply: ReplyXattr, value: &[u8], room: u32) {
    // Values have 64 KiB at most, lists of names what fits into a fork.
    let len = value.len() as u32;
    if room == 0 {
        reply.size(len);
    } else if len > room {
        reply.error(Errno::ERANGE);
    } else {
        reply.data(value);
    }
}
