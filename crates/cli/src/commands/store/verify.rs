//! `undercroft verify`.

use super::{StoreArgs, open};
use crate::progress::Progress;
use crate::report::{self, Outcome};
use anyhow::Result;
use serde::Serialize;
use std::io::Write;
use undercroft_store::{Digest, Reference, Repository, Verified};

/// Read all chunks of images that were published, and compare them with their manifests.
///
/// Without @NAME all images of a store are read, those without a name, too. Each chunk that is missing or
/// was altered is a line; `undercroft publish` puts missing ones there again. An altered one has to be deleted
/// before that, since it has the name of a chunk that is there.
///
/// Exit status: 0 all is as it was published, 1 chunks are missing or were altered.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(in super::super) struct Args {
    /// All of a store, s3://BUCKET/PREFIX, gs://, az://, or a directory; with @NAME behind it one image.
    #[arg(value_name = "STORE[@NAME]")]
    source: String,

    #[command(flatten)]
    store: StoreArgs,
}

const EXAMPLES: &str = "\
Examples:
  undercroft verify s3://bucket/images@v1
  undercroft publish root.img store@v1 && undercroft verify store";

/// An image, as JSON.
#[derive(Serialize)]
struct Report {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    names: Vec<String>,
    digest: String,
    chunks: u64,
    faults: Vec<Fault>,
}

#[derive(Serialize)]
struct Fault {
    chunk: u64,
    error: String,
}

pub(in super::super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let (repository, reference) = open(&args.source)?;
    let mut outcome = Outcome::Done;
    for (names, digest) in images(&repository, reference)? {
        let bar = Progress::new();
        let verified = undercroft_store::verify(&repository, &digest, &mut |done, all| {
            bar.show_bytes(done, all);
        });
        drop(bar);
        let verified = verified?;
        if !verified.faults.is_empty() {
            outcome = Outcome::Findings;
        }
        print(args, names, &digest, &verified, out)?;
    }
    args.store.print_stats(out)?;
    Ok(outcome)
}

/// The images that are meant, with the names that were asked for or all that they have.
fn images(
    repository: &Repository,
    reference: Option<Reference>,
) -> Result<Vec<(Vec<String>, Digest)>> {
    if let Some(reference) = reference {
        let names = match &reference {
            Reference::Name(name) => vec![name.clone()],
            Reference::Pinned(_) => Vec::new(),
        };
        return Ok(vec![(names, repository.resolve(&reference)?)]);
    }
    let mut images: Vec<_> =
        repository.manifests()?.into_iter().map(|digest| (Vec::new(), digest)).collect();
    for name in repository.names()? {
        let digest = repository.resolve(&Reference::Name(name.clone()))?;
        match images.iter_mut().find(|(_, other)| *other == digest) {
            Some((names, _)) => names.push(name),
            None => images.push((vec![name], digest)),
        }
    }
    Ok(images)
}

fn print(
    args: &Args,
    names: Vec<String>,
    digest: &Digest,
    verified: &Verified,
    out: &mut dyn Write,
) -> Result<()> {
    let Verified { chunks, faults } = verified;
    if args.store.json {
        let fault = |fault: &undercroft_store::ChunkFault| Fault {
            chunk: fault.number,
            error: fault.error.to_string(),
        };
        let faults = faults.iter().map(fault).collect();
        let digest = digest.to_string();
        return Ok(report::json_line(out, &Report { names, digest, chunks: *chunks, faults })?);
    }
    for fault in faults {
        writeln!(out, "chunk {} of the image: {}", fault.number, fault.error)?;
    }
    let names = if names.is_empty() { String::new() } else { format!("{} ", names.join(" ")) };
    let bad = faults.len();
    writeln!(out, "{names}sha256:{digest}: {chunks} chunks, {bad} bad")?;
    Ok(())
}
