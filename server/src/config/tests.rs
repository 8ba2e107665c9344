//! Precedence, hints and problems, without touching the environment of the process.

use super::*;
use std::io::Write as _;

fn environment(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

fn file(text: &str) -> (tempfile::NamedTempFile, Flags) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let flags = Flags { config: Some(file.path().to_owned()), ..Flags::default() };
    (file, flags)
}

fn problems(flags: &Flags, env: &[(&str, &str)]) -> Vec<String> {
    match load(flags, &environment(env)) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(ToString::to_string).collect(),
    }
}

/// Two values that an option takes, neither of them its default.
fn samples(spec: &OptionSpec) -> (String, String) {
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    match (spec.key().as_str(), spec.bounds) {
        ("listen", _) => pair("127.0.0.1:1", "127.0.0.1:2"),
        ("admin-listen", _) => pair("127.0.0.1:3", "127.0.0.1:4"),
        ("warehouse", _) => pair("/a", "/b"),
        ("table.uri-prefixes", _) => pair("/a", "/b"),
        ("table.data-storage-version", _) => pair("2.0", "2.1"),
        ("storage.options", _) => pair("k=a", "k=b"),
        ("storage.stores", _) => pair(r#"{"s3://x/": {"k": "a"}}"#, r#"{"s3://x/": {"k": "b"}}"#),
        ("storage.client-options", _) => pair("true", "false"),
        ("maintenance.instance", _) => pair("gateway-0", "gateway-1"),
        ("connection.unix-mode", _) => pair("0640", "0660"),
        ("log.level", _) => pair("warn", "debug"),
        ("log.format", _) => pair("json", "text"),
        ("telemetry.otlp-endpoint", _) => pair("http://127.0.0.1:1", "http://127.0.0.1:2"),
        ("telemetry.sample-ratio", _) => pair("0.25", "0.5"),
        // A commit must end before its request, and windows of a connection hold those of its streams.
        ("commit.timeout", _) => pair("2s", "3s"),
        ("request.timeout", _) => pair("2h", "3h"),
        ("scan.max-row-bytes", _) => pair("65MiB", "66MiB"),
        ("scan.batch-bytes", _) => pair("1MiB", "4MiB"),
        ("http2.connection-window", _) => pair("64MiB", "65MiB"),
        ("http2.stream-window", _) => pair("64KiB", "65KiB"),
        (_, Some((min, max))) => pair(min, max),
        (key, None) => panic!("no samples for {key}"),
    }
}

fn yaml(key: &str, value: &str) -> String {
    match key {
        "storage.options" => format!("{key}: {{k: {}}}\n", value.trim_start_matches("k=")),
        "storage.stores" => format!("{key}: {value}\n"),
        "listen" | "table.uri-prefixes" => format!("{key}: [\"{value}\"]\n"),
        _ => format!("{key}: \"{value}\"\n"),
    }
}

/// The value that was chosen, taken from the debug output of the whole, which differs between the two samples.
fn loaded(flags: &Flags, env: &[(&str, &str)], what: &str) -> String {
    let loaded = load(flags, &environment(env)).unwrap_or_else(|p| panic!("{what}: {p:?}"));
    let storage = &loaded.config.storage;
    let of_stores: Vec<_> = storage.stores.0.values().flat_map(|options| options.expose()).collect();
    let secrets: Vec<_> = storage.options.expose().chain(of_stores).collect();
    format!("{:?} {secrets:?}", loaded.config)
}

#[test]
fn for_every_option_the_environment_beats_the_file_and_the_file_beats_the_default() {
    let nothing = loaded(&Flags::default(), &[], "nothing");
    for spec in table::all() {
        let key = spec.key();
        let (a, b) = samples(spec);
        let (_file, flags) = file(&yaml(&key, &a));
        let env = spec.env();
        let of_file = loaded(&flags, &[], &key);
        let of_env = loaded(&Flags::default(), &[(&env, &b)], &key);
        let of_both = loaded(&flags, &[(&env, &b)], &key);
        assert_ne!(of_file, of_env, "{key}: the samples must differ");
        assert!(of_file != nothing || of_env != nothing, "{key}: the option must change something");
        assert_eq!(of_both, of_env, "{key}: the environment must win");
    }
}

#[test]
fn flags_beat_the_environment() {
    let flags = Flags {
        listen: vec!["127.0.0.1:7".into(), "unix:/tmp/x.sock".into()],
        admin_listen: Some("127.0.0.1:8".into()),
        warehouse: Some("/flag".into()),
        ..Flags::default()
    };
    let env = [
        ("LANCE_GATEWAY_LISTEN", "127.0.0.1:1"),
        ("LANCE_GATEWAY_ADMIN_LISTEN", "127.0.0.1:2"),
        ("LANCE_GATEWAY_WAREHOUSE", "/env"),
    ];
    let loaded = load(&flags, &environment(&env)).unwrap();
    assert_eq!(loaded.config.listen.len(), 2);
    assert_eq!(loaded.config.admin_listen.port(), 8);
    assert_eq!(loaded.config.warehouse.as_str(), "/flag");
    assert_eq!(loaded.set[0], ("listen".to_owned(), "--listen".to_owned()));
}

#[test]
fn defaults_and_bounds_of_every_option_are_valid_and_documented() {
    let config = Config::default();
    assert_eq!(config.scan.batch_rows, 65_536);
    assert_eq!(config.scan.batch_bytes.bytes(), 2 << 20);
    for spec in table::all() {
        assert!(spec.doc.trim().ends_with('.'), "{} has no sentence", spec.key());
        assert!(spec.key().bytes().all(|b| b.is_ascii_lowercase() || b == b'.' || b == b'-' || b.is_ascii_digit()));
        if spec.bounds.is_some() {
            let (least, most) = samples(spec);
            assert_eq!(problems(&Flags::default(), &[(&spec.env(), &least)]), Vec::<String>::new());
            assert_eq!(problems(&Flags::default(), &[(&spec.env(), &most)]), Vec::<String>::new());
        }
    }
}

#[test]
fn values_beyond_their_bounds_are_refused_with_bounds_and_value() {
    let found = problems(&Flags::default(), &[("LANCE_GATEWAY_SCAN_BATCH_ROWS", "0")]);
    assert_eq!(found, ["LANCE_GATEWAY_SCAN_BATCH_ROWS: must be 1 to 16777216, not \"0\""]);
    let found = problems(&Flags::default(), &[("LANCE_GATEWAY_DRAIN_TIMEOUT", "2d")]);
    assert_eq!(found, ["LANCE_GATEWAY_DRAIN_TIMEOUT: must be 0s to 1h, not \"2d\""]);
}

#[test]
fn unknown_names_are_refused_with_the_nearest_known_one() {
    let (_file, flags) = file("scan:\n  batch-row: 1\nwarehose: /x\n");
    let found =
        problems(&flags, &[("LANCE_GATEWAY_SCAN_BATCH_ROW", "1"), ("LANCE_GATEWAY_NONSENSE_OF_ALL_KINDS", "1")]);
    assert_eq!(found.len(), 4, "{found:#?}");
    assert!(found[0].ends_with("is no option of the gateway"), "{found:?}");
    assert!(found[1].ends_with("did you mean LANCE_GATEWAY_SCAN_BATCH_ROWS?"), "{found:?}");
    assert!(found[2].ends_with("did you mean scan.batch-rows?"), "{found:?}");
    assert!(found[3].ends_with("did you mean warehouse?"), "{found:?}");
}

#[test]
fn names_that_kubernetes_makes_of_a_service_and_that_clients_read_are_no_mistake() {
    let env = [
        ("LANCE_GATEWAY_URI", "grpc://localhost:8815"),
        ("LANCE_GATEWAY_SERVICE_HOST", "10.0.0.1"),
        ("LANCE_GATEWAY_SERVICE_PORT", "8815"),
        ("LANCE_GATEWAY_SERVICE_PORT_GRPC", "8815"),
        ("LANCE_GATEWAY_PORT", "tcp://10.0.0.1:8815"),
        ("LANCE_GATEWAY_PORT_8815_TCP", "tcp://10.0.0.1:8815"),
        ("LANCE_GATEWAY_PORT_8815_TCP_PORT", "8815"),
        ("LANCE_GATEWAY_PORT_8815_TCP_PROTO", "tcp"),
        ("LANCE_GATEWAY_PORT_8815_TCP_ADDR", "10.0.0.1"),
        ("LANCE_GATEWAY_ADMIN_SERVICE_HOST", "10.0.0.2"),
        ("LANCE_GATEWAY_ADMIN_PORT_8816_TCP_ADDR", "10.0.0.2"),
    ];
    assert_eq!(problems(&Flags::default(), &env), Vec::<String>::new());
    assert_eq!(problems(&Flags::default(), &[("LANCE_GATEWAY_PORT_OF_CALL", "x")]).len(), 1);
}

#[test]
fn all_problems_are_told_at_once_and_none_tells_a_secret() {
    let (_file, mut flags) = file(
        "scan.batch-rows: many\nscan: {max-splits: 0}\nstorage.options: [hunter2]\nhttp2: {stream-window: 64MiB}\ncache: 5\n",
    );
    flags.listen = vec!["0.0.0.0:8815".into()];
    let found = problems(&flags, &[("LANCE_GATEWAY_STORAGE_OPTIONS", "hunter2"), ("LANCE_GATEWAY_LOG_FORMAT", "xml")]);
    assert_eq!(found.len(), 7, "{found:#?}");
    assert!(!found.iter().any(|p| p.contains("hunter2")), "{found:?}");
    // Rules between options are checked once each by itself is right.
    let (_file, flags) = file("http2: {stream-window: 64MiB}\ncommit.timeout: 10m\n");
    assert_eq!(problems(&flags, &[]).len(), 2);
}

#[test]
fn a_secret_value_may_stand_in_the_environment_or_in_a_file_of_its_own() {
    let mut key = tempfile::NamedTempFile::new().unwrap();
    key.write_all(b"of-file\n").unwrap();
    let at = key.path().display();
    let (_file, flags) = file(&format!(
        "storage.options: {{a: {{env: MY_KEY}}, b: {{file: {at}}}, c: plain}}\n\
         storage: {{stores: {{'s3://x/': {{d: {{env: MY_KEY}}}}}}}}\n"
    ));
    let storage = load(&flags, &environment(&[("MY_KEY", "of-env")])).unwrap().config.storage;
    let options: BTreeMap<_, _> = storage.options.expose().collect();
    assert_eq!([&options["a"], &options["b"], &options["c"]], ["of-env", "of-file", "plain"]);
    assert!(storage.stores.0["s3://x/"].expose().eq([("d".into(), "of-env".into())]));

    let (_file, flags) = file("storage.options: {a: {env: MY_KEY}, b: {file: /nonexistent/key}}\n");
    let found = problems(&flags, &[]);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].ends_with("names MY_KEY in the environment, which is not set"), "{found:?}");
    let (_file, flags) = file("storage.stores: {'s3://key:hunter2@x/': {}}\n");
    assert!(!problems(&flags, &[])[0].contains("hunter2"));
}

