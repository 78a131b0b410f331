//! LVM's programs on disks in files, without the device mapper of the kernel.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Error, LoopDevice, program};

/// Files as disks that LVM's programs see, and nothing else. Needs root.
#[derive(Debug)]
pub struct Lvm {
    home: PathBuf,
    files: Vec<PathBuf>,
    disks: Vec<LoopDevice>,
}

/// Where a logical volume is in files.
#[derive(Clone, Debug)]
pub struct Runs {
    files: Vec<PathBuf>,
    /// In the order of its bytes.
    pub runs: Vec<Run>,
}

/// Bytes of a logical volume that follow each other on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The disk, in the order of the files.
    pub disk: usize,
    /// Its byte.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
}

impl Lvm {
    /// Attaches files in a directory, where LVM keeps what else it writes, too.
    ///
    /// # Errors
    /// A file cannot be attached.
    pub fn attach(home: &Path, names: &[&str]) -> Result<Self, Error> {
        let files: Vec<_> = names.iter().map(|name| home.join(name)).collect();
        let disks = files.iter().map(|file| LoopDevice::attach(file)).collect::<Result<_, _>>()?;
        Ok(Self { home: home.to_owned(), files, disks })
    }

    /// The names of the disks, such as `/dev/loop3`.
    #[must_use]
    pub fn disks(&self) -> Vec<String> {
        self.disks.iter().map(|disk| disk.path().display().to_string()).collect()
    }

    /// Runs a program of LVM, such as `lvcreate`, with arguments; returns what it says.
    ///
    /// # Errors
    /// It is missing or fails.
    pub fn run(&self, arguments: &[&str]) -> Result<String, Error> {
        let own = self.home.join("lvm");
        let run = format!("global {{ locking_dir=\"{}\" }}", own.display());
        let mut command = Command::new("lvm");
        command.env("LVM_SYSTEM_DIR", &own).env("LVM_SUPPRESS_FD_WARNINGS", "1").env("LC_ALL", "C");
        command.arg(arguments[0]).args(["--driverloaded", "n", "--config"]);
        command.arg(format!("{run} backup {{ backup=0 archive=0 }}"));
        command.arg("--devices").arg(self.disks().join(",")).args(&arguments[1..]);
        program::run(&mut command)?.success()
    }

    /// Where a linear or striped volume is, by LVM's report of it.
    ///
    /// # Errors
    /// It is not there.
    ///
    /// # Panics
    /// LVM reports something else than it did.
    pub fn runs(&self, volume: &str) -> Result<Runs, Error> {
        let report = |arguments: &[&str]| {
            let usual = ["--noheadings", "--units", "b", "--nosuffix", "--separator", ";", "-o"];
            let all: Vec<_> =
                arguments[..1].iter().chain(&usual).chain(&arguments[1..]).copied().collect();
            // Without the warning that there is no device mapper.
            self.run(&all).map(|said| lines(&said))
        };
        let group = volume.split('/').next().unwrap_or(volume);
        let number = |text: &str| text.parse::<u64>().expect("LVM reports a number");
        let extent = number(&report(&["vgs", "vg_extent_size", group])?[0][0]);
        let starts = report(&["pvs", "pv_name,pe_start"])?;
        let disks = self.disks();
        let place = |text: &str| {
            let (disk, first) = text.trim_end_matches(')').split_once('(').expect("DISK(EXTENT)");
            let start = starts.iter().find(|start| start[0] == disk).map(|start| number(&start[1]));
            let disk = disks.iter().position(|name| name == disk).expect("one of the disks");
            (disk, start.expect("a physical volume") + number(first) * extent)
        };
        let mut runs = Vec::new();
        for segment in report(&["lvs", "seg_size,stripe_size,devices", volume])? {
            let places: Vec<_> = segment[2].split(',').map(place).collect();
            let each = number(&segment[0]) / places.len() as u64;
            let chunk = if places.len() == 1 { each } else { number(&segment[1]) };
            for at in (0..each).step_by(chunk as usize) {
                runs.extend(places.iter().map(|(disk, start)| Run {
                    disk: *disk,
                    offset: start + at,
                    length: chunk,
                }));
            }
        }
        Ok(Runs { files: self.files.clone(), runs })
    }
}

impl Runs {
    /// The bytes of the volume.
    ///
    /// # Errors
    /// A disk cannot be read.
    pub fn read(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        for Run { disk, offset, length } in &self.runs {
            let mut piece = vec![0; *length as usize];
            self.file(*disk, |file| file.read_exact_at(&mut piece, *offset))?;
            bytes.extend(piece);
        }
        Ok(bytes)
    }

    /// Writes the front of the volume.
    ///
    /// # Errors
    /// A disk cannot be written.
    pub fn write(&self, mut bytes: &[u8]) -> Result<(), Error> {
        for Run { disk, offset, length } in &self.runs {
            let (piece, rest) = bytes.split_at(bytes.len().min(*length as usize));
            self.file(*disk, |file| file.write_all_at(piece, *offset))?;
            bytes = rest;
        }
        Ok(())
    }

    /// Whether a byte of a disk is one of the volume.
    #[must_use]
    pub fn have(&self, disk: usize, byte: u64) -> bool {
        self.runs
            .iter()
            .any(|run| run.disk == disk && (run.offset..run.offset + run.length).contains(&byte))
    }

    fn file(&self, disk: usize, act: impl FnOnce(&File) -> io::Result<()>) -> Result<(), Error> {
        let path = &self.files[disk];
        let opened = File::options().read(true).write(true).open(path);
        opened.and_then(|file| act(&file)).map_err(Error::io("cannot read or write", path))
    }
}

/// Fields of the lines of a report.
fn lines(report: &str) -> Vec<Vec<String>> {
    let lines =
        report.lines().map(str::trim).filter(|line| !line.is_empty() && !line.contains("WARNING"));
    lines.map(|line| line.split(';').map(|field| field.trim().to_owned()).collect()).collect()
}
