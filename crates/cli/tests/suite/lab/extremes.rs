//! Parameters of experiments at their ends: a run or an error, never a panic.

use std::process::Command;

/// A parameter and its allowed values.
type Walk<'a> = (&'a str, &'a [&'a str]);

/// The arguments that make a run a short one, and the parameters to walk.
const WALKS: &[(&[&str], &[Walk<'_>])] = &[
    (
        &["tags", "--case", "depth", "--policy", "counters", "--seconds", "0.001"],
        &[
            ("--case", &["depth", "shared", "herd", "fairness", "variability", "none"]),
            ("--policy", &["counters", "cyclic-8", "cyclic-1", "wake-one", "wake-all", ""]),
            ("--waiters", &["threads", "tasks", "nobody"]),
            ("--seed", &["0", "18446744073709551615", "18446744073709551616", "-1"]),
            ("--repeat", &["0", "1", "3", "1001", "4294967296"]),
            ("--seconds", &["0", "0.001", "0.0009", "3601", "-1", "nan", "inf", "1e300"]),
            ("--record", &["/", "/none/record", ""]),
        ],
    ),
    // The crowd of each case, with the longest way to sleep and to be woken.
    (
        &["tags", "--case", "herd", "--waiters", "tasks", "--seconds", "0.001"],
        &[("--policy", &["wake-all", "cyclic-8"]), ("--repeat", &["2"])],
    ),
    (
        &["affinity", "--workload", "cached", "--mechanism", "threads", "--seconds", "0.001"],
        &[
            ("--workload", &["large", "cached", "none"]),
            ("--mechanism", &["threads", "ring-messages", ""]),
            ("--seed", &["0", "18446744073709551615", "-1"]),
            ("--repeat", &["0", "1", "2", "1001", "4294967296"]),
            ("--seconds", &["0", "0.001", "0.0009", "3601", "-1", "nan", "inf", "1e300"]),
            ("--record", &["/", "/none/record", ""]),
        ],
    ),
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
    (
        &["iops", "--driver", "null", "--threads", "1", "--batch", "1", "--seconds", "0.001"],
        &[
            ("--threads", &["0", "1", "4294967296"]),
            ("--batch", &["0", "1", "7", "1000000", "18446744073709551615"]),
            ("--block", &["0", "1", "511", "512", "1024", "1M", "8E"]),
        ],
    ),
    (
        &["iops", "--driver", "file-threads", "--file", "FILE", "--threads", "1"],
        &[("--file-size", &["0", "1", "4096", "8E"]), ("--block", &["0", "512", "1G"])],
    ),
    (
        &["unplug", "--leaves", "2", "--threads", "2", "--seconds", "0.001"],
        &[
            ("--leaves", &["0", "1", "4294967296"]),
            ("--threads", &["0", "1", "100000"]),
            ("--service", &["0", "-1", "nan", "18446744073709551615"]),
        ],
    ),
    (
        &["fsync", "--image", "FILE", "--image-size", "320M", "--mode", "async", "--files", "10"],
        &[
            ("--files", &["0", "1", "18446744073709551615"]),
            ("--threads", &["0", "1", "100000"]),
            ("--size", &["0", "1", "300M", "8E"]),
            ("--directories", &["0", "1", "99999999999"]),
            ("--image-size", &["0", "1", "16M", "8E"]),
            ("--filebench", &["0", "1", "8E"]),
        ],
    ),
    (
        &["meta", "--image", "FILE", "--image-size", "320M", "--files", "10", "--threads", "1"],
        &[
            ("--files", &["0", "1", "18446744073709551615"]),
            ("--threads", &["0", "100000"]),
            ("--directories", &["0", "1", "11", "99999999999"]),
        ],
    ),
    (
        &["age", "--size", "320M", "FILE"],
        &[
            ("--hole", &["0", "1", "4294967295"]),
            ("--kept", &["0", "1", "4294967295"]),
            ("--size", &["0", "1M", "320M", "8E"]),
        ],
    ),
    (
        &["age", "--size", "320M", "--map", "pathological", "FILE"],
        &[
            ("--request", &["0", "1", "2", "4294967295"]),
            ("--short", &["0", "1", "4294967295"]),
            ("--long", &["0", "1", "4294967295"]),
        ],
    ),
];

#[test]
fn extremes_are_runs_or_errors() {
    let mut faults = Vec::new();
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file").display().to_string();
    for (fixed, parameters) in WALKS {
        let fixed: Vec<&str> =
            fixed.iter().map(|word| if *word == "FILE" { &file } else { *word }).collect();
        // Without it a run that is none of seconds.
        let short = (fixed[0] != "age").then_some("--smoke");
        let mut runs = 0;
        for (name, values) in *parameters {
            // The last of two of a kind would be an error of its own.
            let at = fixed.iter().position(|word| word == name);
            let mut rest = fixed.clone();
            if let Some(at) = at {
                rest.drain(at..at + 2);
            }
            for value in *values {
                // Made by the run before, if there was one.
                let _ = std::fs::remove_file(&file);
                let mut lab = Command::new("timeout");
                lab.args(["60", env!("CARGO_BIN_EXE_undercroft"), "lab"]).args(&rest);
                let output = lab.args(short).arg(format!("{name}={value}")).output().unwrap();
                let message = String::from_utf8_lossy(&output.stderr);
                runs += u32::from(output.status.success());
                let told = message.contains("error: ") && !message.contains("panicked");
                if !matches!((output.status.code(), told), (Some(0), _) | (Some(1 | 2), true)) {
                    faults.push(format!("{rest:?} {name}={value}: {:?}: {message}", output.status));
                }
            }
        }
        // The map of holes is larger than a small volume, for any value of one of its numbers.
        assert!(runs > 0 || fixed.contains(&"pathological"), "{fixed:?}");
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
