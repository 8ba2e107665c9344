//! Finds the values of all sources.

use std::collections::BTreeMap;
use std::path::Path;

use serde_yaml_ng::Value as Yaml;

use super::flags::Flags;
use super::read::{Found, Problem, Raw, Reader, Source};
use super::table::{self, Config, OptionSpec};
use super::{ENV_PREFIX, check};

/// Names the file, as `--config` does.
const CONFIG_NAME: &str = "LANCE_GATEWAY_CONFIG";
/// Where clients find a gateway: not ours, but often beside us.
const CLIENT_NAMES: &[&str] = &["LANCE_GATEWAY_URI"];
/// A configuration is a page of text.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// A checked configuration.
#[derive(Debug)]
pub struct Loaded {
    /// The values.
    pub config: Config,
    /// Keys that are not at their default, each with the place of its value.
    pub set: Vec<(String, String)>,
}

/// Loads and checks, or tells all problems.
pub fn load(flags: &Flags, environment: &BTreeMap<String, String>) -> Result<Loaded, Vec<Problem>> {
    let mut problems = Vec::new();
    let from_env = from_environment(environment, &mut problems);
    let file = match &flags.config {
        Some(path) => Some(path.as_path()),
        None => environment.get(CONFIG_NAME).map(Path::new),
    };
    let mut from_file = file.map(|path| from_file(path, &mut problems)).unwrap_or_default();
    for spec in table::all().filter(|spec| spec.secret) {
        if let Some(Found { place, raw: Raw::Yaml(value) }) = from_file.get_mut(&spec.key()) {
            fetch(value, place, environment, &mut problems);
        }
    }
    let sources = [from_flags(flags), from_env, from_file];

    let mut reader = Reader::new(&sources);
    let config = Config::read(&mut reader);
    problems.append(&mut reader.problems);
    match config {
        Some(config) => {
            problems.extend(check::check(&config));
            if problems.is_empty() { Ok(Loaded { config, set: set(&sources) }) } else { Err(problems) }
        }
        None => Err(problems),
    }
}

fn set(sources: &[Source]) -> Vec<(String, String)> {
    table::all()
        .filter_map(|spec| {
            let key = spec.key();
            let found = sources.iter().find_map(|source| source.get(key.as_str()))?;
            Some((key, found.place.clone()))
        })
        .collect()
}

fn from_flags(flags: &Flags) -> Source {
    let mut source = Source::new();
    if !flags.listen.is_empty() {
        let raw = Raw::Yaml(Yaml::Sequence(flags.listen.iter().cloned().map(Yaml::String).collect()));
        source.insert("listen".to_owned(), Found { place: "--listen".into(), raw });
    }
    for (key, value) in [("admin-listen", &flags.admin_listen), ("warehouse", &flags.warehouse)] {
        if let Some(value) = value {
            source.insert(key.to_owned(), Found { place: format!("--{key}"), raw: Raw::Text(value.clone()) });
        }
    }
    source
}

fn from_environment(environment: &BTreeMap<String, String>, problems: &mut Vec<Problem>) -> Source {
    let mut source = Source::new();
    for (name, value) in environment {
        if !name.starts_with(ENV_PREFIX) || name == CONFIG_NAME || CLIENT_NAMES.contains(&name.as_str()) {
            continue;
        }
        match table::all().find(|spec| spec.env() == *name) {
            Some(spec) => {
                source.insert(spec.key(), Found { place: name.clone(), raw: Raw::Text(value.clone()) });
            }
            None if is_service_link(name) => {}
            None => {
                let hint = hint(name, table::all().map(OptionSpec::env));
                problems.push(Problem::new(name, format!("is no option of the gateway{hint}")));
            }
        }
    }
    source
}

/// Whether Kubernetes made this name from a service called `lance-gateway` or `lance-gateway-…`, as it does in every pod.
fn is_service_link(name: &str) -> bool {
    let rest = &name[ENV_PREFIX.len() - 1..];
    if rest.ends_with("_SERVICE_HOST") || rest.ends_with("_SERVICE_PORT") || rest.contains("_SERVICE_PORT_") {
        return true;
    }
    match rest.rsplit_once("_PORT") {
        Some((_, "")) => match rest.strip_suffix("_PORT").and_then(|r| r.rsplit_once("_PORT_")) {
            Some((_, port)) => is_port_and_protocol(port),
            None => true,
        },
        _ => rest.rsplit_once("_PORT_").is_some_and(|(_, port)| {
            let port = port.strip_suffix("_ADDR").or_else(|| port.strip_suffix("_PROTO")).unwrap_or(port);
            is_port_and_protocol(port)
        }),
    }
}

