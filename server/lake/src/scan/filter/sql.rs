//! Filters that people type: the condition of a WHERE clause in Lance's dialect.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use arrow_schema::{DataType, Schema as ArrowSchema};
use lance::deps::datafusion::common::DFSchema;
use lance::deps::datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use lance::deps::datafusion::logical_expr::{Expr, ExprSchemable};
use lance::deps::datafusion::sql::sqlparser::dialect::{Dialect, GenericDialect};
use lance::deps::datafusion::sql::sqlparser::parser::Parser;
use lance::deps::datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use lance_core::datatypes::Schema as LanceSchema;
use lance_datafusion::planner::Planner;

use super::{exact, too_deep};
use crate::error::{Error, Result};
use crate::lance_error::detail;
use crate::schema::{no_such_column, shown_name};
use crate::table::excerpt;

/// Longest text.
const MAX_BYTES: usize = 64 << 10;
/// Most tokens; with the stack below this bounds the recursions over what was parsed.
const MAX_TOKENS: usize = 4_096;
/// For Lance's planner, which recurses over what was parsed.
const STACK_BYTES: usize = 64 << 20;
/// Nesting that the parser follows: less than it does in Lance, where the condition lies in a SELECT. (Beyond its limit it takes
/// keywords for names, so both must stay within.)
const PARSER_DEPTH: usize = 40;

/// What a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Condition,
    Value,
}

/// Parses, checks and optimises a condition, over the stored names.
pub(super) fn plan(text: &str, schema: &LanceSchema, max_depth: usize) -> Result<Expr> {
    read(text, schema, max_depth, What::Condition)
}

/// The same for a value of any type.
pub(super) fn value(text: &str, schema: &LanceSchema, max_depth: usize) -> Result<Expr> {
    read(text, schema, max_depth, What::Value)
}

fn read(text: &str, schema: &LanceSchema, max_depth: usize, what: What) -> Result<Expr> {
    if text.len() > MAX_BYTES {
        return Err(Error::invalid(format!("the filter is longer than {MAX_BYTES} bytes")));
    }
    let tokens = tokens(text)?;
    check_nesting(&tokens, max_depth)?;
    let stored = stored_text(text, &tokens, schema);
    stacker::grow(STACK_BYTES, || parse(text, tokens, &stored, schema, max_depth, what))
}

fn tokens(text: &str) -> Result<Vec<Token>> {
    let tokens = Tokenizer::new(&LanceDialect, text).tokenize().map_err(|e| unreadable(text, &e.to_string()))?;
    if tokens.len() > MAX_TOKENS {
        return Err(Error::invalid(format!("the filter has more than {MAX_TOKENS} words and signs")));
    }
    for token in &tokens {
        // Lance's planner has no answer to other literals than these, not even an error.
        let known = !matches!(
            token,
            Token::Placeholder(_)
                | Token::NationalStringLiteral(_)
                | Token::EscapedStringLiteral(_)
                | Token::UnicodeStringLiteral(_)
                | Token::DollarQuotedString(_)
                | Token::SingleQuotedByteStringLiteral(_)
                | Token::DoubleQuotedByteStringLiteral(_)
                | Token::SingleQuotedRawStringLiteral(_)
                | Token::DoubleQuotedRawStringLiteral(_)
                | Token::TripleSingleQuotedString(_)
                | Token::TripleDoubleQuotedString(_)
                | Token::TripleSingleQuotedByteStringLiteral(_)
                | Token::TripleDoubleQuotedByteStringLiteral(_)
                | Token::TripleSingleQuotedRawStringLiteral(_)
                | Token::TripleDoubleQuotedRawStringLiteral(_)
                | Token::Char(_)
                | Token::SemiColon
        );
        if !known {
            return Err(Error::invalid(format!("the filter holds '{}', which it cannot", excerpt(&token.to_string()))));
        }
    }
    Ok(tokens)
}

