//! The steps of a report: commands of the laboratory, which anyone can repeat.

use std::path::Path;

/// How long a report may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// Minutes: every experiment, small.
    Quick,
    /// About an hour: the parameters of the sources, with many runs.
    Full,
    /// Seconds: that all of it works. Its figures mean nothing.
    Smoke,
}

/// One command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Names it in records, and does not change from one release to the next.
    pub(super) name: &'static str,
    /// Its words behind `undercroft lab`. One that begins with `@` is a file of the scratch
    /// directory.
    words: Vec<String>,
    /// Seconds that it takes, roughly, on two processors.
    pub(super) seconds: u32,
}

impl Step {
    fn new(name: &'static str, line: &str, seconds: u32) -> Self {
        Self { name, words: line.split_whitespace().map(str::to_owned).collect(), seconds }
    }

    /// The command as a reader types it, in a directory of their own.
    pub(super) fn command(&self) -> String {
        let words = self.words.iter().map(|word| word.trim_start_matches('@'));
        ["undercroft", "lab"].into_iter().chain(words).collect::<Vec<_>>().join(" ")
    }

    /// Its words, with files in `scratch`.
    pub(super) fn words_in(&self, scratch: &Path) -> Vec<String> {
        let word = |word: &String| match word.strip_prefix('@') {
            Some(file) => scratch.join(file).to_string_lossy().into_owned(),
            None => word.clone(),
        };
        self.words.iter().map(word).collect()
    }
}

/// The step that builds a project on mounted volumes, which not every machine can do.
pub(super) const MOUNT: &str = "mount";

/// The steps of a report; experiments on files also run in `on`, a directory of a mounted file system,
/// and what is built is the tree in the archive `source`, if there is one.
pub(super) fn steps(length: Length, on: Option<&Path>, source: Option<&Path>) -> Vec<Step> {
    let lines = match length {
        Length::Quick => QUICK,
        Length::Full => FULL,
        Length::Smoke => SMOKE,
    };
    let mut steps: Vec<Step> =
        lines.iter().map(|(name, line, seconds)| Step::new(name, line, *seconds)).collect();
    if let Some(on) = on {
        for step in steps.iter_mut().filter(|step| ["fsync", "meta"].contains(&step.name)) {
            step.words.extend(["--on".to_owned(), on.to_string_lossy().into_owned()]);
        }
    }
    if let Some(source) = source {
        for step in steps.iter_mut().filter(|step| step.name == MOUNT) {
            // In the place of the number of files that are generated.
            if let Some(at) = step.words.iter().position(|word| word == "--files") {
                step.words.drain(at..at + 2);
            }
            step.words.extend(["--source".to_owned(), source.to_string_lossy().into_owned()]);
        }
    }
    steps
}

type Line = (&'static str, &'static str, u32);

const QUICK: &[Line] = &[
    ("tags-depth", "tags --case depth --policy counters --policy cyclic-8 --repeat 7", 20),
    ("tags-shared", "tags --case shared --policy counters --policy cyclic-8 --repeat 7", 22),
    ("tags-herd", "tags --case herd --repeat 5", 7),
    ("tags-variability", "tags --case variability --repeat 10", 13),
    ("tags-fairness", "tags --case fairness --policy counters --policy cyclic-8 --repeat 5", 6),
    ("unplug", "unplug --repeat 7 --seconds 0.3", 15),
    ("affinity", "affinity --workload large --workload cached --repeat 3 --seconds 0.1", 45),
    (MOUNT, "mount --files 24 --repeat 5 --scratch @.", 60),
    (
        "alloc-1",
        "alloc --case clean --case random --variant near --variant near-2018 --variant indexed --scratch @. --seed 1",
        40,
    ),
    (
        "alloc-2",
        "alloc --case clean --case random --variant near --variant near-2018 --variant indexed --scratch @. --seed 2",
        40,
    ),
    (
        "alloc-3",
        "alloc --case clean --case random --variant near --variant near-2018 --variant indexed --scratch @. --seed 3",
        40,
    ),
    (
        "alloc-hard-1",
        "alloc --case pathological --extents 100000 --scratch @. --seed 1 --seconds 0.5",
        6,
    ),
    (
        "alloc-hard-2",
        "alloc --case pathological --extents 100000 --scratch @. --seed 2 --seconds 0.5",
        6,
    ),
    (
        "alloc-hard-3",
        "alloc --case pathological --extents 100000 --scratch @. --seed 3 --seconds 0.5",
        6,
    ),
    ("fsync", "fsync --image @fsync.img --files 4000 --repeat 5 --warm-up 1", 20),
    ("meta", "meta --image @meta.img --files 20000 --threads 1 --repeat 5", 15),
    ("iops", "iops --repeat 5 --seconds 0.1", 15),
];

