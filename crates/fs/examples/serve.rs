//! A server in miniature: clients append records to files of their own and hear when each is
//! durable; one removes its file while it has it open. `cargo run --example serve -- disk.img`.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use tokio::task::{JoinSet, spawn_blocking};
use undercroft_block::{BlockDevice, FileDevice};
use undercroft_fs::{Existing, File, FileSystem, NewFile, OpenOptions};

/// Records that each client writes.
const RECORDS: usize = 20;

type Failure = Box<dyn Error + Send + Sync>;

/// What one client asks for. The calls that may wait for a disk run in threads for that; that
/// something is durable is awaited, and takes no thread.
async fn client(fs: FileSystem, number: usize) -> Result<u64, Failure> {
    let name = format!("client-{number}");
    let create = {
        let (fs, name) = (fs.clone(), name.clone());
        move || fs.nodes().create(fs.root(), name.as_bytes(), &NewFile::new(0o600), Existing::Open)
    };
    let (_, file) = spawn_blocking(create).await??;
    let file = Arc::new(file);
    for record in 0..RECORDS {
        let file = Arc::clone(&file);
        let append = move || -> Result<_, Failure> {
            file.append(format!("record {record}\n").as_bytes())?;
            Ok(file.fsync())
        };
        // Many clients wait here at a time: one write of the journal answers them all.
        spawn_blocking(append).await??.await?;
        if number == 0 && record == RECORDS / 2 {
            // The name is removed, the file stays as long as it is open.
            let (fs, name) = (fs.clone(), name.clone());
            spawn_blocking(move || fs.nodes().unlink(fs.root(), name.as_bytes())).await??;
        }
    }
    spawn_blocking(move || finish(&file)).await?
}

/// Reads back what a client wrote.
fn finish(file: &File) -> Result<u64, Failure> {
    let mut bytes = vec![0; file.size() as usize];
    file.read_exact_at(0, &mut bytes)?;
    let records = bytes.split(|byte| *byte == b'\n').filter(|record| !record.is_empty());
    match records.count() {
        RECORDS => Ok(file.size()),
        other => Err(format!("{other} records of {RECORDS}").into()),
    }
}

/// Serves `clients` clients on the volume that fills `device`; returns the bytes that they wrote.
pub(crate) fn serve(device: Arc<dyn BlockDevice>, clients: usize) -> Result<u64, Failure> {
    let fs = FileSystem::open(device, &OpenOptions::writable())?;
    let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(4).build()?;
    let served: Result<u64, Failure> = runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for number in 0..clients {
            tasks.spawn(client(fs.clone(), number));
        }
        let mut bytes = 0;
        while let Some(done) = tasks.join_next().await {
            bytes += done??;
        }
        Ok(bytes)
    });
    fs.close()?;
    served
}

#[allow(dead_code, reason = "a test includes this file for the function above")]
fn main() -> Result<(), Failure> {
    let image = std::env::args_os().nth(1).ok_or("usage: serve IMAGE")?;
    let bytes = serve(Arc::new(FileDevice::open(Path::new(&image), false)?), 8)?;
    println!("{bytes} bytes, all of them durable");
    Ok(())
}
