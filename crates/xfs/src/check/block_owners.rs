//! Every block of a group has one owner, or is shared as often as the reference counts say, and the
//! reverse mappings are the ones found.

use super::Location;
use super::checker::Checker;
use super::claim_list::ClaimList;
use super::group::{FREE, Group};
use super::inode_table::{InodeTable, Slot, mix};
use crate::format::{RefcountDomain, RefcountRecord, RmapFlags, RmapOwner, RmapRecord};
use crate::units::{AgBlock, AgNumber};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter;

/// Differences reported per group and kind.
const REPORTED_MAX: usize = 16;

/// Compares all claims on the blocks of a group, those of files included.
pub(super) fn check(
    checker: &Checker,
    table: &InodeTable,
    ag: AgNumber,
    group: &Group,
    files: &[&ClaimList],
) {
    let all = || iter::once(&group.claims).chain(files.iter().copied()).flatten();
    let total = group.claims.len() + files.iter().map(|part| part.len()).sum::<usize>();
    let length = checker.geometry().ag_length(ag);
    // What most groups are is seen without a list of all claims in the order of blocks.
    let is_plain = group.shared.is_empty() && Blocks::are_cheap(length, total);
    if !(is_plain && Blocks::new(length).are_covered_once(all())) {
        let mut claims: Vec<_> = all().collect();
        claims.sort_unstable_by_key(|claim| (claim.start, claim.owner, claim.offset));
        let shared = Sweep::new(checker, table, ag, group).run(&claims);
        if group.shared_known && checker.is_complete() {
            compare_shared(checker, ag, &group.shared, &shared);
        }
    }
    if checker.geometry().features.rmapbt() && group.rmaps_known {
        let used = || all().filter(|claim| claim.owner != FREE);
        if sum(&mut used()) != sum(&mut group.rmaps.iter()) {
            let known = group.space_known && checker.is_complete();
            compare_rmaps(checker, ag, group.rmaps.iter().collect(), used().collect(), known);
        }
    }
}

/// Blocks of a group that are claimed, a bit for each.
struct Blocks {
    words: Vec<u64>,
    length: u32,
}

impl Blocks {
    /// Whether a bit for each block takes less than so many claims in a list.
    const fn are_cheap(length: u32, claims: usize) -> bool {
        (length / 8) as usize <= claims.saturating_mul(size_of::<RmapRecord>())
    }

    fn new(length: u32) -> Self {
        Self { words: vec![0; length.div_ceil(64) as usize], length }
    }

    /// Whether claims are on every block of the group once.
    fn are_covered_once(mut self, mut claims: impl Iterator<Item = RmapRecord>) -> bool {
        let mut left = self.length;
        let are_new = claims.all(|claim| {
            left = left.saturating_sub(claim.len);
            self.claim(claim.start.0, claim.len)
        });
        are_new && left == 0
    }

    /// Claims blocks of the group; whether all of them are there, and none was claimed.
    fn claim(&mut self, start: u32, len: u32) -> bool {
        let Some(end) = start.checked_add(len).filter(|end| *end <= self.length) else {
            return false;
        };
        let mut at = start;
        while at < end {
            let (word, bit) = ((at / 64) as usize, at % 64);
            let count = (64 - bit).min(end - at);
            let mask = (u64::MAX >> (64 - count)) << bit;
            if self.words[word] & mask != 0 {
                return false;
            }
            self.words[word] |= mask;
            at += count;
        }
        true
    }
}

/// A number that is the same for the same mappings, however they are cut: what ends where another one
/// goes on cancels out.
fn sum(records: &mut dyn Iterator<Item = RmapRecord>) -> u64 {
    records.fold(0, |sum, record| {
        let (owner, flags, diagonal, start) = merge_key(&record);
        let of = |block: u64| mix(mix(mix(owner.0 ^ flags.bits()) ^ diagonal) ^ block);
        let end = u64::from(start.0) + u64::from(record.len);
        sum.wrapping_add(of(start.0.into())).wrapping_sub(of(end))
    })
}