#[test]
fn a_file_that_is_missing_or_broken_or_says_a_key_twice_is_a_problem() {
    let flags = Flags { config: Some("/nonexistent/file.yaml".into()), ..Flags::default() };
    assert_eq!(problems(&flags, &[]).len(), 1);
    for text in [
        "a: [",
        "- a\n",
        "scan: {batch-rows: 1}\nscan.batch-rows: 2\n",
        "scan.batch-rows: 1\nscan.batch-rows: 2\n",
        "1: 2\n",
    ] {
        let (_file, flags) = file(text);
        assert_eq!(problems(&flags, &[]).len(), 1, "{text}");
    }
    let (_file, flags) = file("# only a comment\n");
    assert!(problems(&flags, &[]).is_empty());
}

#[test]
fn the_file_can_be_named_in_the_environment() {
    let (file, _) = file("warehouse: /from/file\n");
    let env = environment(&[("LANCE_GATEWAY_CONFIG", file.path().to_str().unwrap())]);
    assert_eq!(load(&Flags::default(), &env).unwrap().config.warehouse.as_str(), "/from/file");
}

#[test]
fn the_page_of_options_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/configuration.md");
    let written = std::fs::read_to_string(path).unwrap_or_default();
    let page = super::super::docs::page();
    assert!(
        written == page,
        "docs/configuration.md is stale: lance-gateway --print-config-docs > docs/configuration.md"
    );
    for spec in table::all() {
        assert!(page.contains(&format!("| `{}` |", spec.key())), "{}", spec.key());
    }
}
