//! The attribute fork of one inode (docs/format/attributes.md).

use super::forks::Fork;
use super::hash_tree::HashWalk;
use super::inode_table::{Slot, link_sum};
use super::subject::{Scan, Subject};
use super::{Finding, Location};
use crate::bytes::{be32, be64};
use crate::format::{
    Acl, AclKind, AttrLeafEntry, AttrLeafLayout, AttrShortform, AttrValue, BufferKind, ForkFormat,
    Namespace, PARENT_VALUE_SIZE, attr_remote_blocks, attr_remote_part, attr_remote_payload,
};
use crate::inode::ForkKind;
use crate::units::{FileBlock, InodeNumber};
use undercroft_block::Buffer;

const STRUCTURE: &str = "attributes";

/// Attributes of one inode under examination.
struct Attributes<'a, 's> {
    scan: &'a Scan<'s>,
    subject: &'a Subject<'a>,
    fork: &'a Fork,
    /// Whether all names were seen.
    complete: bool,
    count: u64,
    /// Blocks of remote values.
    remote_blocks: u64,
}

/// Checks all attributes of an inode and records its parent pointers.
pub(super) fn check(scan: &Scan<'_>, subject: &Subject<'_>, fork: &Fork) {
    let (complete, count, remote_blocks) = (fork.complete, 0, 0);
    let mut attributes = Attributes { scan, subject, fork, complete, count, remote_blocks };
    match subject.core.attr_format {
        ForkFormat::Local => attributes.short(),
        _ if fork.extents.is_empty() => {}
        _ => attributes.blocks(),
    }
    if attributes.complete {
        subject.slot().set_flag(Slot::POINTERS_KNOWN);
    } else {
        scan.checker.set_incomplete();
    }
}

impl Attributes<'_, '_> {
    fn error(&self, location: Location, what: impl Into<String>) {
        self.scan.checker.error(STRUCTURE, location, what);
    }

    fn short(&mut self) {
        let bytes = self.subject.fork_bytes(self.scan.checker, ForkKind::Attr);
        match AttrShortform::parse(bytes) {
            Ok(list) => {
                for entry in list.entries() {
                    self.attribute(entry.namespace, entry.name, entry.value);
                }
            }
            Err(what) => {
                self.error(self.subject.location(), what);
                self.complete = false;
            }
        }
    }

    fn blocks(&mut self) {
        let (checker, fork) = (self.scan.checker, self.fork);
        let mut walk = HashWalk::new(checker, fork, STRUCTURE, 1, BufferKind::AttrLeaf);
        let mut leaves: Vec<(FileBlock, Buffer)> = Vec::new();
        walk.run(FileBlock(0), &mut |at, bytes| {
            leaves.push((at, Buffer::copy_of(bytes)));
        });
        let (blocks, whole) = (walk.blocks, walk.complete);
        self.complete &= whole;
        for (at, bytes) in &leaves {
            self.leaf(*at, bytes);
        }
        if whole && self.complete {
            let mapped: u64 = fork.extents.iter().map(|extent| u64::from(extent.len)).sum();
            let used = blocks + self.remote_blocks;
            if mapped != used {
                let what = format!("{mapped} blocks are mapped, {used} are in use");
                self.error(self.subject.location(), what);
            }
        }
    }

    fn leaf(&mut self, at: FileBlock, bytes: &[u8]) {
        let layout = AttrLeafLayout::new(self.scan.checker.geometry());
        if layout.count(bytes) == 0 {
            self.error(self.fork.location(at), "a leaf without entries");
        }
        if !layout.first_used_is_exact(bytes) {
            self.error(self.fork.location(at), "firstused is not the lowest byte in use");
        }
        for (index, entry) in layout.entries(bytes).enumerate() {
            if entry.incomplete() {
                self.incomplete(at, index, entry.namespace());
                if let AttrValue::Remote { block, len } = entry.value
                    && block.0 != 0
                {
                    self.remote_blocks += self.remote_len(len);
                }
                continue;
            }
            self.entry(at, index, &entry);
        }
    }

