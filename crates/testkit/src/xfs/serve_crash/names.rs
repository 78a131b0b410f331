//! What a thread does to names: makes files, gives them names and takes those away.

use crate::xfs::serve_crash::files::{File, Files};
use crate::xfs::serve_crash::model::{Entry, Version, Way};
use std::sync::Arc;
use undercroft_xfs::Error;
use undercroft_xfs::format::FileType;
use undercroft_xfs::ops::{self, MetadataChange, NewInode, RenameMode};

impl Files {
    /// Makes a file.
    pub fn create(&mut self) -> Result<(), Error> {
        let Some(path) = self.slot(false) else { return Ok(()) };
        self.run(|files| {
            let (name, new) = (files.name(&path), NewInode::new(FileType::Regular, 0o600));
            let open = ops::make_open(&files.volume, name.parent, name.name, &new)?;
            let (index, inode) = (files.past.files.len(), open.number().0);
            let bytes = Arc::new(Vec::new());
            let (operation, way, changed) = (files.operation(), Way::Size, 0..usize::MAX);
            let first = Version { operation, way, changed, bytes: Arc::clone(&bytes) };
            files.past.files.push(vec![first]);
            files.open.push(File { index, open, bytes });
            let entry = Entry { file: index, inode, mode: 0o600, links: 1 };
            Arc::make_mut(&mut files.names).insert(path, entry);
            Ok(())
        })
    }

    /// Lets go of a file that lost its last name, or keeps it for a while.
    fn replaced(&mut self, entry: Entry) -> Result<(), Error> {
        if entry.links == 1 && self.random.one_in(2) {
            let file = self.open.swap_remove(self.place(entry.file));
            file.open.close()?;
        }
        Ok(())
    }

    /// Takes a name away.
    pub fn unlink(&mut self) -> Result<(), Error> {
        let Some(path) = self.slot(true) else { return Ok(()) };
        self.run(|files| {
            let name = files.name(&path);
            ops::unlink(&files.volume, name.parent, name.name, files.now())?;
            files.forget(&path).map_or(Ok(()), |entry| files.replaced(entry))
        })
    }

    /// Moves a name, over another one or not, or lets two change places.
    pub fn rename(&mut self, mode: RenameMode) -> Result<(), Error> {
        let to = self.random.one_in(2) || mode == RenameMode::Exchange;
        let (Some(from), Some(to)) = (self.slot(true), self.slot(to)) else { return Ok(()) };
        let (source, target) = (self.names[&from], self.names.get(&to).copied());
        if from == to || target.is_some_and(|target| target.file == source.file) {
            return Ok(());
        }
        self.run(|files| {
            let names = (files.name(&from), files.name(&to));
            ops::rename(&files.volume, names.0, names.1, mode, files.now())?;
            if let (RenameMode::Exchange, Some(target)) = (mode, target) {
                Arc::make_mut(&mut files.names).extend([(from, target), (to, source)]);
                return Ok(());
            }
            let replaced = files.forget(&to);
            let names = Arc::make_mut(&mut files.names);
            names.remove(&from);
            names.insert(to, source);
            replaced.map_or(Ok(()), |entry| files.replaced(entry))
        })
    }

    /// Gives a file another name.
    pub fn link(&mut self, entry: Entry) -> Result<(), Error> {
        let Some(path) = self.slot(false) else { return Ok(()) };
        self.run(|files| {
            let (name, inode) =
                (files.name(&path), files.open[files.place(entry.file)].open.number());
            ops::link(&files.volume, inode, name.parent, name.name, files.now())?;
            Arc::make_mut(&mut files.names).insert(path, entry);
            files.each_name(entry.file, |each| each.links = entry.links + 1);
            Ok(())
        })
    }

    /// Changes the mode of a file.
    pub fn change_mode(&mut self, entry: Entry) -> Result<(), Error> {
        let mode = 0o600 | self.below(64) as u16;
        self.run(|files| {
            let inode = files.open[files.place(entry.file)].open.number();
            let change = MetadataChange { mode: Some(mode), ..MetadataChange::default() };
            ops::change_metadata(&files.volume, inode, &change, files.now())?;
            files.each_name(entry.file, |each| each.mode = mode.into());
            Ok(())
        })
    }
}
