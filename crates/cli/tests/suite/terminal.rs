//! The shell on a terminal: typed text is completed, remembered, corrected and given up.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use undercroft_judges::Xfsprogs;

use crate::run::{Sample, sample, succeeds};

const PROMPT: &str = "undercroft> ";
/// Keys, as a terminal sends them.
const ENTER: &str = "\r";
const UP: &str = "\x1b[A";
const LEFT: &str = "\x1b[D";
const BACKSPACE: &str = "\x7f";
const LINE_START: &str = "\x01";
const INTERRUPT: &str = "\x03";
const END: &str = "\x04";

/// A shell whose terminal is this test.
struct Terminal {
    shell: Child,
    keys: File,
    screen: Receiver<Vec<u8>>,
    /// Output, from an incomplete control sequence on.
    rest: String,
    /// Earlier output that was not looked for yet, without control sequences.
    text: String,
}

impl Terminal {
    fn shell(image: &str) -> Self {
        let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keys).unwrap();
        unlockpt(&keys).unwrap();
        let name = ptsname(&keys, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY;
        let terminal = File::from(rustix::fs::open(&*name, flags, Mode::empty()).unwrap());
        // Lines with paths of this machine must fit: no output is folded then.
        let size = Winsize { ws_row: 50, ws_col: 500, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&terminal, size).unwrap();
        let shell = Command::new("setsid")
            .args(["--ctty", "--wait", env!("CARGO_BIN_EXE_undercroft"), "shell", image])
            .env("TERM", "xterm")
            .stdin(terminal.try_clone().unwrap())
            .stdout(terminal.try_clone().unwrap())
            .stderr(terminal)
            .spawn()
            .unwrap();
        let keys = File::from(keys);
        let mut output = keys.try_clone().unwrap();
        let (sender, screen) = mpsc::channel();
        // Ends with the shell: no program has the terminal open then.
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(len @ 1..) = output.read(&mut bytes) {
                if sender.send(bytes[..len].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { shell, keys, screen, rest: String::new(), text: String::new() }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Takes the output; sequences that move the cursor, or set modes, are dropped.
    fn show(&mut self, printed: &str) {
        self.rest.push_str(printed);
        while let Some(at) = self.rest.find('\x1b') {
            self.text.extend(self.rest.drain(..at));
            // ESC [ parameters letter.
            let ends = |letter: char| letter.is_ascii_alphabetic();
            let Some(end) = self.rest.find(ends) else { return };
            self.rest.drain(..=end);
        }
        self.text.push_str(&std::mem::take(&mut self.rest));
        self.text.retain(|letter| letter != '\r');
    }

    /// Waits until this is printed; returns what came before it.
    #[track_caller]
    fn expect(&mut self, wanted: &str) -> String {
        loop {
            if let Some(at) = self.text.find(wanted) {
                let before = self.text[..at].to_owned();
                self.text.drain(..at + wanted.len());
                return before;
            }
            match self.screen.recv_timeout(Duration::from_secs(60)) {
                Ok(bytes) => self.show(&String::from_utf8_lossy(&bytes)),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("{wanted:?} is not in {:?}", self.text)
                }
            }
        }
    }

    /// Waits for the prompt behind a line that was entered; returns what the command printed.
    #[track_caller]
    fn answer(&mut self) -> String {
        self.press(ENTER);
        // The end of the line that was typed, then output, then the next prompt.
        self.expect("\n");
        self.expect(PROMPT)
    }

    /// Types a line, enters it, and returns its output.
    #[track_caller]
    fn line(&mut self, line: &str) -> String {
        self.press(line);
        self.answer()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Of a test that failed; else the shell is gone.
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

fn volume() -> (Sample, Terminal) {
    let sample = sample(&["--size", "64M", "--mtime", "@0", "--owner", "0:0"]);
    let mut terminal = Terminal::shell(&sample.image);
    terminal.expect(PROMPT);
    (sample, terminal)
}

/// The end of the input ends the shell, and the volume was unmounted.
#[track_caller]
fn leaves(mut terminal: Terminal, sample: &Sample, last: &str) {
    terminal.press(last);
    assert!(terminal.shell.wait().unwrap().success());
    let report = succeeds(["check", &sample.image]);
    assert!(report.starts_with("clean: "), "{report}");
    Xfsprogs::newest().unwrap().repair_check(Path::new(&sample.image)).unwrap();
}

#[test]
fn commands_and_paths_are_completed() {
    let (sample, mut terminal) = volume();
    terminal.press("mkd\t");
    terminal.expect("undercroft> mkdir ");
    assert_eq!(terminal.line("/etc/deeper"), "");
    // A directory ends in a slash, so that the path can go on; a file in a space.
    terminal.press("cat /et\t");
    terminal.expect("cat /etc/");
    terminal.press("ho\t");
    terminal.expect("cat /etc/hosts ");
    let content = terminal.answer();
    assert!(content.contains("127.0.0.1 localhost"), "{content:?}");
    // Of several, one after the other.
    terminal.press("ls /etc/de\t");
    terminal.expect("ls /etc/deep/");
    terminal.press("\t");
    terminal.expect("ls /etc/deeper/");
    assert_eq!(terminal.answer(), "");
    // A relative path, and what nothing begins with.
    terminal.press("ls et\t");
    terminal.expect("ls etc/");
    terminal.press("nothing\t");
    let error = terminal.answer();
    assert!(error.contains("error: ") && error.contains("etc/nothing"), "{error:?}");
    leaves(terminal, &sample, END);
}

#[test]
fn odd_names_options_and_paths_of_this_machine_are_completed() {
    let (sample, mut terminal) = volume();
    assert_eq!(terminal.line(r"mkdir '/two words' $'/caf\xe9'"), "");
    // As they are printed, they are read again.
    let names = terminal.line("ls /");
    let names: Vec<&str> = names.lines().map(str::trim).filter(|name| !name.is_empty()).collect();
    assert_eq!(names, [r"$'caf\xe9'", "etc", "'two words'"]);
    terminal.press("mkdir /caf\t");
    terminal.expect(r"mkdir $'/caf\xe9/");
    assert_eq!(terminal.line("deep'"), "");
    terminal.press("cd /tw\t");
    terminal.expect("cd '/two words/");
    assert_eq!(terminal.line("'"), "");
    assert_eq!(terminal.line("pwd").trim(), "'/two words'");
    terminal.press("put --for\t");
    terminal.expect("put --force ");
    let (directory, _) = sample.image.rsplit_once('/').unwrap();
    std::fs::write(format!("{directory}/odd name"), "text").unwrap();
    terminal.press(&format!("{directory}/od\t"));
    terminal.expect(&format!("'{directory}/odd name' "));
    assert_eq!(terminal.line("motd"), "");
    assert_eq!(terminal.line("cat mo\t").trim(), "text");
    leaves(terminal, &sample, END);
    assert_eq!(succeeds(["ls", &sample.image, "/two words"]), "motd\n");
    assert_eq!(succeeds(["ls", &sample.image, "/caf?"]), "deep\n");
}

#[test]
fn lines_are_remembered_and_corrected() {
    let (sample, mut terminal) = volume();
    assert_eq!(terminal.line("mkdir /first"), "");
    // The line before, with another end.
    terminal.press(UP);
    terminal.expect("mkdir /first");
    terminal.press(&BACKSPACE.repeat("first".len()));
    assert_eq!(terminal.line("second"), "");
    // Two lines back, and a letter in the middle.
    terminal.press(&UP.repeat(2));
    terminal.expect("mkdir /first");
    terminal.press(&LEFT.repeat("rst".len()));
    assert_eq!(terminal.line("e"), "");
    // At the start of a line.
    terminal.press("dir /third");
    terminal.press(LINE_START);
    assert_eq!(terminal.line("mk"), "");
    let names = terminal.line("ls /");
    let names: Vec<&str> = names.split_whitespace().collect();
    assert_eq!(names, ["etc", "fierst", "first", "second", "third"]);
    leaves(terminal, &sample, "exit\r");
}

#[test]
fn errors_are_told_and_lines_given_up() {
    let (sample, mut terminal) = volume();
    for (line, told) in [
        ("cat /none", "/none"),
        ("bogus", "bogus"),
        ("mkdir 'open", "a quotation mark is left open"),
        ("mkdir", "required"),
        ("mkdir /etc", "/etc"),
    ] {
        let error = terminal.line(line);
        assert!(error.contains("error: ") && error.contains(told), "{line}: {error:?}");
        assert!(!error.contains("panicked"), "{error:?}");
    }
    // A line that is given up does nothing; nor does an empty one.
    terminal.press("mkdir /never");
    terminal.expect("/never");
    terminal.press(INTERRUPT);
    terminal.expect(PROMPT);
    assert_eq!(terminal.line(""), "");
    assert!(terminal.line("ls /").contains("etc"));
    let help = terminal.line("help");
    assert!(help.contains("mkdir") && help.contains("exit"), "{help}");
    leaves(terminal, &sample, END);
    assert_eq!(succeeds(["ls", &sample.image]), "etc\n");
}