/// Whether the blocks of a claim may have further owners.
fn may_share(claim: &RmapRecord) -> bool {
    claim.owner.as_inode().is_some() && claim.flags.is_empty()
}

/// A pass over the claims in the order of blocks.
struct Sweep<'a> {
    checker: &'a Checker,
    table: &'a InodeTable,
    ag: AgNumber,
    /// Whether a block without an owner is an error.
    complete: bool,
    /// Ends of the claims on the block at hand, with their index.
    active: BinaryHeap<Reverse<(u32, usize)>>,
    /// How many of them must not be shared.
    exclusive: usize,
    shared: Vec<RefcountRecord>,
    reported: usize,
}

impl<'a> Sweep<'a> {
    fn new(checker: &'a Checker, table: &'a InodeTable, ag: AgNumber, group: &Group) -> Self {
        Self {
            checker,
            table,
            ag,
            complete: group.space_known && checker.is_complete(),
            active: BinaryHeap::new(),
            exclusive: 0,
            shared: Vec::new(),
            reported: 0,
        }
    }

    fn error(&mut self, block: u32, what: String) {
        self.reported += 1;
        if self.reported <= REPORTED_MAX {
            self.checker.error("space", Location::Block(self.ag, AgBlock(block)), what);
        }
    }

    /// Returns the shared blocks.
    fn run(mut self, claims: &[RmapRecord]) -> Vec<RefcountRecord> {
        let end = self.checker.geometry().ag_length(self.ag);
        let mut at = 0;
        for (index, claim) in claims.iter().enumerate() {
            at = self.advance(at, claim.start.0, claims);
            self.start(index, claim, claims);
        }
        self.advance(at, end, claims);
        self.shared
    }

    /// Passes the blocks from `at` to `to`.
    fn advance(&mut self, mut at: u32, to: u32, claims: &[RmapRecord]) -> u32 {
        while at < to {
            let next = self.active.peek().map_or(to, |Reverse((end, _))| (*end).min(to));
            if next > at {
                self.segment(at, next);
                at = next;
            }
            while let Some(Reverse((end, index))) = self.active.peek().copied()
                && end <= at
            {
                self.active.pop();
                self.exclusive -= usize::from(!may_share(&claims[index]));
            }
        }
        at
    }

    /// Blocks `from` to `to` with the same owners.
    fn segment(&mut self, from: u32, to: u32) {
        let count = self.active.len();
        if count == 0 && self.complete {
            self.error(from, format!("{} blocks are neither free nor owned", to - from));
        }
        if count < 2 || self.exclusive > 0 {
            return;
        }
        let (start, len) = (AgBlock(from), to - from);
        let refcount = u32::try_from(count).unwrap_or(u32::MAX);
        match self.shared.last_mut() {
            Some(last) if last.start.0 + last.len == from && last.refcount == refcount => {
                last.len += len;
            }
            _ => {
                let domain = RefcountDomain::Shared;
                self.shared.push(RefcountRecord { domain, start, len, refcount });
            }
        }
    }

    fn start(&mut self, index: usize, claim: &RmapRecord, claims: &[RmapRecord]) {
        // Ends fit: claims lie inside the group.
        let end = claim.start.0.saturating_add(claim.len);
        let others = self.active.len();
        let exclusive = !may_share(claim);
        if others > 0 {
            let other = self.active.peek().map(|Reverse((_, other))| &claims[*other]);
            if exclusive || self.exclusive > 0 || !self.checker.geometry().features.reflink() {
                let (one, two) = (owner_text(claim), other.map_or_else(String::new, owner_text));
                self.error(claim.start.0, format!("owned by {one} and by {two}"));
            } else {
                self.check_flag(claim);
                if others == 1
                    && let Some(other) = other
                {
                    self.check_flag(other);
                }
            }
        }
        self.exclusive += usize::from(exclusive);
        self.active.push(Reverse((end, index)));
    }

