//! Both forms of descriptions, and lengths of files.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::drivers::Engine;
use crate::stack::StackError;

fn file(path: &str) -> Description {
    Description::from(Path::new(path))
}

fn parse(text: &str) -> Result<Description, String> {
    text.parse::<Description>().map_err(|error| error.to_string())
}

#[test]
fn what_does_not_begin_like_a_device_is_a_path() {
    for path in ["a.img", "a,b(c).img", "./stripe:64k(a)", "\"a\"", "linear", "stripes(a)", " a "] {
        assert_eq!(parse(path).unwrap(), file(path), "{path}");
    }
    let bytes = OsStr::from_bytes(b"not \xff UTF-8");
    assert_eq!(Description::from_argument(bytes).unwrap(), Description::from(Path::new(bytes)));
    let nested = Description::from_argument(OsStr::from_bytes(b"mirror(\xff,\"\xfe\")")).unwrap();
    let paths: Vec<_> =
        nested.files().iter().map(|file| file.path.as_os_str().as_bytes()).collect();
    assert_eq!(paths, [b"\xff", b"\xfe"]);
}

#[test]
fn devices_nest() {
    let mirror = |a, b| Description::Mirror(vec![file(a), file(b)]);
    let legs = vec![mirror("a", "b"), mirror("c d", "e,(\"\\")];
    let stripe = Description::Stripe { chunk: 65_536, legs };
    assert_eq!(parse(r#"stripe:64k(mirror(a,b),mirror(c d,"e,(\"\\"))"#).unwrap(), stripe);
    let spaced = r#"stripe: 64k ( mirror( a , "b") ,mirror("c d","e,(\"\\" ) )"#;
    assert_eq!(parse(spaced).unwrap(), stripe);
    assert_eq!(stripe.to_string(), r#"stripe:64k(mirror(a,b),mirror(c d,"e,(\"\\"))"#);
    let paths: Vec<_> = stripe.files().iter().map(|file| file.path.to_str().unwrap()).collect();
    assert_eq!(paths, ["a", "b", "c d", "e,(\"\\"]);
}

#[test]
fn files_have_options() {
    let parsed = parse("linear(file:direct,engine=uring,polled,size=300M(a.img),b.img)").unwrap();
    let engine = Engine::Uring;
    let size = Some(300 << 20);
    let a = FileLeaf { direct: true, engine, polled: true, size, ..FileLeaf::new("a.img") };
    assert_eq!(parsed, Description::Linear(vec![Description::File(a), file("b.img")]));
    let text = "linear(file:direct,engine=uring,polled,size=300M(a.img),b.img)";
    assert_eq!(parsed.to_string(), text);
    assert_eq!(parse("file(a.img)").unwrap(), file("a.img"));
    assert_eq!(parse("file(\"mirror(a)\")").unwrap(), file("mirror(a)"));
    assert_eq!(file("mirror(a)").to_string(), "file(\"mirror(a)\")");
    assert_eq!(file("@a").to_string(), "file(@a)");
}

#[test]
fn a_uri_names_a_network_disk() {
    let network = |uri: &str| Description::Network(NetworkLeaf { uri: uri.into() });
    for uri in [
        "nbd://a/x",
        "NBDS://a",
        "nbd+unix:///x?socket=/run/a,b(c)",
        "nbds+unix://?socket=s",
        "nbd:unix:/s",
        "nbd+vsock://2",
        "s3://bucket/disk.img",
        "https://host/disk.img?signature=a,b",
        "file:///store@name",
    ] {
        assert_eq!(parse(uri).unwrap(), network(uri));
        assert_eq!(network(uri).to_string(), uri);
        let nested = Description::Linear(vec![network(uri), file("b")]);
        assert_eq!(parse(&nested.to_string()).unwrap(), nested);
    }
    let text = "mirror(nbd://a/x,\"nbd://b/x?x-timeout=1\")";
    let mirror = Description::Mirror(vec![network("nbd://a/x"), network("nbd://b/x?x-timeout=1")]);
    assert_eq!(parse(text).unwrap(), mirror);
    assert_eq!(parse_toml("mirror = [\"nbd://a/x\", \"nbd://b/x?x-timeout=1\"]").unwrap(), mirror);
    assert!(mirror.files().is_empty() && mirror.leaves().len() == 2);
    assert_eq!(
        lengths("linear(nbd://a/x,b)", 20 << 10, &[("nbd://a/x", 8 << 10)]).unwrap(),
        [8 << 10, 12 << 10]
    );

    let kind = |uri: &str| NetworkLeaf::parse(uri).map(|leaf| leaf.kind());
    assert_eq!(kind("nbd://a/x"), Some(NetworkKind::Export));
    assert_eq!(kind("S3://bucket/x"), Some(NetworkKind::Object));
    assert_eq!(kind("s3:x"), None);

    // A file of such a name needs its directory, or the word.
    assert_eq!(parse("./nbd://a").unwrap(), file("./nbd://a"));
    assert_eq!(parse("nbd+x.img").unwrap(), file("nbd+x.img"));
    assert_eq!(parse("file(nbd://a)").unwrap(), file("nbd://a"));
    assert_eq!(file("nbd://a").to_string(), "file(nbd://a)");
    let nested = Description::Linear(vec![file("nbd://a")]);
    assert_eq!(parse(&nested.to_string()).unwrap(), nested);

    let twice = parse("mirror(nbd://a/x,nbd://a/x)").unwrap().check_distinct().unwrap_err();
    assert_eq!(twice.to_string(), StackError::Twice { path: "nbd://a/x".into() }.to_string());
}

#[test]
fn disks_that_belong_together_have_a_word() {
    for kind in ["lvm", "raid"] {
        let set = Description::Set { kind, legs: vec![file("a"), file("b")] };
        let text = format!("{kind}(a,b)");
        assert_eq!(parse(&text).unwrap(), set);
        assert_eq!(set.to_string(), text);
        let table = format!("{kind} = [\"/a\", \"/b\"]");
        assert_eq!(parse_toml(&table).unwrap().to_string(), format!("{kind}(/a,/b)"));
        assert_eq!((set.files().len(), set.legs().len()), (2, 2));
        // They have no bytes that a volume could be made in.
        assert!(Allotment::new(&set, |_| Some(1 << 20)).lengths(4096).is_err());
    }
}

#[test]
fn a_delay_has_a_latency_and_perhaps_a_bandwidth() {
    for text in ["delay:2ms(a)", "delay:20ms,100M(stripe:64k(a,b))", "mirror(delay:0s(a),b)"] {
        assert_eq!(parse(text).unwrap().to_string(), text);
    }
    let text = "delay = { mirror = [\"a\", \"/b\"] }\nlatency = \"2ms\"\nbandwidth = \"1G\"";
    assert_eq!(parse_toml(text).unwrap(), parse("delay:2ms,1G(mirror(dir/a,/b))").unwrap());
    for (text, problem) in [
        ("delay = \"a\"", "such as 2ms"),
        ("delay = \"a\"\nlatency = \"2 m\"", "such as 2ms"),
        ("delay = \"a\"\nlatency = \"2ms\"\nchunk = 1", "\"chunk\" is no option of delay"),
        ("delay = [\"a\"]\nlatency = \"2ms\"", "expected a path or a table"),
    ] {
        let error = parse_toml(text).expect_err(text);
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn errors_have_a_place_and_a_remedy() {
    for (text, character, problem) in [
        ("", 1, "expected a path or a device"),
        ("mirror(", 8, "found the end"),
        ("mirror(a", 9, "expected ')' or ','"),
        ("mirror(a,,b)", 10, "expected a path or a device such as mirror(a.img,b.img), found ','"),
        ("mirror(é,b))", 12, "expected the end, found ')'"),
        ("mirror(a b(c))", 11, "stands in double quotes"),
        ("mirror(\"a)", 8, "not closed"),
        ("mirror(\"a\\n\")", 10, "backslash"),
        ("mirror(\"\")", 8, "empty path"),
        ("mirror:fast(a)", 8, "\"fast\" is no option of mirror"),
        ("stripe(a,b)", 7, "needs its chunk size"),
        ("stripe:64k", 11, "expected '(' as in stripe:64k(a.img)"),
        ("stripe:65k(a,b)", 8, "a power of two"),
        ("stripe:64q(a,b)", 8, "\"q\" is no unit"),
        ("stripe:lots(a,b)", 8, "is no unit"),
        ("delay(a)", 6, "such as 2ms or 20ms,100M"),
        ("delay:2m(a)", 7, "such as 2ms or 20ms,100M"),
        ("delay(2ms,a)", 6, "such as 2ms or 20ms,100M"),
        ("delay:2ms(a,b)", 12, "expected ')' or one device, found ','"),
        ("delay:2ms", 10, "expected '(' as in delay:2ms(a.img)"),
        ("file:a.img", 11, "expected '(' as in file(a.img)"),
        ("file:fast(a)", 6, "there are backing, direct, engine, polled, raw, size and snapshot"),
        ("file:direct,size(a)", 13, "size=1G"),
        ("file:engine=fast(a)", 6, "engine=uring"),
        ("file:size=100(a)", 6, "multiple of 512"),
        ("file(a,b)", 7, "expected ')' or one path, found ','"),
    ] {
        let error = parse(text).expect_err(text);
        let place = format!("{text}: character {character}: ");
        assert!(error.starts_with(&place), "{error}");
        assert!(error[place.len()..].contains(problem), "{error}");
    }
}

#[test]
fn nesting_has_an_end() {
    let nested = |depth| format!("{}a{}", "linear(".repeat(depth), ")".repeat(depth));
    assert!(parse(&nested(MAX_DEPTH)).is_ok());
    assert!(parse(&nested(MAX_DEPTH + 1)).unwrap_err().contains("nested more than"));
    assert!(parse(&nested(100_000)).is_err());
}

fn parse_toml(text: &str) -> Result<Description, String> {
    toml::parse(text, Path::new("dir/stack.toml")).map_err(|error| error.to_string())
}

#[test]
fn toml_says_the_same() {
    let text = r#"
        chunk = "64k"
        stripe = [
            { mirror = ["a.img", "/b.img"] },
            { linear = ["c,d.img", { file = "e.img", direct = true, size = "1G" }] },
            { file = "f.img", direct = false, size = 4096 },
        ]"#;
    let expected = "stripe:64k(mirror(dir/a.img,/b.img),\
                    linear(\"dir/c,d.img\",file:direct,size=1G(dir/e.img)),\
                    file:size=4k(dir/f.img))";
    assert_eq!(parse_toml(text).unwrap(), parse(expected).unwrap());
    assert_eq!(parse_toml("file = \"a\"").unwrap(), file("dir/a"));
}

#[test]
fn errors_in_toml_have_line_and_column() {
    for (text, place, problem) in [
        ("", "1:1", "one of the keys file, linear, stripe, mirror"),
        ("mirror = [\n  \"a\",\n  é\n]", "3:3", ""),
        ("mirror = [\n  \"a\",\n  7]", "3:3", "expected a path or a table, found integer"),
        ("mirror = []", "1:10", "a list of one or more devices"),
        ("mirror = \"a\"", "1:10", "a list of one or more devices"),
        ("mirror = [\"\"]", "1:11", "an empty path"),
        ("mirror = [\"a\"]\nlinear = [\"b\"]", "1:1", "either linear or mirror"),
        ("stripe = [\"a\"]", "1:1", "chunk = \"64k\""),
        ("stripe = [\"a\"]\nchunk = 100", "2:9", "a power of two"),
        ("stripe = [\"a\"]\nchunk = 1.5", "2:9", "expected a number"),
        ("mirror = [\"a\"]\nchunk = 4096", "2:1", "\"chunk\" is no option of mirror"),
        ("file = [\"a\"]", "1:8", "the path of one file"),
        (
            "file = \"a\"\nfast = true",
            "2:1",
            "there are backing, direct, engine, polled, raw, size and snapshot",
        ),
        ("file = \"a\"\nsize = true", "2:1", "size=1G"),
    ] {
        let error = parse_toml(text).expect_err(text);
        let place = format!("dir/stack.toml:{place}: ");
        assert!(error.starts_with(&place), "{text:?}: {error}");
        assert!(error[place.len()..].contains(problem), "{text:?}: {error}");
    }
    let deep = format!("{}\"a\"{}", "linear = [{".repeat(200), "}]".repeat(200));
    assert!(parse_toml(&deep).is_err());
}

#[test]
fn a_file_of_a_description_is_found_beside_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("stack.toml");
    std::fs::write(&path, "linear = [\"a\", \"b\"]").unwrap();
    let argument = format!("@{}", path.display());
    let parsed = Description::from_argument(argument.as_ref()).unwrap();
    assert_eq!(parsed.files()[1].path, directory.path().join("b"));
    std::fs::write(&path, " ".repeat((1 << 20) + 1)).unwrap();
    let long = Description::from_toml_file(&path).unwrap_err().to_string();
    assert!(long.ends_with("it is longer than 1048576 bytes"), "{long}");

    let missing = Description::from_argument(OsStr::new("@missing.toml")).unwrap_err();
    let missing = missing.to_string();
    assert!(missing.starts_with("cannot read the description missing.toml: No such"), "{missing}");
}

/// The path or the URI of a leaf.
fn name(leaf: LeafDescription<'_>) -> &Path {
    match leaf {
        LeafDescription::File(file) => &file.path,
        LeafDescription::Network(network) => Path::new(&network.uri),
    }
}

fn lengths(text: &str, bytes: u64, given: &[(&str, u64)]) -> Result<Vec<u64>, String> {
    let device = parse(text).unwrap();
    let given = |leaf: LeafDescription<'_>| {
        given.iter().find(|(path, _)| Path::new(path) == name(leaf)).map(|(_, bytes)| *bytes)
    };
    Allotment::new(&device, given).lengths(bytes).map_err(|error| error.to_string())
}

#[test]
fn files_get_the_length_they_need() {
    let k = 1024;
    assert_eq!(lengths("a", 1000 * k, &[]).unwrap(), [1000 * k]);
    assert_eq!(lengths("mirror(a,b)", 8 * k, &[]).unwrap(), [8 * k; 2]);
    assert_eq!(lengths("stripe:64k(a,b,c)", 640 * k, &[]).unwrap(), [256 * k; 3]);
    assert_eq!(lengths("linear(a,b,c)", 30 * k, &[]).unwrap(), [12 * k; 3]);
    let nested = "stripe:64k(mirror(a,b),linear(c,d))";
    assert_eq!(lengths(nested, 256 * k, &[]).unwrap(), [128 * k, 128 * k, 64 * k, 64 * k]);
}

#[test]
fn given_lengths_stay() {
    let k = 1024;
    let text = "linear(a,file:size=8k(b),c)";
    assert_eq!(lengths(text, 100 * k, &[("a", 60 * k)]).unwrap(), [60 * k, 8 * k, 32 * k]);
    assert_eq!(lengths(text, 10 * k, &[("a", 60 * k)]).unwrap(), [60 * k, 8 * k, 4 * k]);
    let short = lengths("stripe:64k(a,b)", 256 * k, &[("b", 100 * k)]).unwrap_err();
    assert_eq!(short, "b has 102400 bytes, it needs 131072");
    let short = lengths("linear(a,b)", 256 * k, &[("a", 100 * k), ("b", k)]).unwrap_err();
    assert_eq!(short, "linear(a,b) has 103424 bytes, it needs 262144");
}

#[test]
fn a_device_of_given_files_has_a_capacity() {
    let capacity = |text, given: fn(LeafDescription<'_>) -> Option<u64>| {
        Allotment::new(&parse(text).unwrap(), given).capacity()
    };
    let given = |leaf: LeafDescription<'_>| match name(leaf).to_str() {
        Some("a") => Some(200 << 10),
        Some("b") => Some((100 << 10) + 1),
        _ => None,
    };
    assert_eq!(capacity("linear(a,b)", given), Some((300 << 10) + 512));
    assert_eq!(capacity("mirror(a,b)", given), Some((100 << 10) + 512));
    assert_eq!(capacity("stripe:64k(a,b)", given), Some(128 << 10));
    assert_eq!(capacity("stripe:64k(a,b,c)", given), None);
}

fn descriptions() -> impl Strategy<Value = Description> {
    let size = proptest::option::of((1..1u64 << 40).prop_map(|sectors| sectors * 512));
    let engine = prop_oneof![
        Just(Engine::Auto),
        Just(Engine::Uring),
        Just(Engine::Threads),
        Just(Engine::Mixed),
        Just(Engine::Around)
    ];
    let leaf = ("[ -~é]{1,12}", size, any::<bool>(), engine);
    let leaf = leaf.prop_map(|(path, size, direct, engine)| {
        Description::File(FileLeaf { size, direct, engine, ..FileLeaf::new(path) })
    });
    leaf.prop_recursive(4, 24, 4, |inner| {
        let legs = proptest::collection::vec(inner, 1..4);
        prop_oneof![
            legs.clone().prop_map(Description::Linear),
            legs.clone().prop_map(Description::Mirror),
            (12..30u32, legs)
                .prop_map(|(shift, legs)| Description::Stripe { chunk: 1 << shift, legs }),
        ]
    })
}

proptest! {
    #[test]
    fn printed_descriptions_are_parsed_to_the_same(device in descriptions()) {
        prop_assert_eq!(parse(&device.to_string()).unwrap(), device);
    }

    #[test]
    fn any_text_is_parsed_or_refused(text in "(stripe:64k\\()?[a-z(),:\" \\\\@é]{0,20}") {
        let _ = text.parse::<Description>();
        let _ = toml::parse(&text, Path::new("a.toml"));
    }

    #[test]
    fn allotted_lengths_hold_what_was_asked(device in descriptions(), bytes in 1..1u64 << 44) {
        if let Ok(lengths) = Allotment::new(&device, |_| None).lengths(bytes) {
            let mut lengths = lengths.into_iter();
            let all = Allotment::new(&device, |_| lengths.next());
            prop_assert!(all.capacity().unwrap() >= bytes);
        }
    }
}

#[test]
fn legs_of_mirrors_are_found_at_any_depth() {
    let device: Description =
        "stripe:64k(mirror(a,linear(b,c)),mirror(file:direct(d),mirror(e,f)),g)".parse().unwrap();
    let legs = device.mirror_legs();
    let names: Vec<String> = legs.iter().map(|leg| leg.description().to_string()).collect();
    let expected =
        ["a", "linear(b,c)", "file:direct(d)", "mirror(e,f)", "e", "f"].map(str::to_owned);
    assert_eq!(names, expected);
    let numbers: Vec<usize> = legs.iter().map(MirrorLeg::number).collect();
    assert_eq!(numbers, [0, 1, 0, 1, 0, 1]);
    let called = |name: &str| {
        let name = name.parse().unwrap();
        legs.iter().position(|leg| leg.is_called(&name))
    };
    assert_eq!([called("d"), called("linear(b,c)"), called("f")], [Some(2), Some(1), Some(5)]);
    assert_eq!([called("g"), called("linear(c,b)"), called("b")], [None; 3]);
}
