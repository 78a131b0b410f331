//! `undercroft lab report`.

use super::plan::{self, Length, Step};
use super::table;
use crate::output_file;
use crate::report::Outcome;
use anyhow::{Context, Result, bail};
use clap::Parser;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use undercroft_lab::mount::missing as missing_for_mount;
use undercroft_lab::{
    Outcome as Found, Record, Scratch, Session, calibrate, document, page, read_records,
    write_record,
};

/// Run all experiments and make one page of them: published beside measured.
///
/// The page is one file of HTML without scripts, and loads nothing. It has a chapter for each
/// experiment: the question, the published figures, what was measured here, claims with the rules
/// that decide on them, plots, and the command that repeats it. The records are inside: other
/// commands of the laboratory read them from the page.
///
/// It takes some four minutes, with --full about an hour for narrower intervals; an interrupted run
/// goes on with --resume.
///
/// Figures need a quiet machine; the page says how much a fixed loop beside them varied.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The page to write; with the suffix .md claims and figures in Markdown, without pictures and records.
    #[arg(long, short, value_name = "FILE", required_unless_present = "records")]
    output: Option<PathBuf>,

    /// Every experiment, small. The default.
    #[arg(long, group = "length")]
    quick: bool,

    /// The parameters of the sources, with many runs.
    #[arg(long, group = "length")]
    full: bool,

    /// Every variant for milliseconds: to see that it works.
    #[arg(long, group = "length")]
    smoke: bool,

    /// Go on with a run that was interrupted: its steps are in FILE.partial.
    #[arg(long)]
    resume: bool,

    /// Make the page of these records instead of running anything; a page of this command will do.
    #[arg(long, value_name = "RECORDS", conflicts_with_all = ["length", "resume", "on", "source", "scratch"])]
    from: Option<PathBuf>,

    /// Print the records inside this page, and do nothing else.
    #[arg(long, value_name = "PAGE", conflicts_with_all = ["output", "length", "resume", "from", "on", "source", "scratch", "force"])]
    records: Option<PathBuf>,

    /// Run the experiments on files in this directory of a mounted file system, too.
    #[arg(long, value_name = "DIR")]
    on: Option<PathBuf>,

    /// Build the tree in this archive on mounted volumes, instead of one that is generated.
    #[arg(long, value_name = "TAR")]
    source: Option<PathBuf>,

    /// Make volumes in this directory.
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,

    /// Replace the page if it is there.
    #[arg(long)]
    force: bool,
}

const EXAMPLES: &str = "\
Examples:
  undercroft lab report -o report.html
  undercroft lab report --records report.html > records.jsonl
  undercroft lab report --from records.jsonl -o again.html     the same page, from records alone
  undercroft lab report --from report.html -o report.md        its claims and figures as a document";

/// The words of a step.
#[derive(Parser)]
#[command(name = "undercroft lab", no_binary_name = true)]
struct StepLine {
    #[command(subcommand)]
    command: super::Command,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    if let Some(page) = &args.records {
        for record in table::read(page)? {
            write_record(out, &record)?;
        }
        return Ok(Outcome::Done);
    }
    let output = args.output.as_deref().context("name the page to write: -o FILE")?;
    output_file::check(output, args.force)?;
    if let Some(from) = &args.from {
        write_page(output, &table::read(from)?, args.force)?;
    } else {
        let partial = partial_of(output);
        let records = run_steps(args, &partial)?;
        write_page(output, &records, args.force)?;
        fs::remove_file(&partial)
            .with_context(|| format!("cannot remove {}", partial.display()))?;
    }
    writeln!(out, "{}: written", output.display())?;
    Ok(Outcome::Done)
}

fn write_page(output: &Path, records: &[Record], force: bool) -> Result<()> {
    let is_document = output.extension().is_some_and(|extension| extension == "md");
    let text = if is_document { document(records) } else { page(records)? };
    output_file::write(output, text.as_bytes(), force)
}

/// The file that holds the records of a run while it lasts.
fn partial_of(output: &Path) -> PathBuf {
    let mut name = OsString::from(output);
    name.push(".partial");
    name.into()
}