    /// A file that shares blocks says so.
    fn check_flag(&mut self, claim: &RmapRecord) {
        let Some(inode) = claim.owner.as_inode() else { return };
        let slot = self.table.get(self.checker.geometry(), inode);
        if slot.is_some_and(|slot| !slot.has_flag(Slot::REFLINK)) {
            let what = "shares blocks, but has not the flag for it";
            self.checker.error("inode", Location::Inode(inode), what);
            if let Some(slot) = slot {
                // Once per inode.
                slot.set_flag(Slot::REFLINK);
            }
        }
    }
}

/// The owner of blocks, in words.
fn owner_text(claim: &RmapRecord) -> String {
    let name = match claim.owner {
        FREE => "the free space",
        RmapOwner::FILE_SYSTEM => "the group headers",
        RmapOwner::LOG => "the log",
        RmapOwner::GROUP => "the space trees or the free list",
        RmapOwner::INODE_TREES => "the inode trees",
        RmapOwner::INODES => "inodes",
        RmapOwner::REFCOUNT_TREE => "the reference count tree",
        RmapOwner::COW => "copy-on-write",
        inode if claim.flags.contains(RmapFlags::BMBT_BLOCK) => {
            return format!("the mapping tree of inode {}", inode.0);
        }
        inode if claim.flags.contains(RmapFlags::ATTR_FORK) => {
            return format!("the attributes of inode {}", inode.0);
        }
        inode if claim.flags.contains(RmapFlags::UNWRITTEN) => {
            return format!("inode {} (unwritten)", inode.0);
        }
        inode => return format!("inode {}", inode.0),
    };
    name.to_owned()
}

fn compare_shared(
    checker: &Checker,
    ag: AgNumber,
    recorded: &[RefcountRecord],
    found: &[RefcountRecord],
) {
    if recorded == found {
        return;
    }
    let mut reported = 0;
    let mut found = found.iter().peekable();
    let mut error = |block, what: String| {
        reported += 1;
        if reported <= REPORTED_MAX {
            checker.error("refcountbt", Location::Block(ag, block), what);
        }
    };
    let text = |record: &RefcountRecord| format!("{} blocks, {}", record.len, record.refcount);
    for record in recorded {
        while let Some(other) = found.next_if(|other| other.start < record.start) {
            error(other.start, format!("no record for shared blocks ({})", text(other)));
        }
        match found.next_if(|other| other.start == record.start) {
            Some(other) if other == record => {}
            Some(other) => error(
                record.start,
                format!("record says ({}), owners found ({})", text(record), text(other)),
            ),
            None => error(record.start, format!("record ({}) of unshared blocks", text(record))),
        }
    }
    for other in found {
        error(other.start, format!("no record for shared blocks ({})", text(other)));
    }
}

/// Order in which records that continue each other are neighbours.
fn merge_key(record: &RmapRecord) -> (RmapOwner, RmapFlags, u64, AgBlock) {
    let offset = if record.has_offset() { record.offset.0 } else { 0 };
    let diagonal = if record.has_offset() { offset.wrapping_sub(record.start.0.into()) } else { 0 };
    (record.owner, record.flags, diagonal, record.start)
}

/// Sorts records and joins adjacent ones.
fn canonical(mut records: Vec<RmapRecord>) -> Vec<RmapRecord> {
    records.sort_unstable_by_key(merge_key);
    records.dedup_by(|next, last| {
        let (a, b) = (merge_key(last), merge_key(next));
        let joins = (a.0, a.1, a.2) == (b.0, b.1, b.2)
            && last.start.0.checked_add(last.len) == Some(next.start.0)
            && last.len.checked_add(next.len).is_some();
        if joins {
            last.len += next.len;
        }
        joins
    });
    records
}

