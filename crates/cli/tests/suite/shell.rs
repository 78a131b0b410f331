//! The shell as a program uses it: over pipes, with names of any bytes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::run::{Sample, program, sample, succeeds};

fn volume() -> Sample {
    sample(&["--size", "64M", "--mtime", "@0", "--owner", "0:0"])
}

fn script(sample: &Sample, bytes: &[u8]) -> Output {
    let mut shell = program();
    shell.args(["shell", &sample.image]);
    shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut shell = shell.spawn().unwrap();
    // One that ended with an error reads no further.
    let _ = shell.stdin.take().unwrap().write_all(bytes);
    shell.wait_with_output().unwrap()
}

/// Runs a script that must fail; returns its message.
#[track_caller]
fn error(sample: &Sample, bytes: &[u8]) -> String {
    let output = script(sample, bytes);
    assert_eq!(output.stdout, b"", "{}", bytes.escape_ascii());
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

/// A program that asks by a pipe gets each answer before the next question.
#[test]
fn answers_come_one_by_one() {
    let sample = volume();
    for options in [&[][..], &["--batch"], &["--read-only"]] {
        let mut shell = program();
        shell.args(["shell", &sample.image]).args(options);
        let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut questions = shell.stdin.take().unwrap();
        let answers = BufReader::new(shell.stdout.take().unwrap()).lines();
        let (sender, receiver) = mpsc::channel();
        let reader = thread::spawn(move || answers.for_each(|line| drop(sender.send(line))));
        for _ in 0..3 {
            for (question, answer) in [("ls /", "etc"), ("cat /etc/hosts", "127.0.0.1 localhost")] {
                writeln!(questions, "{question}").unwrap();
                let line = receiver.recv_timeout(Duration::from_secs(60)).unwrap().unwrap();
                assert_eq!(line, answer);
            }
        }
        drop(questions);
        assert!(shell.wait().unwrap().success());
        reader.join().unwrap();
    }
}

#[test]
fn names_are_bytes_and_are_listed_as_they_are() {
    let sample = volume();
    // As bytes, and as escapes, with and without quotation marks.
    let made = b"mkdir '/caf\xe9' \"/two words\\xff\" $'/line\\nbreak' /back\\\\slash\nls /\n";
    let output = script(&sample, made);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{message}");
    let listed = &b"back\\slash\ncaf\xe9\netc\nline\nbreak\ntwo words\xff\n"[..];
    assert_eq!(output.stdout, listed, "{}", output.stdout.escape_ascii());
    // Escapes of a message, and quotation marks of a terminal, lead there again.
    for name in ["\"/caf\\xe9\"", "$'/caf\\xe9'", "$'/line\\nbreak'", "'/back\\slash'"] {
        let output = script(&sample, format!("stat {name}\n").as_bytes());
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {message}");
    }
    let output = script(&sample, b"rm -r /caf\\xe9 \"/line\nbreak\" /back\\\\slash\n");
    assert!(String::from_utf8_lossy(&output.stderr).contains("line 1 of the script"));
    let gone = script(&sample, b"rm -r /caf\\xe9 /two\\ words\xff /line\\nbreak '/back\\slash'\n");
    assert!(gone.status.success(), "{}", String::from_utf8_lossy(&gone.stderr));
    assert_eq!(succeeds(["ls", &sample.image]), "etc\n");
}

#[test]
fn paths_start_at_the_current_directory() {
    let sample = volume();
    let lines = b"mkdir /a\nmkdir /a/b\nln -s /a/b /link\ncd a\npwd\nmkdir c\nls\ncd ../link\n\
        pwd\nfind\ncd ..\ndu\nls *\ncd\npwd\nls a\n?\n";
    let output = script(&sample, lines);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{message}");
    let text = String::from_utf8(output.stdout).unwrap();
    let told = "/a\nb\nc\n/a/b\n/a/b\n0\t/a/b\n0\t/a/c\n0\t/a\nb:\n\nc:\n/\nb\nc\n";
    assert!(text.starts_with(told), "{text}");
    assert!(text.contains("Go to a directory"), "{text}");
    for (line, why) in [("cd /etc/hosts", "not a directory"), ("cd /none", "no such file")] {
        let message = error(&sample, line.as_bytes());
        assert!(message.contains(why), "{message}");
    }
}

#[test]
fn lines_go_on_and_errors_name_them() {
    let sample = volume();
    let output = script(&sample, b"mkdir \\\r\n  /a \\\n  /b\nls \\\n/\n");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.stdout, b"a\nb\netc\n");
    // The line that a command begins in.
    let message = error(&sample, b"# a comment \\\n\nmkdir /c \\\n /d\nmkdir \\\n/a\n");
    assert!(message.starts_with("error: line 5 of the script: "), "{message}");
    assert!(message.contains("/a: exists already"), "{message}");
    let message = error(&sample, b"touch /caf\xe9\nrm /caf\xea\n");
    assert!(message.starts_with("error: line 2 of the script: "), "{message}");
    assert!(message.contains("/caf\\xea: no such file"), "{message}");
    let message = error(&sample, b"mkdir /e\nmkdir /f \\");
    assert!(
        message.contains("line 2 of the script: ") && message.contains("backslash"),
        "{message}"
    );
    let message = error(&sample, b"mkdir /g\n\n\ncat '/g\n");
    assert!(
        message.contains("line 4 of the script: ") && message.contains("quotation"),
        "{message}"
    );
}

/// What follows in a script is the standard input of its commands, too.
#[test]
fn a_command_may_read_the_rest_of_the_script() {
    let sample = volume();
    let output = script(&sample, b"put - /rest\nmkdir /never\n");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(succeeds(["cat", &sample.image, "/rest"]), "mkdir /never\n");
}