fn check_nesting(tokens: &[Token], max_depth: usize) -> Result<()> {
    let (mut depth, mut nots) = (0_usize, 0_usize);
    for token in tokens {
        match token {
            Token::Whitespace(_) => continue,
            Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("not") => nots += 1,
            _ => nots = 0,
        }
        match token {
            Token::LParen | Token::LBracket | Token::LBrace => depth += 1,
            Token::RParen | Token::RBracket | Token::RBrace => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth + nots > max_depth {
            return Err(too_deep(max_depth));
        }
    }
    Ok(())
}

/// The text with each column under the name that Lance stores it by.
fn stored_text<'a>(text: &'a str, tokens: &[Token], schema: &LanceSchema) -> Cow<'a, str> {
    let renamed = |word: &str| {
        let mut fields = schema.fields.iter();
        fields.find(|field| field.name != word && shown_name(&field.name, &field.metadata) == word)
    };
    let is_renamed = |token: &Token| matches!(token, Token::Word(word) if renamed(&word.value).is_some());
    if !tokens.iter().any(is_renamed) {
        return Cow::Borrowed(text);
    }
    let mut result = String::with_capacity(text.len());
    let mut after_dot = false;
    for token in tokens {
        // What stood in quotes is without its escapes now.
        result.push_str(&match token {
            Token::Word(word) if word.quote_style == Some('`') => {
                let stored = if after_dot { None } else { renamed(&word.value) };
                let name = stored.map_or(word.value.as_str(), |field| field.name.as_str());
                format!("`{}`", name.replace('`', "``"))
            }
            Token::SingleQuotedString(value) => format!("'{}'", value.replace('\'', "''")),
            Token::DoubleQuotedString(value) => format!("\"{}\"", value.replace('"', "\"\"")),
            other => other.to_string(),
        });
        after_dot = *token == Token::Period;
    }
    Cow::Owned(result)
}

fn parse(
    text: &str,
    tokens: Vec<Token>,
    stored: &str,
    schema: &LanceSchema,
    max_depth: usize,
    what: What,
) -> Result<Expr> {
    // Lance reads the text as the end of a SELECT, where more than a condition may follow. It may not here.
    let mut parser = Parser::new(&LanceDialect).with_recursion_limit(PARSER_DEPTH).with_tokens(tokens);
    parser.parse_expr().map_err(|e| unreadable(text, &e.to_string()))?;
    if parser.peek_token().token != Token::EOF {
        return Err(unreadable(text, &format!("a condition cannot go on with '{}'", parser.peek_token().token)));
    }
    let arrow = Arc::new(ArrowSchema::from(schema));
    let planner = Planner::new(arrow.clone());
    let expr = match what {
        What::Condition => planner.parse_filter(stored),
        What::Value => planner.parse_expr(stored),
    };
    let expr = expr.map_err(|e| unreadable(text, &detail(&e)))?;
    check_columns(&expr, schema)?;
    check_depth(&expr, max_depth)?;
    let expr = match what {
        What::Condition => exact::optimize(&planner, expr),
        What::Value => planner.optimize_expr(expr),
    };
    let expr = expr.map_err(|e| unreadable(text, &detail(&e)))?;
    if what == What::Condition {
        check_boolean(&expr, &arrow, text)?;
    }
    Ok(expr)
}

fn check_columns(expr: &Expr, schema: &LanceSchema) -> Result<()> {
    const PLACE: &str = "the filter";
    let shown = || schema.fields.iter().map(|f| shown_name(&f.name, &f.metadata));
    let stored: HashSet<&str> = schema.fields.iter().map(|f| f.name.as_str()).collect();
    for column in expr.column_refs() {
        if !stored.contains(column.name.as_str()) {
            return Err(no_such_column(&column.name, shown(), PLACE));
        }
    }
    for path in Planner::column_names_in_expr(expr) {
        if schema.resolve(&path).is_none() {
            return Err(no_such_column(&path, shown(), PLACE));
        }
    }
    Ok(())
}

/// What is planned further is walked by recursions on ordinary stacks. (Lance balances chains of AND and OR.)
fn check_depth(expr: &Expr, max_depth: usize) -> Result<()> {
    let mut open = vec![(expr, 1_usize)];
    while let Some((expr, depth)) = open.pop() {
        if depth > max_depth {
            return Err(too_deep(max_depth));
        }
        let mut children = Vec::new();
        expr.apply_children(|child| {
            children.push(child);
            Ok(TreeNodeRecursion::Continue)
        })
        .map_err(|e| Error::internal("a filter cannot be walked").with_source(e))?;
        open.extend(children.into_iter().map(|child| (child, depth + 1)));
    }
    Ok(())
}

