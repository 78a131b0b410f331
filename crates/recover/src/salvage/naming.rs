//! Which names are those of a file now: entries of directories and the files' own attributes have to
//! agree, as far as both are left.

use rustc_hash::FxHashMap;
use undercroft_xfs_format::units::InodeNumber;
use undercroft_xfs_format::{EntryType, FileType};

use super::blocks::Blocks;
use super::inodes::Inodes;
use super::links::{Link, Source};
use crate::found::FoundFile;
use crate::names::Name;

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Naming {
    /// Statements that contradict others.
    pub(super) contradictions: u64,
    /// Files that seem to be there, and that no directory has: places in the list.
    pub(super) stale: Vec<usize>,
}

/// A name that a file may have.
struct Candidate<'l> {
    parent: InodeNumber,
    name: &'l [u8],
    has_entry: bool,
    has_pointer: bool,
}

/// Gives the files their names. The links are sorted.
pub(super) fn name(inodes: &mut Inodes, blocks: &Blocks, links: &[Link]) -> Naming {
    let mut naming = Naming::default();
    for own in links.chunk_by(|one, other| one.child == other.child) {
        let Some(index) = inodes.index(own[0].child) else {
            // Directories that are whole have no entry of a free inode.
            let has_whole = |link: &Link| blocks.whole.contains(&link.parent.0);
            naming.contradictions += own.iter().filter(|link| has_whole(link)).count() as u64;
            continue;
        };
        let names = naming.choose(inodes, blocks, index, own);
        inodes.files[index].names = names;
    }
    naming.settle(&mut inodes.files, links);
    naming
}

impl Naming {
    fn choose(
        &mut self,
        inodes: &Inodes,
        blocks: &Blocks,
        index: usize,
        links: &[Link],
    ) -> Vec<Name> {
        let (file, about) = (&inodes.files[index], &inodes.about[index]);
        let candidates = self.candidates(inodes, file, links);
        let has_pointers = candidates.iter().any(|candidate| candidate.has_pointer);
        let (mut chosen, mut doubtful) = (Vec::new(), Vec::new());
        for candidate in candidates {
            let is_whole = blocks.whole.contains(&candidate.parent.0);
            let Candidate { parent, has_entry, has_pointer, .. } = candidate;
            let generation = inodes.index(parent).map(|place| inodes.files[place].id.generation);
            let name = Name { parent, generation, name: candidate.name.to_vec() };
            match (has_entry, has_pointer) {
                (true, true) => chosen.push(name),
                // An entry in a block that may be of an earlier time.
                (true, false) if has_pointers && !is_whole => self.contradictions += 1,
                (true, false) => {
                    self.contradictions += u64::from(has_pointers);
                    chosen.push(name);
                }
                (false, _) if is_whole => doubtful.push(name),
                (false, _) => chosen.push(name),
            }
        }
        if chosen.is_empty() && !doubtful.is_empty() {
            // Trees of inodes and directories lag behind the journal.
            if about.in_use == Some(true) || about.is_of_journal {
                chosen.append(&mut doubtful);
            } else {
                self.stale.push(index);
            }
        }
        self.contradictions += doubtful.len() as u64;
        if file.kind == Some(FileType::Directory) && chosen.len() > 1 {
            let number = file.id.number.0;
            let parent = about.parent.or(blocks.parents.get(&number).copied());
            let place = chosen.iter().position(|name| Some(name.parent) == parent).unwrap_or(0);
            self.contradictions += chosen.len() as u64 - 1;
            chosen = vec![chosen.swap_remove(place)];
        }
        chosen
    }

    /// The names of a file that can be some, each once.
    fn candidates<'l>(
        &mut self,
        inodes: &Inodes,
        file: &FoundFile,
        links: &'l [Link],
    ) -> Vec<Candidate<'l>> {
        let mut candidates: Vec<Candidate<'l>> = Vec::new();
        for link in links {
            let is_sound = match link.source {
                Source::Entry(_) => link
                    .kind()
                    .and_then(EntryType::file_type)
                    .is_none_or(|kind| file.kind.is_none_or(|own| own == kind)),
                Source::Pointer(generation) => inodes.index(link.parent).is_none_or(|parent| {
                    let parent = &inodes.files[parent];
                    parent.is_guessed || parent.id.generation == generation
                }),
            };
            if !is_sound || link.parent == link.child {
                self.contradictions += 1;
                continue;
            }
            let is_pointer = matches!(link.source, Source::Pointer(_));
            match candidates.last_mut() {
                Some(last) if last.parent == link.parent && *last.name == *link.name => {
                    last.has_pointer |= is_pointer;
                    last.has_entry |= !is_pointer;
                }
                _ => candidates.push(Candidate {
                    parent: link.parent,
                    name: &link.name,
                    has_entry: !is_pointer,
                    has_pointer: is_pointer,
                }),
            }
        }
        candidates
    }

    /// Of several files with one name the one that its directory has keeps it, else the latest.
    fn settle(&mut self, files: &mut [FoundFile], links: &[Link]) {
        let mut holders: FxHashMap<(InodeNumber, &[u8]), InodeNumber> = FxHashMap::default();
        for link in links.iter().filter(|link| matches!(link.source, Source::Entry(_))) {
            holders.entry((link.parent, &*link.name)).or_insert(link.child);
        }
        let mut claims: Vec<(InodeNumber, Vec<u8>, bool, u64, usize)> = Vec::new();
        for (index, file) in files.iter().enumerate() {
            for name in &file.names {
                let holder = holders.get(&(name.parent, name.name.as_slice()));
                let is_holder = holder == Some(&file.id.number);
                claims.push((name.parent, name.name.clone(), is_holder, file.last_seen, index));
            }
        }
        claims.sort_unstable();
        for pair in claims.windows(2) {
            let [(parent, name, .., loser), (other_parent, other_name, ..)] = pair else {
                continue;
            };
            if (parent, name) == (other_parent, other_name) {
                let names = &mut files[*loser].names;
                names.retain(|own| own.parent != *parent || own.name != *name);
                self.contradictions += 1;
            }
        }
    }
}
