//! Warnings of a source.

/// Warnings about a tree that could be read all the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Warnings {
    /// The archive ends behind a whole entry, but without the zero blocks that end an archive: more
    /// may have followed.
    pub no_end: bool,
    /// Where a single zero block has more behind it, which is not read: it is the end of the archive for
    /// tar, too.
    pub lone_zero_block: Option<u64>,
    /// Extended attributes that were left out: their names are in none of the namespaces of Linux, or
    /// they are access control lists of NFS version 4.
    pub foreign_attributes: u64,
    /// The first of those, as "PATH: NAME", escaped.
    pub first_foreign: Option<String>,
    /// Contents of files that were there before, could not be read any more, and are zeroes: a sentence each.
    pub unread: Vec<String>,
    /// What a description says that is not followed: a sentence each.
    pub description: Vec<String>,
    /// Rules that match nothing, or other names of files than those that have their attributes: a
    /// sentence each.
    pub rules: Vec<String>,
}
