//! The page of options, generated from their table.

use std::fmt::Write as _;

use super::table::{GROUPS, OptionSpec};

const HEAD: &str = "\
# Configuration

Generated from the table of options in `server/src/config/table.rs` by `lance-gateway --print-config-docs`; do not edit.

An option is taken from the first of these that has it:

1. a flag: `--listen` (repeatable), `--admin-listen`, `--warehouse`
2. the environment: the name beside each key
3. one YAML file: `--config FILE`, or `LANCE_GATEWAY_CONFIG`
4. its default

Keys of the file may be nested (`scan: {batch-rows: 8192}`) or written in one (`scan.batch-rows: 8192`). Lists are YAML lists, or
`a,b` in the environment. Sizes take `KiB`, `MiB`, `GiB`, `TiB`; durations `ms`, `s`, `m`, `h`, `d`. Bounds are inclusive.

Unknown keys and unknown `LANCE_GATEWAY_…` names are refused. All problems are told at once, before any port is bound, with
exit code 2. `lance-gateway --check-config` does only that.
";

/// `docs/configuration.md`.
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    for group in GROUPS {
        let title = if group.name.is_empty() { "Places" } else { group.name };
        // Writing to a String cannot fail.
        let _ = write!(page, "\n## {title}\n\n{}\n\n", text(group.doc));
        page.push_str("| Key | Environment | Value | Default | Meaning | Since |\n|---|---|---|---|---|---|\n");
        for option in group.options {
            let _ = writeln!(
                page,
                "| `{}` | `{}` | {} | {} | {} | {} |",
                option.key(),
                option.env(),
                value(option),
                default(option),
                text(option.doc),
                option.since,
            );
        }
    }
    page
}

fn value(option: &OptionSpec) -> String {
    let kind = if option.unit.is_empty() { option.kind } else { option.unit };
    match option.bounds {
        Some((min, max)) => format!("{kind}, {min} to {max}"),
        None => kind.to_owned(),
    }
}

fn default(option: &OptionSpec) -> String {
    if option.default.is_empty() { "-".to_owned() } else { format!("`{}`", option.default) }
}

/// Doc comments begin each line with a blank.
fn text(doc: &str) -> &str {
    doc.trim()
}