const FULL: &[Line] = &[
    ("tags-depth", "tags --case depth --repeat 31 --seconds 0.3", 320),
    ("tags-shared", "tags --case shared --repeat 31 --seconds 0.3", 340),
    ("tags-herd", "tags --case herd --repeat 21", 30),
    ("tags-variability", "tags --case variability --repeat 31 --seconds 0.3", 60),
    ("tags-fairness", "tags --case fairness --repeat 15 --seconds 0.5", 90),
    ("unplug", "unplug --repeat 21 --seconds 0.5", 75),
    ("affinity", "affinity --workload large --workload cached --repeat 11 --seconds 0.5", 560),
    (MOUNT, "mount --repeat 11 --scratch @.", 450),
    (
        "alloc-1",
        "alloc --case clean --case random --variant near --variant near-2018 --variant indexed --scratch @. --seed 1",
        60,
    ),
    (
        "alloc-2",
        "alloc --case clean --case random --variant near --variant near-2018 --variant indexed --scratch @. --seed 2",
        60,
    ),
    (
        "alloc-3",
        "alloc --case clean --case random --variant near --variant near-2018 --variant indexed --scratch @. --seed 3",
        60,
    ),
    ("alloc-hard-1", "alloc --case pathological --case sequential --scratch @. --seed 1", 40),
    ("alloc-hard-2", "alloc --case pathological --case sequential --scratch @. --seed 2", 40),
    ("alloc-hard-3", "alloc --case pathological --case sequential --scratch @. --seed 3", 40),
    (
        "alloc-growth",
        "alloc --case growth --variant near --variant indexed --memory 1G --scratch @.",
        240,
    ),
    (
        "fsync",
        "fsync --image @fsync.img --image-size 20G --mode 1 --mode async --threads 1 --threads 4 --threads 16 --files 5000 --repeat 7 --warm-up 2",
        200,
    ),
    ("meta", "meta --image @meta.img --repeat 7", 200),
    ("iops", "iops --repeat 15", 200),
];

const SMOKE: &[Line] = &[
    ("tags", "tags --smoke", 1),
    ("unplug", "unplug --smoke", 1),
    ("affinity", "affinity --workload large --workload cached --smoke", 1),
    (MOUNT, "mount --smoke --scratch @.", 3),
    ("alloc", "alloc --smoke --scratch @.", 2),
    ("fsync", "fsync --smoke --image @fsync.img --image-size 512M", 1),
    ("meta", "meta --smoke --image @meta.img --image-size 512M", 1),
    ("iops", "iops --smoke", 1),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_one_that_a_reader_can_type() {
        let all = steps(Length::Quick, Some(Path::new("/mnt/xfs")), Some(Path::new("lua.tar")));
        let fsync = all.iter().find(|step| step.name == "fsync").unwrap();
        assert!(fsync.command().starts_with("undercroft lab fsync --image fsync.img "));
        assert!(fsync.command().ends_with(" --on /mnt/xfs"));
        let mount = all.iter().find(|step| step.name == MOUNT).unwrap().command();
        assert_eq!(mount, "undercroft lab mount --repeat 5 --scratch . --source lua.tar");
        let words = fsync.words_in(Path::new("/scratch"));
        assert!(words.contains(&"/scratch/fsync.img".to_owned()), "{words:?}");
    }

    #[test]
    fn names_are_told_apart() {
        for length in [Length::Quick, Length::Full, Length::Smoke] {
            let mut names: Vec<&str> =
                steps(length, None, None).iter().map(|step| step.name).collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count);
        }
    }
}
