//! A way to a server of HTTP: it can be slow, fail, cut bodies, and lie about them.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::Error;

use super::answer;
use super::asked::Asked;

/// What becomes of a request or its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// All is well.
    None,
    /// The server is not asked; this is the status of the answer.
    Status(u16),
    /// The answer ends in the middle of its body.
    Cut,
    /// The tag of the object is another one, whatever was asked for.
    OtherTag,
    /// A byte of the body is another one.
    Flip,
    /// There is one byte less in the body, and the head says so; but not of the whole object.
    Shorter,
}

type Before = Box<dyn FnMut(&Asked) -> Fault + Send>;
type After = Box<dyn FnMut(&Asked) + Send>;

/// A port of 127.0.0.1 behind which a server is, or a file.
pub struct Way {
    port: u16,
    shared: Arc<Shared>,
}

enum Behind {
    Server(u16),
    File(PathBuf),
}

struct Shared {
    behind: Behind,
    before: Mutex<Before>,
    after: Mutex<After>,
    asked: AtomicU64,
    /// Microseconds before each answer.
    delay: AtomicU64,
    /// Bytes a second of all answers together; 0 is no limit.
    speed: AtomicU64,
    /// When the wire is free again.
    free_at: Mutex<Instant>,
    ended: AtomicBool,
}

impl Way {
    /// One to a server on a port of this machine.
    ///
    /// # Errors
    /// No port can be had.
    pub fn to_server(port: u16) -> Result<Self, Error> {
        Self::new(Behind::Server(port))
    }

    /// One to a file, whatever path is asked for.
    ///
    /// # Errors
    /// No port can be had.
    pub fn to_file(path: &Path) -> Result<Self, Error> {
        Self::new(Behind::File(path.to_owned()))
    }

    fn new(behind: Behind) -> Result<Self, Error> {
        let failed = || Error::io("cannot listen on", Path::new("127.0.0.1"));
        let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(failed())?;
        let port = listener.local_addr().map_err(failed())?.port();
        let shared = Arc::new(Shared {
            behind,
            before: Mutex::new(Box::new(|_| Fault::None)),
            after: Mutex::new(Box::new(|_| ())),
            asked: AtomicU64::new(0),
            delay: AtomicU64::new(0),
            speed: AtomicU64::new(0),
            free_at: Mutex::new(Instant::now()),
            ended: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming() {
                if accepting.ended.load(Ordering::SeqCst) {
                    return;
                }
                let (Ok(client), shared) = (client, Arc::clone(&accepting)) else { continue };
                // A client that goes away is its own matter.
                thread::spawn(move || while shared.answer(&client).unwrap_or(false) {});
            }
        });
        Ok(Self { port, shared })
    }

    /// Its port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Says what becomes of each request from now on.
    pub fn before(&self, before: impl FnMut(&Asked) -> Fault + Send + 'static) {
        *lock(&self.shared.before) = Box::new(before);
    }

    /// Is told of each request that the server has answered, before the client knows.
    pub fn after(&self, after: impl FnMut(&Asked) + Send + 'static) {
        *lock(&self.shared.after) = Box::new(after);
    }

    /// Makes each answer take so long, and all of them together no more than so many bytes a second.
    pub fn slow(&self, delay: Duration, bytes_per_second: u64) {
        let delay = u64::try_from(delay.as_micros()).unwrap_or(u64::MAX);
        self.shared.delay.store(delay, Ordering::SeqCst);
        self.shared.speed.store(bytes_per_second, Ordering::SeqCst);
    }

    /// Requests that came.
    #[must_use]
    pub fn asked(&self) -> u64 {
        self.shared.asked.load(Ordering::SeqCst)
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        // The thread that accepts looks at it with the next connection.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Shared {
    /// Answers one request; whether another may follow on this connection.
    fn answer(&self, mut client: &TcpStream) -> io::Result<bool> {
        let Some((asked, body)) = Asked::read(client, &self.asked)? else { return Ok(false) };
        let fault = lock(&self.before)(&asked);
        let delay = Duration::from_micros(self.delay.load(Ordering::SeqCst));
        let answer = match fault {
            Fault::Status(status) => answer::head(&format!("{status} Fault"), &[], 0),
            _ => match &self.behind {
                Behind::File(path) => answer::of_file(path, &without_condition(&asked, fault))?,
                Behind::Server(port) => pass_on(*port, &without_condition(&asked, fault), &body)?,
            },
        };
        lock(&self.after)(&asked);
        thread::sleep(delay);
        let answer = spoiled(answer, fault);
        // The wire is one: answers come in turns.
        let speed = self.speed.load(Ordering::SeqCst);
        for piece in answer.chunks(64 << 10) {
            if let Some(time) = (piece.len() as u64 * 1_000_000_000).checked_div(speed) {
                let time = Duration::from_nanos(time);
                let mut free_at = lock(&self.free_at);
                *free_at = (*free_at).max(Instant::now()) + time;
                let until = *free_at;
                drop(free_at);
                thread::sleep(until.saturating_duration_since(Instant::now()));
            }
            client.write_all(piece)?;
        }
        Ok(false)
    }
}

/// A server that lies about tags does not compare them either.
fn without_condition(asked: &Asked, fault: Fault) -> Asked {
    let mut asked = asked.clone();
    if fault == Fault::OtherTag {
        asked.headers.retain(|(name, _)| name != "if-match");
    }
    asked
}

/// The answer of a server.
fn pass_on(port: u16, asked: &Asked, body: &[u8]) -> io::Result<Vec<u8>> {
    let mut server = TcpStream::connect(("127.0.0.1", port))?;
    let mut head = format!("{} {} HTTP/1.1\r\n", asked.method, asked.target);
    for (name, value) in asked.headers.iter().filter(|(name, _)| name != "connection") {
        head.extend([name, ": ", value, "\r\n"]);
    }
    head.push_str("connection: close\r\n\r\n");
    server.write_all(head.as_bytes())?;
    server.write_all(body)?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer)?;
    Ok(answer)
}

fn spoiled(mut answer: Vec<u8>, fault: Fault) -> Vec<u8> {
    let body = answer.windows(4).position(|end| end == b"\r\n\r\n").map_or(0, |at| at + 4);
    let length = answer.len() - body;
    match fault {
        Fault::None | Fault::Status(_) => {}
        Fault::Cut => answer.truncate(body + length / 2),
        Fault::Flip if length > 0 => answer[body + length / 2] ^= 1,
        Fault::Flip => {}
        Fault::OtherTag | Fault::Shorter => {
            let (head, rest) = answer.split_at(body);
            let mut rest = rest.to_vec();
            if fault == Fault::Shorter {
                rest.pop();
            }
            let head = String::from_utf8_lossy(head).into_owned();
            let lines = head.split_inclusive("\r\n").map(|line| {
                match line.split_once(':').map(|(name, _)| name.to_ascii_lowercase()).as_deref() {
                    Some("etag") if fault == Fault::OtherTag => "ETag: \"another\"\r\n".to_owned(),
                    Some("content-length") if fault == Fault::Shorter => {
                        format!("Content-Length: {}\r\n", rest.len())
                    }
                    _ => line.to_owned(),
                }
            });
            answer = lines.collect::<String>().into_bytes();
            answer.extend(rest);
        }
    }
    answer
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
