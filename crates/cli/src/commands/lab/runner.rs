//! What all experiments share: common options, and where their outcomes go.

use crate::output_file;
use crate::value;
use anyhow::{Context, Result};
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;
use undercroft_lab::{Destination, LabError, Outcome, Record, RunOptions, Session, Size};
use undercroft_lab::{write_record, write_tables};

/// Options of every experiment.
#[derive(clap::Args)]
#[command(next_help_heading = "Runs and results")]
pub(super) struct CommonArgs {
    /// Print records, one JSON object a line, instead of a table.
    #[arg(long)]
    json: bool,

    /// Add the records to this file, too.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Do not count outcomes on the terminal.
    #[arg(long)]
    quiet: bool,

    /// Run every variant once for milliseconds: to see that it works, not how fast.
    #[arg(long)]
    smoke: bool,

    /// How often each variant runs; the variants take turns.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: Option<u32>,

    /// Length of one run of one variant in seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    seconds: Option<Duration>,

    /// Seed of everything random in the workload.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Where an experiment on files runs.
#[derive(clap::Args)]
pub(super) struct PlaceArgs {
    /// Work on the volume in this file; made if there is none.
    #[arg(long, value_name = "FILE", required_unless_present = "on")]
    image: Option<PathBuf>,

    /// Size of a volume that is made.
    #[arg(long, value_name = "BYTES", value_parser = value::size, default_value = "4G")]
    image_size: u64,

    /// Work in this directory.
    #[arg(long, value_name = "DIRECTORY")]
    on: Option<PathBuf>,
}

impl PlaceArgs {
    /// The directory first, with which others are compared.
    pub(super) fn places(&self) -> Vec<Destination> {
        let image = self.image.clone().map(|path| Destination::Image(path, self.image_size));
        self.on.clone().map(Destination::Directory).into_iter().chain(image).collect()
    }
}

/// A length of time of up to an hour.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "write a number, such as 0.5".to_owned())?;
    if !(0.001..=3600.0).contains(&seconds) {
        return Err("a run lasts from 0.001 to 3600 seconds".to_owned());
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// Runs `experiment`; it hands over outcomes as it finds them. Records are written at once, so that
/// those of an interrupted run are not lost; the table is printed at the end.
pub(super) fn run(
    args: &CommonArgs,
    out: &mut dyn Write,
    experiment: impl FnOnce(&RunOptions, &mut dyn FnMut(Outcome)) -> Result<(), LabError>,
) -> Result<()> {
    let options = RunOptions {
        size: if args.smoke { Size::Smoke } else { Size::Full },
        repeat: args.repeat.map(|repeat| repeat as usize),
        duration: args.seconds,
        seed: args.seed,
    };
    let session = Session::begin(command(), args.seed)?;
    let mut file = args.record.as_ref().map(open_records).transpose()?;
    let mut records = Vec::new();
    let mut failed = Ok(());
    let progress = !args.quiet && io::stderr().is_terminal();
    experiment(&options, &mut |outcome| {
        let record = Record { outcome, session: session.clone() };
        let written = [
            args.json.then(|| write_record(out, &record).and_then(|()| flush(out))),
            file.as_mut().map(|file| write_record(file, &record).and_then(|()| flush(file))),
        ];
        if let (Ok(()), Some(error)) =
            (&failed, written.into_iter().flatten().find_map(Result::err))
        {
            failed = Err(error);
        }
        records.push(record);
        if progress {
            eprint!("\r{} outcomes ", records.len());
        }
    })?;
    if progress {
        eprintln!();
    }
    failed?;
    if !args.json {
        write_tables(&records, out)?;
    }
    Ok(())
}

/// Prints an outcome that came of its own accord: as a record, or as a table.
pub(super) fn report(outcome: Outcome, seed: u64, json: bool, out: &mut dyn Write) -> Result<()> {
    let record = Record { outcome, session: Session::begin(command(), seed)? };
    if json {
        write_record(out, &record)?;
    } else {
        write_tables(&[record], out)?;
    }
    Ok(())
}

fn flush(out: &mut dyn Write) -> Result<(), LabError> {
    out.flush().map_err(LabError::Write)
}

fn open_records(path: &PathBuf) -> Result<BufWriter<File>> {
    output_file::check_no_volume(path)?;
    let file = File::options().append(true).create(true).open(path);
    Ok(BufWriter::new(file.with_context(|| format!("cannot write {}", path.display()))?))
}

/// The command line, without the directory of the program.
fn command() -> String {
    let mut words: Vec<String> =
        std::env::args_os().map(|w| w.to_string_lossy().into_owned()).collect();
    if let Some(program) = words.first_mut() {
        *program = "undercroft".to_owned();
    }
    words.join(" ")
}

/// The values chosen, or the defaults if there are none.
pub(super) fn chosen_or<A: Copy + Into<T>, T: Copy>(chosen: &[A], defaults: &[T]) -> Vec<T> {
    if chosen.is_empty() {
        return defaults.to_vec();
    }
    chosen.iter().map(|&one| one.into()).collect()
}
