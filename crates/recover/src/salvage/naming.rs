//! Which names are those of a file now: entries of directories and the files' own attributes have to
//! agree, as far as both are left.

use rustc_hash::FxHashSet;
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
    /// Names that no entry has: the place of the file, and that of the name among its own.
    without_entry: FxHashSet<(usize, usize)>,
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
        let chosen = naming.choose(inodes, blocks, index, own);
        let unheld = chosen.iter().enumerate().filter(|(_, (_, has_entry))| !has_entry);
        naming.without_entry.extend(unheld.map(|(place, _)| (index, place)));
        inodes.files[index].names = chosen.into_iter().map(|(name, _)| name).collect();
    }
    naming.settle(&mut inodes.files);
    naming
}

impl Naming {
    /// The names that a file has, and whether an entry has each.
    fn choose(
        &mut self,
        inodes: &Inodes,
        blocks: &Blocks,
        index: usize,
        links: &[Link],
    ) -> Vec<(Name, bool)> {
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
                (true, true) => chosen.push((name, true)),
                // An entry in a block that may be of an earlier time.
                (true, false) if has_pointers && !is_whole => self.contradictions += 1,
                (true, false) => {
                    self.contradictions += u64::from(has_pointers);
                    chosen.push((name, true));
                }
                (false, _) if is_whole => doubtful.push((name, false)),
                (false, _) => chosen.push((name, false)),
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
            let place =
                chosen.iter().position(|(name, _)| Some(name.parent) == parent).unwrap_or(0);
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

    /// Of several files with one name one that its directory has keeps it, else the latest.
    fn settle(&mut self, files: &mut [FoundFile]) {
        let mut claims: Vec<Claim<'_>> = Vec::with_capacity(files.len());
        for (index, file) in files.iter().enumerate() {
            for (place, name) in file.names.iter().enumerate() {
                let is_holder = !self.without_entry.contains(&(index, place));
                let rank = (is_holder, file.last_seen, index);
                claims.push(Claim { parent: name.parent, name: &name.name, rank, place });
            }
        }
        claims.sort_unstable();
        let losers = claims
            .windows(2)
            .filter(|pair| (pair[0].parent, pair[0].name) == (pair[1].parent, pair[1].name));
        let mut losers: Vec<_> = losers.map(|pair| (pair[0].rank.2, pair[0].place)).collect();
        self.contradictions += losers.len() as u64;
        // The last names first, so that the others keep their places.
        losers.sort_unstable_by(|one, other| other.cmp(one));
        for (index, place) in losers {
            files[index].names.remove(place);
        }
    }
}

/// A name that a file has, after the checks: in the order of names, the strongest of each last.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Claim<'f> {
    parent: InodeNumber,
    name: &'f [u8],
    /// Whether an entry has it, when it was seen last, and the file.
    rank: (bool, u64, usize),
    /// Place among the names of the file.
    place: usize,
}