fn check_boolean(expr: &Expr, schema: &Arc<ArrowSchema>, text: &str) -> Result<()> {
    let described = DFSchema::try_from(schema.as_ref().clone()).and_then(|schema| expr.get_type(&schema));
    match described {
        Ok(DataType::Boolean) => Ok(()),
        Ok(other) => Err(unreadable(text, &format!("it is of type {other}, not a condition"))),
        Err(e) => Err(unreadable(text, &e.to_string())),
    }
}

fn unreadable(text: &str, why: &str) -> Error {
    Error::invalid(format!("the filter '{}' cannot be read: {}", excerpt(text), excerpt(why)))
}

/// Lance's dialect: names are quoted with backticks only, so that "x" is a string.
#[derive(Debug)]
struct LanceDialect;

impl Dialect for LanceDialect {
    fn is_identifier_start(&self, ch: char) -> bool {
        GenericDialect {}.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        GenericDialect {}.is_identifier_part(ch)
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        ch == '`'
    }

    fn supports_bitwise_shift_operators(&self) -> bool {
        GenericDialect {}.supports_bitwise_shift_operators()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use arrow_schema::Field;

    use super::*;
    use crate::error::ErrorKind;
    use crate::schema::to_lance;

    fn schema() -> LanceSchema {
        let inner = Field::new("x", DataType::Int64, true);
        let fields = vec![
            Field::new("id", DataType::Int64, false),
            Field::new("PartyAbbrev", DataType::Utf8, true),
            Field::new("user-id", DataType::Int64, true),
            Field::new("a.b", DataType::Int64, true),
            Field::new("select", DataType::Int64, true),
            Field::new("a", DataType::Struct(vec![inner].into()), true),
        ];
        to_lance(&ArrowSchema::new(fields), &[], "2.2").unwrap()
    }

    fn refused(text: &str) -> Error {
        plan(text, &schema(), 128).unwrap_err()
    }

    #[test]
    fn any_column_can_be_named_in_backticks() {
        for text in [
            "id = 1",
            "PartyAbbrev = 'SPD' AND id > 3",
            "`user-id` = 1",
            "`a.b` = 1 OR `a.b` IS NULL",
            "`select` IN (1, 2)",
            "a.x = 1",
            "id == 1",
            "id BETWEEN 1 AND 2",
            "PartyAbbrev LIKE 'S%'",
            "PartyAbbrev = \"SPD\"",
            "`a.b` = 1 AND PartyAbbrev = 'it''s' AND PartyAbbrev <> \"say \"\"x\"\"\"",
        ] {
            let planned = plan(text, &schema(), 128);
            assert!(planned.is_ok(), "{text}: {planned:?}");
        }
    }

    #[test]
    fn unknown_columns_are_named() {
        for text in ["idd = 1", "`a.b` = 1 AND nothing = 2", "a.y = 1", "_rowid = 1", "`user_id` = 1"] {
            assert_eq!(refused(text).kind(), ErrorKind::ColumnNotFound, "{text}: {}", refused(text));
        }
        assert!(refused("idd = 1").message().contains("'id'"));
    }

    #[test]
    fn what_is_no_condition_is_refused() {
        let long = "x".repeat(MAX_BYTES + 1);
        for text in [
            "",
            "id",
            "id + 1",
            "id = 1; DROP TABLE t",
            "id = 1 ORDER BY id",
            "id = 1 LIMIT 3",
            "id = 1 UNION SELECT 1",
            "id = (SELECT 1)",
            "id = $1",
            "id = ?",
            "PartyAbbrev = N'x'",
            "PartyAbbrev = 'open",
            "id = 'x'",
            &long,
        ] {
            assert_eq!(refused(text).kind(), ErrorKind::InvalidArgument, "{text}");
        }
    }

    #[test]
    fn text_that_is_nested_10_000_deep_is_refused_and_nothing_overflows() {
        let parentheses = format!("{}id = 1{}", "(".repeat(10_000), ")".repeat(10_000));
        let nots = format!("{} id = 1", "NOT ".repeat(1_900));
        let minuses = format!("id {} = 1", "- id ".repeat(1_000));
        let brackets = format!("id = a{}", "[0]".repeat(1_000));
        for text in [parentheses, nots, minuses, brackets] {
            let error = refused(&text);
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{}: {error}", excerpt(&text));
        }
        let chain = vec!["id = 1"; 400].join(" OR ");
        assert!(plan(&chain, &schema(), 128).is_ok());
    }
}