/// Runs the steps that `partial` does not have yet; its records at the end.
fn run_steps(args: &Args, partial: &Path) -> Result<Vec<Record>> {
    let length = match (args.full, args.smoke) {
        (true, _) => Length::Full,
        (_, true) => Length::Smoke,
        _ => Length::Quick,
    };
    let steps = plan::steps(length, args.on.as_deref(), args.source.as_deref());
    let done = begin(partial, args.resume, args.force)?;
    let left: Vec<&Step> =
        steps.iter().filter(|step| !is_done(step, &done) && can_run(step)).collect();
    let scratch = Scratch::new_in(&args.scratch.clone().unwrap_or_else(std::env::temp_dir))
        .context("cannot make a directory for volumes; see --scratch")?;
    let mut file = File::options().append(true).open(partial);
    let file = file.as_mut().map_err(|error| anyhow::anyhow!("{}: {error}", partial.display()))?;
    let mut progress = Progress::new(left.iter().map(|step| step.seconds).sum());
    for (number, step) in left.iter().enumerate() {
        progress.show(number + 1, left.len(), step);
        let records = run_step(step, scratch.path()).with_context(|| {
            format!("{}; the steps before are kept: --resume goes on", step.command())
        })?;
        // All records of a step in one piece: an interrupted one leaves none.
        let mut lines = Vec::new();
        for record in &records {
            write_record(&mut lines, record)?;
        }
        file.write_all(&lines).with_context(|| format!("cannot write {}", partial.display()))?;
        progress.passed(step);
    }
    read_partial(partial)
}

/// Makes the file for records, or goes on with it; its records so far.
fn begin(partial: &Path, resume: bool, force: bool) -> Result<Vec<Record>> {
    match (partial.exists(), resume) {
        (true, true) => read_partial(partial),
        (true, false) if !force => bail!(
            "{}: an interrupted run left it; --resume goes on with it, --force begins anew",
            partial.display()
        ),
        (false, true) => bail!("{}: there is no run to go on with", partial.display()),
        _ => {
            File::create(partial).with_context(|| format!("cannot write {}", partial.display()))?;
            Ok(Vec::new())
        }
    }
}

fn read_partial(partial: &Path) -> Result<Vec<Record>> {
    let text = fs::read_to_string(partial);
    let text = text.with_context(|| format!("cannot read {}", partial.display()))?;
    read_records(&mut text.as_bytes()).with_context(|| partial.display().to_string())
}

/// Whether the records have the last one of this step.
fn is_done(step: &Step, records: &[Record]) -> bool {
    records.iter().any(|record| {
        matches!(&record.outcome, Found::Calibration(of) if of.step == step.name)
            && record.session.command == step.command()
    })
}

/// Whether this machine has what the step needs; says what it has not. The chapter stays, without
/// records.
fn can_run(step: &Step) -> bool {
    let missing = if step.name == plan::MOUNT { missing_for_mount() } else { None };
    if let Some(missing) = &missing {
        eprintln!("{} is left out: {missing}", step.command());
    }
    missing.is_none()
}

/// Runs the command as it stands, and times the fixed loop behind it.
fn run_step(step: &Step, scratch: &Path) -> Result<Vec<Record>> {
    let mut words = step.words_in(scratch);
    words.extend(["--json".to_owned(), "--quiet".to_owned()]);
    let line = StepLine::try_parse_from(&words)?;
    let mut lines = Vec::new();
    super::run_command(&line.command, &mut lines)?;
    let mut records = read_records(&mut lines.as_slice())?;
    let seed = records.first().map_or(0, |record| record.session.seed);
    for record in &mut records {
        record.session.command = step.command();
    }
    let session = match records.first() {
        Some(record) => record.session.clone(),
        None => Session::begin(step.command(), seed)?,
    };
    records.push(Record { outcome: calibrate(step.name), session });
    Ok(records)
}

/// Steps on the terminal, with the time that is left.
struct Progress {
    shown: bool,
    began: Instant,
    /// Seconds planned for the steps that passed, and for all.
    passed: u32,
    all: u32,
}

impl Progress {
    fn new(all: u32) -> Self {
        Self { shown: io::stderr().is_terminal(), began: Instant::now(), passed: 0, all }
    }

    fn show(&self, number: usize, count: usize, step: &Step) {
        if self.shown {
            let planned = f64::from(self.all - self.passed);
            // As fast as the plan, until a step has shown how fast this machine is.
            let pace = match self.passed {
                0 => 1.0,
                passed => self.began.elapsed().as_secs_f64() / f64::from(passed),
            };
            let left = Duration::from_secs_f64(planned * pace);
            let (minutes, seconds) = (left.as_secs() / 60, left.as_secs() % 60);
            eprintln!("{number} of {count}: {}; some {minutes}:{seconds:02} left", step.name);
        }
    }

    fn passed(&mut self, step: &Step) {
        self.passed += step.seconds;
    }
}
