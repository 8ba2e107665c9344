//! Column names that Lance cannot store at the top level.
//!
//! Lance reads `a.b` as "field b of struct a" and refuses a column of that name. Such a column gets an escaped name in Lance, and
//! its own name in the field's metadata; clients see only the latter.

use std::borrow::Cow;
use std::collections::HashMap;

/// Key in a field's metadata that holds the name clients see.
pub(crate) const NAME_KEY: &str = "lance-gateway.name";

/// The name under which Lance stores a column.
pub(crate) fn stored_name(name: &str) -> Cow<'_, str> {
    if name.contains(['.', '`']) {
        Cow::Owned(name.replace('.', "%2E").replace('`', "%60"))
    } else {
        Cow::Borrowed(name)
    }
}

/// The name clients see. A column that another tool renamed goes by its new name.
pub(crate) fn shown_name<'a>(stored: &'a str, metadata: &'a HashMap<String, String>) -> &'a str {
    match metadata.get(NAME_KEY) {
        Some(name) if stored_name(name) == stored => name,
        _ => stored,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_with_dots_or_backticks_are_stored_otherwise() {
        for name in ["PartyAbbrev", "user-id", "select", "it's", "a b", "é", "100%", "a\"b"] {
            assert_eq!(stored_name(name), name);
        }
        assert_eq!(stored_name("a.b"), "a%2Eb");
        assert_eq!(stored_name("a`b"), "a%60b");
    }

    #[test]
    fn a_renamed_column_goes_by_its_new_name() {
        let metadata = HashMap::from([(NAME_KEY.to_owned(), "a.b".to_owned())]);
        assert_eq!(shown_name("a%2Eb", &metadata), "a.b");
        assert_eq!(shown_name("c", &metadata), "c");
        assert_eq!(shown_name("a%2Eb", &HashMap::new()), "a%2Eb");
    }
}