    /// A large value is written while its entry is incomplete; where a crash cuts that off, kernels and
    /// `xfs_repair` leave the entry, which no reader shows. The removal of a parent pointer is in the journal
    /// as long as its entry is incomplete.
    fn incomplete(&self, at: FileBlock, index: usize, namespace: Namespace) {
        if self.scan.checker.dirty() {
            return;
        }
        let location = self.fork.location(at);
        if namespace == Namespace::Parent {
            return self.error(location, format!("entry {index} is an incomplete parent pointer"));
        }
        let what = format!(
            "entry {index} was left incomplete by a crash: nobody sees it, and it goes when the file \
             is removed"
        );
        self.scan.checker.add(Finding::warning(STRUCTURE, location, what));
    }

    fn remote_len(&self, len: u32) -> u64 {
        attr_remote_blocks(self.scan.checker.geometry(), len as usize).into()
    }

    fn entry(&mut self, at: FileBlock, index: usize, entry: &AttrLeafEntry<'_>) {
        match entry.value {
            AttrValue::Local(value) => self.attribute(entry.namespace(), entry.name, value),
            AttrValue::Remote { block, len } => match self.remote(block, len) {
                Ok(value) => self.attribute(entry.namespace(), entry.name, &value),
                Err(what) => {
                    self.error(self.fork.location(at), format!("entry {index}: {what}"));
                    self.complete = false;
                }
            },
        }
    }

    /// The value of `len` bytes, at most [`ATTR_VALUE_MAX`](crate::format::ATTR_VALUE_MAX), at `first`.
    fn remote(&mut self, first: FileBlock, len: u32) -> Result<Vec<u8>, String> {
        let checker = self.scan.checker;
        let geometry = checker.geometry();
        let (blocks, len) = (self.remote_len(len), len as usize);
        self.remote_blocks += blocks;
        let mut value = Vec::with_capacity(len);
        let places = (first.0..first.0 + blocks).map(FileBlock);
        for (number, at) in (0..).zip(self.fork.ahead(checker, places, 1)) {
            let block = match self.fork.read(checker, BufferKind::AttrRemote, at, 1) {
                Ok(block) => block,
                Err(defect) => {
                    checker.report_defect("remote attribute value", self.fork.location(at), defect);
                    return Err(format!("block {number} of its value is damaged"));
                }
            };
            let offset = number as usize * attr_remote_payload(geometry);
            value.extend_from_slice(attr_remote_part(&block.bytes, geometry, offset, len)?);
        }
        Ok(value)
    }

    /// One attribute with its value.
    fn attribute(&mut self, namespace: Namespace, name: &[u8], value: &[u8]) {
        self.count += 1;
        let location = self.subject.location();
        let features = &self.scan.checker.geometry().features;
        match namespace {
            Namespace::Parent if !features.parent_pointers() => {
                self.error(location, "a parent pointer, but the volume has none");
            }
            Namespace::Parent => self.parent(name, value),
            Namespace::Trusted => {
                if AclKind::from_disk_name(name).is_some()
                    && let Err(error) = Acl::from_disk(value)
                {
                    self.error(location, format!("{}: {error}", String::from_utf8_lossy(name)));
                }
            }
            Namespace::User | Namespace::Security => {}
        }
    }

    fn parent(&self, name: &[u8], value: &[u8]) {
        if value.len() != PARENT_VALUE_SIZE {
            let what =
                format!("parent pointer {:?} has a bad value", String::from_utf8_lossy(name));
            return self.error(self.subject.location(), what);
        }
        let (parent, generation) = (InodeNumber(be64(value, 0)), be32(value, 8));
        let sum = link_sum(parent, generation, name);
        self.subject.chunk.add_pointer(self.subject.index, sum);
    }
}
