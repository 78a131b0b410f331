//! Parameters of experiments at their ends: a run or an error, never a panic.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::process::Command;

/// A parameter and what it may be.
type Walk<'a> = (&'a str, &'a [&'a str]);

/// The arguments that make a run a short one, and the parameters to walk.
const WALKS: &[(&[&str], &[Walk<'_>])] = &[
    (
        &["alloc", "--case", "clean", "--variant", "near", "--files", "10", "--size", "512M"],
        &[
            ("--size", &["0", "1", "1M", "256M", "512M", "8E"]),
            ("--groups", &["0", "1", "2", "1000000", "4294967295"]),
            ("--writers", &["0", "1", "1024", "65535"]),
            ("--in-flight", &["0", "1", "1024", "65536"]),
            ("--files", &["0", "1", "99999999999"]),
            ("--spread", &["0", "10", "-1", "nan", "1e308"]),
            ("--header-writes", &["0", "1", "1.1", "nan"]),
            ("--seed", &["0", "18446744073709551615"]),
            ("--repeat", &["0", "1", "1001"]),
            ("--seconds", &["0", "-1", "nan", "inf", "1e300"]),
        ],
    ),
    (
        &["alloc", "--case", "pathological", "--variant", "near", "--size", "512M"],
        &[("--extents", &["0", "1", "2", "20000001"]), ("--memory", &["0", "1", "15E"])],
    ),
    (
        &["alloc", "--case", "sequential", "--variant", "near", "--seconds", "0.001"],
        &[("--size", &["0", "1", "1M", "512M"]), ("--memory", &["0", "1"])],
    ),
    (
        &["alloc", "--case", "random", "--variant", "indexed", "--files", "1"],
        &[("--size", &["0", "1M", "512M"])],
    ),
];

#[test]
fn extremes_are_runs_or_errors() {
    let mut faults = Vec::new();
    for (fixed, parameters) in WALKS {
        let mut runs = 0;
        for (name, values) in *parameters {
            // The last of two of a kind would be an error of its own.
            let at = fixed.iter().position(|word| word == name);
            let mut rest = fixed.to_vec();
            if let Some(at) = at {
                rest.drain(at..at + 2);
            }
            for value in *values {
                let mut lab = Command::new("timeout");
                lab.args(["60", env!("CARGO_BIN_EXE_undercroft"), "lab"]).args(&rest);
                let output = lab.args(["--smoke", &format!("{name}={value}")]).output().unwrap();
                let message = String::from_utf8_lossy(&output.stderr);
                runs += u32::from(output.status.success());
                let told = message.contains("error: ") && !message.contains("panicked");
                if !matches!((output.status.code(), told), (Some(0), _) | (Some(1 | 2), true)) {
                    faults.push(format!("{rest:?} {name}={value}: {:?}: {message}", output.status));
                }
            }
        }
        assert!(runs > 0, "{fixed:?}");
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
