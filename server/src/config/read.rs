//! Takes values from the sources in the order of their precedence, and collects what is wrong with them.

use std::collections::HashMap;
use std::fmt;

use serde_yaml_ng::Value as Yaml;

use super::table::{self, OptionSpec};
use super::values::OptionValue;

/// One thing that is wrong with the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The flag, name or key.
    pub place: String,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl Problem {
    pub(super) fn new(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: place.into(), message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// A value as it was found.
pub(super) enum Raw {
    Text(String),
    Yaml(Yaml),
}

/// A value and where it stands. Without Debug: it may be a secret.
pub(super) struct Found {
    pub(super) place: String,
    pub(super) raw: Raw,
}

/// One source: values by option.
pub(super) type Source = HashMap<String, Found>;

/// Reads typed values.
pub(super) struct Reader<'a> {
    /// The strongest first.
    sources: &'a [Source],
    pub(super) problems: Vec<Problem>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(sources: &'a [Source]) -> Self {
        Self { sources, problems: Vec::new() }
    }

    /// The value of an option, checked; `None` after a problem. A value that a stronger source hides is checked, too: it would
    /// be a surprise on the day the stronger one goes.
    pub(super) fn value<T: OptionValue>(&mut self, path: &str) -> Option<T> {
        let Some(spec) = table::all().find(|spec| spec.is(path)) else {
            self.problems.push(Problem::new(path, "is in no table of options"));
            return None;
        };
        let key = spec.key();
        let mut chosen = None;
        let mut failed = false;
        for found in self.sources.iter().filter_map(|source| source.get(key.as_str())) {
            match read::<T>(spec, &found.raw) {
                Ok(value) if chosen.is_none() => chosen = Some(value),
                Ok(_) => {}
                Err(message) => {
                    failed = true;
                    self.problems.push(Problem::new(&found.place, message));
                }
            }
        }
        if failed {
            return None;
        }
        chosen.or_else(|| match read::<T>(spec, &Raw::Text(spec.default.to_owned())) {
            Ok(value) => Some(value),
            Err(message) => {
                self.problems.push(Problem::new(format!("default of {key}"), message));
                None
            }
        })
    }
}

fn read<T: OptionValue>(spec: &OptionSpec, raw: &Raw) -> Result<T, String> {
    let (value, shown) = match raw {
        Raw::Text(text) => (T::parse(text), Some(text.clone())),
        Raw::Yaml(yaml) => (T::from_yaml(yaml), shown(yaml)),
    };
    let shown = if spec.secret { None } else { shown };
    let value = value.map_err(|message| with_value(message, shown.as_deref()))?;
    if let (Some((min, max)), Some(measure)) = (spec.bounds, value.measure()) {
        let bound = |text: &str| T::parse(text).ok().and_then(|bound| bound.measure());
        let within = bound(min).is_some_and(|min| min <= measure) && bound(max).is_some_and(|max| measure <= max);
        if !within {
            return Err(with_value(format!("must be {min} to {max}"), shown.as_deref()));
        }
    }
    Ok(value)
}

fn shown(yaml: &Yaml) -> Option<String> {
    match yaml {
        Yaml::String(text) => Some(text.clone()),
        Yaml::Number(number) => Some(number.to_string()),
        Yaml::Bool(value) => Some(value.to_string()),
        Yaml::Sequence(_) | Yaml::Mapping(_) | Yaml::Tagged(_) | Yaml::Null => None,
    }
}

fn with_value(message: String, shown: Option<&str>) -> String {
    match shown {
        Some(value) => format!("{message}, not {:?}", value.chars().take(200).collect::<String>()),
        None => message,
    }
}
