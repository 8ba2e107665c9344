//! Lists of columns as people type them.

use lance_gateway_client::ColumnPath;
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use crate::args::Columns;

/// Columns between commas. A dot outside quotes goes down into a struct; quotes (`` ` `` or `"`) make anything a name.
pub fn parse_columns(text: &str) -> Result<Columns, String> {
    if text.trim().is_empty() {
        return Ok(Columns(Vec::new()));
    }
    // Words such as `user-id` are no identifiers of SQL but fine as they stand.
    if !text.contains(['`', '"']) {
        return text.split(',').map(plain).collect::<Result<_, _>>().map(Columns);
    }
    let wrong = |e| format!("{text:?} is no list of columns: {e}");
    let mut parser = Parser::new(&GenericDialect {}).try_with_sql(text).map_err(wrong)?;
    let columns = parser
        .parse_comma_separated(|parser| {
            let mut names = vec![parser.parse_identifier()?.value];
            while parser.consume_token(&Token::Period) {
                names.push(parser.parse_identifier()?.value);
            }
            Ok(ColumnPath::new(names))
        })
        .map_err(wrong)?;
    parser.expect_token(&Token::EOF).map_err(wrong)?;
    Ok(Columns(columns))
}

/// One column, as in a list of them.
pub fn parse_column(text: &str) -> Result<ColumnPath, String> {
    match <[ColumnPath; 1]>::try_from(parse_columns(text)?.0) {
        Ok([column]) => Ok(column),
        Err(_) => Err(format!("{text:?} is not one column")),
    }
}

/// `COLUMN=VALUE`; the column may be in quotes.
pub fn parse_assignment(text: &str) -> Result<(String, String), String> {
    let wrong = || format!("{text:?} is not COL=EXPR");
    let (column, value) = text.split_once('=').ok_or_else(wrong)?;
    if value.trim().is_empty() {
        return Err(wrong());
    }
    match parse_column(column.trim())?.names() {
        [name] => Ok((name.clone(), value.trim().to_owned())),
        _ => Err(format!("{column:?} is a field of a column; a column is set as a whole")),
    }
}

fn plain(column: &str) -> Result<ColumnPath, String> {
    let names: Vec<&str> = column.trim().split('.').collect();
    match names.iter().any(|name| name.is_empty()) {
        true => Err(format!("{column:?} is no column")),
        false => Ok(ColumnPath::new(names)),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn columns(text: &str) -> Vec<Vec<String>> {
        parse_columns(text).unwrap().0.iter().map(|column| column.names().to_vec()).collect()
    }

    #[test]
    fn plain_names_need_no_quotes() {
        assert_eq!(columns("a, PartyAbbrev,user-id,select"), [["a"], ["PartyAbbrev"], ["user-id"], ["select"]]);
        assert_eq!(columns("s.x"), [["s", "x"]]);
        assert!(columns("").is_empty());
    }

    #[test]
    fn quotes_make_anything_a_name() {
        assert_eq!(columns(r#"`a.b`,"c,d",`e`.`f g`"#), [vec!["a.b"], vec!["c,d"], vec!["e", "f g"]]);
    }

    #[test]
    fn an_assignment_ends_its_column_at_the_first_sign() {
        let pair = |column: &str, value: &str| Ok((column.to_owned(), value.to_owned()));
        assert_eq!(parse_assignment("price=price * 2"), pair("price", "price * 2"));
        assert_eq!(parse_assignment("`a.b` = x = 'y'"), pair("a.b", "x = 'y'"));
        for wrong in ["price", "price=", "s.x=1", "=1"] {
            assert!(parse_assignment(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_no_list_is_told() {
        for wrong in ["a,,b", "a.", "`a", "`a` b"] {
            assert!(parse_columns(wrong).is_err(), "{wrong}");
        }
    }
}