/// Compares the reverse mappings on disk with those found; a missing owner is an error only if all
/// structures could be read (`complete`).
fn compare_rmaps(
    checker: &Checker,
    ag: AgNumber,
    recorded: Vec<RmapRecord>,
    found: Vec<RmapRecord>,
    complete: bool,
) {
    let (recorded, found) = (canonical(recorded), canonical(found));
    if recorded == found {
        return;
    }
    let mut reported = 0;
    let mut error = |record: &RmapRecord, what: &str| {
        reported += 1;
        if reported <= REPORTED_MAX {
            let what = format!(
                "{what}: {} blocks of {} at offset {}",
                record.len,
                owner_text(record),
                record.offset
            );
            checker.error("rmapbt", Location::Block(ag, record.start), what);
        }
    };
    let mut found = found.iter().peekable();
    for record in &recorded {
        let key = merge_key(record);
        while let Some(other) = found.next_if(|other| merge_key(other) < key) {
            error(other, "no record for");
        }
        match found.next_if(|other| merge_key(other) == key) {
            Some(other) if other.len == record.len => {}
            Some(other) if complete || other.len > record.len => error(other, "wrong length for"),
            None if complete => error(record, "record without a mapping for"),
            _ => {}
        }
    }
    for other in found {
        error(other, "no record for");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{FileBlock, InodeNumber};

    fn mapping(start: u32, len: u32, offset: u64) -> RmapRecord {
        let (owner, flags) = (RmapOwner::inode(InodeNumber(131)), RmapFlags::empty());
        RmapRecord { start: AgBlock(start), len, owner, offset: FileBlock(offset), flags }
    }

    #[test]
    fn one_canonical_form_however_mappings_are_cut() {
        // One file maps the same blocks twice, and a neighbour belongs to the group.
        let group =
            RmapRecord { owner: RmapOwner::GROUP, offset: FileBlock(0), ..mapping(20, 1, 0) };
        let whole = vec![mapping(10, 10, 0), mapping(10, 10, 100), group];
        let cut = vec![
            mapping(10, 4, 100),
            mapping(10, 7, 0),
            group,
            mapping(17, 3, 7),
            mapping(14, 6, 104),
        ];
        assert_eq!(sum(&mut cut.iter().copied()), sum(&mut whole.iter().copied()));
        assert_eq!(canonical(cut), canonical(whole.clone()));
        let other = vec![mapping(10, 10, 0), mapping(10, 10, 101), group];
        assert_ne!(sum(&mut other.iter().copied()), sum(&mut whole.iter().copied()));
        assert_ne!(canonical(other), canonical(whole));
    }

    #[test]
    fn blocks_are_covered_once_or_not() {
        let covered = |runs: &[(u32, u32)]| {
            let claims = runs.iter().map(|(start, len)| mapping(*start, *len, 0));
            Blocks::new(200).are_covered_once(claims)
        };
        assert!(covered(&[(0, 63), (190, 10), (63, 127)]));
        assert!(!covered(&[(0, 63), (190, 10), (63, 126)]), "a gap");
        assert!(!covered(&[(0, 63), (190, 10), (63, 128)]), "an overlap");
        assert!(!covered(&[(0, 64), (190, 11), (64, 126)]), "behind the end");
        assert!(!covered(&[(0, 100), (50, 100), (100, 100)]), "both");
    }

    #[test]
    fn unwritten_and_written_parts_stay_apart() {
        let unwritten = RmapRecord { flags: RmapFlags::UNWRITTEN, ..mapping(14, 6, 4) };
        assert_eq!(canonical(vec![mapping(10, 4, 0), unwritten]).len(), 2);
        assert_eq!(canonical(vec![mapping(10, 4, 0), mapping(14, 6, 4)]), [mapping(10, 10, 0)]);
        assert!(may_share(&mapping(1, 1, 1)) && !may_share(&unwritten));
    }
}