fn is_port_and_protocol(text: &str) -> bool {
    text.split_once('_')
        .is_some_and(|(port, protocol)| port.parse::<u16>().is_ok() && matches!(protocol, "TCP" | "UDP" | "SCTP"))
}

fn from_file(path: &Path, problems: &mut Vec<Problem>) -> Source {
    let place = path.display().to_string();
    let mut source = Source::new();
    let text = match read_bounded(path) {
        Ok(text) => text,
        Err(error) => {
            problems.push(Problem::new(place, format!("cannot be read: {error}")));
            return source;
        }
    };
    match serde_yaml_ng::from_str::<Yaml>(&text) {
        Ok(Yaml::Null) => {}
        Ok(Yaml::Mapping(map)) => flatten("", &Yaml::Mapping(map), &place, &mut source, problems),
        Ok(_) => problems.push(Problem::new(place, "must be a map of options")),
        // The text of the error repeats at most a key, never a value.
        Err(error) => {
            let at =
                error.location().map(|l| format!(" at line {}, column {}", l.line(), l.column())).unwrap_or_default();
            let what = if error.to_string().contains("duplicate") { "has a key twice" } else { "is no valid YAML" };
            problems.push(Problem::new(place, format!("{what}{at}")));
        }
    }
    source
}

/// Puts the values in whose places the file only says where they are: `{env: NAME}`, `{file: PATH}`.
fn fetch(value: &mut Yaml, place: &str, environment: &BTreeMap<String, String>, problems: &mut Vec<Problem>) {
    let Yaml::Mapping(map) = value else { return };
    let mut entries = map.iter();
    let fetched = match (entries.next(), entries.next()) {
        (Some((Yaml::String(source), Yaml::String(at))), None) => match source.as_str() {
            "env" => {
                environment.get(at).cloned().ok_or_else(|| format!("names {at} in the environment, which is not set"))
            }
            "file" => read_bounded(Path::new(at))
                .map(|text| text.trim_end_matches(['\r', '\n']).to_owned())
                .map_err(|error| format!("names the file {at}, which cannot be read: {error}")),
            _ => return,
        },
        _ => {
            for (_, inner) in map.iter_mut() {
                fetch(inner, place, environment, problems);
            }
            return;
        }
    };
    *value = Yaml::String(fetched.unwrap_or_else(|message| {
        problems.push(Problem::new(place, message));
        String::new()
    }));
}

fn read_bounded(path: &Path) -> std::io::Result<String> {
    use std::io::Read as _;
    let mut text = String::new();
    let read = std::fs::File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
    if read as u64 > MAX_FILE_BYTES {
        return Err(std::io::Error::other("it is larger than 1 MiB"));
    }
    Ok(text)
}

/// Keys may be nested (`scan: {batch-rows: 1}`) or in one (`scan.batch-rows: 1`).
fn flatten(prefix: &str, value: &Yaml, file: &str, source: &mut Source, problems: &mut Vec<Problem>) {
    let Yaml::Mapping(map) = value else {
        problems.push(Problem::new(format!("{file}: {prefix}"), "must be a map of options"));
        return;
    };
    for (name, value) in map {
        let Yaml::String(name) = name else {
            problems.push(Problem::new(format!("{file}: {prefix}"), "has a key that is no text"));
            continue;
        };
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        let place = format!("{file}: {key}");
        if table::all().any(|spec| spec.key() == key) {
            if source.insert(key, Found { place: place.clone(), raw: Raw::Yaml(value.clone()) }).is_some() {
                problems.push(Problem::new(place, "stands twice in the file"));
            }
        } else if table::all().any(|spec| spec.key().starts_with(&format!("{key}."))) {
            if !matches!(value, Yaml::Null) {
                flatten(&key, value, file, source, problems);
            }
        } else {
            let hint = hint(&key, table::all().map(OptionSpec::key));
            problems.push(Problem::new(place, format!("is no option of the gateway{hint}")));
        }
    }
}

/// The nearest name, if one is near enough to be meant.
fn hint(wrong: &str, names: impl Iterator<Item = String>) -> String {
    names
        .map(|name| (distance(wrong, &name), name))
        .min()
        .filter(|(distance, name)| *distance <= 2 + name.len() / 5)
        .map(|(_, name)| format!("; did you mean {name}?"))
        .unwrap_or_default()
}

/// Edits between two names.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().take(200).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let cost = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#[path = "tests.rs"]
mod tests;
