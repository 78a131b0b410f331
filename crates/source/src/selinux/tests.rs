//! What entries mean, without a policy of a distribution.

use super::*;

fn contexts(text: &str, subs: [&str; 2]) -> Result<FileContexts, LabelError> {
    let texts = [(Path::new("file_contexts"), text.as_bytes())];
    FileContexts::parse(texts, subs.map(str::as_bytes))
}

/// The type of the label.
fn found(contexts: &FileContexts, path: &str, kind: LabelledKind) -> String {
    let label = contexts.lookup(path.as_bytes(), kind).unwrap_or(b"u:r:none");
    String::from_utf8_lossy(label).split(':').nth(2).unwrap().to_owned()
}

#[test]
fn literal_entries_come_before_expressions_and_the_last_counts() {
    let policy = contexts(
        "# a comment\n\
         /lit u:r:first\n\
         /lit u:r:second\n\
         /l.* u:r:expression\n\
         /x/.* u:r:below_x\n\
         /x/y -d u:r:directory\n\
         /x/y(/.*)? -- u:r:file:s0:c1 words behind it\n\
         /x/none.* <<none>>\n",
        ["", ""],
    )
    .unwrap();
    for (path, kind, label) in [
        ("/lit", LabelledKind::Regular, "second"),
        ("/litt", LabelledKind::Regular, "expression"),
        ("/x", LabelledKind::Directory, "none"),
        ("/x/y", LabelledKind::Directory, "directory"),
        ("/x/y", LabelledKind::Symlink, "below_x"),
        ("/x/y/z", LabelledKind::Regular, "file"),
        ("/x/none", LabelledKind::Fifo, "none"),
        ("/", LabelledKind::Directory, "none"),
    ] {
        assert_eq!(found(&policy, path, kind), label, "{path}");
    }
}

#[test]
fn the_last_equivalence_counts_and_those_of_the_distribution_come_second() {
    let policy =
        contexts("/(.*) u:r:other\n/x/.* u:r:x\n/y/.* u:r:y\n", ["/m /a", "/a /x\n/a/b /y\n/ab\n"]);
    let policy = policy.unwrap();
    for (path, label) in
        [("/a/c", "x"), ("/a/b/c", "y"), ("/m/c", "x"), ("/ac/d", "other"), ("/x/c", "x")]
    {
        assert_eq!(found(&policy, path, LabelledKind::Regular), label, "{path}");
    }
    let policy = contexts("/(.*) u:r:other\n/x/.* u:r:x\n", ["", "/r /"]).unwrap();
    assert_eq!(found(&policy, "/r/x/c", LabelledKind::Regular), "x");
}

#[test]
fn a_wrong_line_is_named_with_its_number_and_its_defect() {
    for (line, defect) in [
        ("/alone", "one word"),
        ("/a -z u:r:t", "\"-z\" is no kind"),
        ("/a nothing", "\"nothing\" is no label"),
        ("/a u::t", "\"u::t\" is no label"),
        ("/\u{e9} u:r:t", "outside of ASCII"),
        ("/a( u:r:t", "expression /a(: unclosed group"),
        ("/a) u:r:t", "expression /a): unopened group"),
        ("/a[b u:r:t", "is not closed with ]"),
        ("/(?=a)b u:r:t", "(?: are not supported"),
        ("/a*+ u:r:t", "possessive"),
        ("/(a{1000}){1000} u:r:t", "too much memory"),
        ("/[z-a] u:r:t", "invalid character class range"),
    ] {
        let error = contexts(&format!("/ok u:r:t\n\n{line}\n"), ["", ""]).unwrap_err().to_string();
        assert!(error.starts_with("file_contexts, line 3: ") && error.contains(defect), "{error}");
    }
}

#[test]
fn the_files_beside_it_are_read() {
    let home = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = home.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("policy/contexts/files/file_contexts", "/a u:r:main\n/b u:r:main\n/c u:r:main\n");
    write("policy/contexts/files/file_contexts.homedirs", "/b u:r:homedirs\n/c u:r:homedirs\n");
    write("policy/contexts/files/file_contexts.local", "/c u:r:local\n");
    write("policy/contexts/files/file_contexts.subs_dist", "/d /c\n");
    write("own", "/a u:r:own\n");
    let policy = home.path().join("policy");
    let read = FileContexts::read(&policy, None).unwrap();
    let types = |read: &FileContexts| {
        ["/a", "/b", "/c", "/d"].map(|path| found(read, path, LabelledKind::Regular))
    };
    assert_eq!(types(&read), ["main", "homedirs", "local", "local"]);
    let own = home.path().join("own");
    assert_eq!(types(&FileContexts::read(&own, None).unwrap()), ["own", "none", "none", "none"]);
    let both = FileContexts::read(&own, Some(&policy)).unwrap();
    assert_eq!(types(&both), ["own", "homedirs", "local", "local"]);
    for (file, policy) in [("absent", None), ("own", Some(home.path()))] {
        let error = FileContexts::read(&home.path().join(file), policy).unwrap_err();
        assert!(error.to_string().contains("No such file"), "{error}");
    }
    write("policy/contexts/files/file_contexts.local", "\n/c u:r\n");
    let error = FileContexts::read(&policy, None).unwrap_err().to_string();
    assert!(error.contains("file_contexts.local, line 2: "), "{error}");
}
