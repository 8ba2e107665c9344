//! Schemas as SQL text, both ways.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use sqlparser::ast;
use sqlparser::dialect::GenericDialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

/// A type within a type within a type ...: deeper is a mistake, not a table.
const MAX_DEPTH: usize = 32;

/// What `DECIMAL` without numbers means, as in Flink.
const DECIMAL_DEFAULT: (u64, u64) = (10, 0);
/// What `TIMESTAMP` without a number means, as in Flink.
const TIMESTAMP_DEFAULT: u64 = 6;
/// What `TIME` without a number means, as in Flink.
const TIME_DEFAULT: u64 = 0;

/// Reads `name TYPE [NOT NULL], ...`.
pub fn parse_schema(text: &str) -> Result<SchemaRef, String> {
    let wrong = |e: ParserError| match e {
        ParserError::ParserError(message) | ParserError::TokenizerError(message) => message,
        ParserError::RecursionLimitExceeded => "it is nested too deep".to_owned(),
    };
    let tokens =
        Tokenizer::new(&GenericDialect {}, text).tokenize_with_location().map_err(|e| wrong(ParserError::from(e)))?;
    let mut parser = TypeParser { inner: Parser::new(&GenericDialect {}).with_tokens_with_locations(split(tokens)) };
    let fields = parser.fields(&Token::EOF, 0).map_err(wrong)?;
    let mut names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("column {:?} is there twice", pair[0])),
        None => Ok(Arc::new(Schema::new(fields))),
    }
}

/// `>>` closes two types at once.
fn split(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut out = Vec::with_capacity(tokens.len());
    for token in tokens {
        match token.token {
            Token::ShiftRight => {
                out.push(TokenWithSpan::new(Token::Gt, token.span));
                out.push(TokenWithSpan::new(Token::Gt, token.span));
            }
            _ => out.push(token),
        }
    }
    out
}

struct TypeParser<'a> {
    inner: Parser<'a>,
}

impl TypeParser<'_> {
    /// Fields up to and with the token that closes them.
    fn fields(&mut self, close: &Token, depth: usize) -> Result<Vec<Field>, ParserError> {
        let mut fields = Vec::new();
        loop {
            let name = self.inner.parse_identifier()?.value;
            let data_type = self.data_type(depth)?;
            fields.push(Field::new(name, data_type, self.nullable()?));
            if !self.inner.consume_token(&Token::Comma) {
                self.inner.expect_token(close)?;
                return Ok(fields);
            }
        }
    }

    /// A type and whether it may be null, as an element or a value has it.
    fn element(&mut self, name: &str, depth: usize) -> Result<Arc<Field>, ParserError> {
        let data_type = self.data_type(depth)?;
        Ok(Arc::new(Field::new(name, data_type, self.nullable()?)))
    }

    fn nullable(&mut self) -> Result<bool, ParserError> {
        match self.inner.parse_one_of_keywords(&[Keyword::NOT, Keyword::NULL]) {
            Some(Keyword::NOT) => self.inner.expect_keyword(Keyword::NULL).map(|_| false),
            _ => Ok(true),
        }
    }

    fn data_type(&mut self, depth: usize) -> Result<DataType, ParserError> {
        if depth > MAX_DEPTH {
            return Err(ParserError::RecursionLimitExceeded);
        }
        let word = match &self.inner.peek_token_ref().token {
            Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_uppercase(),
            _ => String::new(),
        };
        let mut data_type = match word.as_str() {
            "ARRAY" => {
                self.open(&[(Token::Lt, Token::Gt)])?;
                let element = self.element("item", depth + 1)?;
                self.inner.expect_token(&Token::Gt)?;
                DataType::List(element)
            }
            "ROW" | "STRUCT" => {
                let close = self.open(&[(Token::Lt, Token::Gt), (Token::LParen, Token::RParen)])?;
                DataType::Struct(Fields::from(self.fields(&close, depth + 1)?))
            }
            "MAP" => {
                self.open(&[(Token::Lt, Token::Gt)])?;
                let key = self.data_type(depth + 1)?;
                // Keys are never null, and saying so is allowed.
                self.nullable()?;
                self.inner.expect_token(&Token::Comma)?;
                let value = self.element("value", depth + 1)?;
                self.inner.expect_token(&Token::Gt)?;
                map(key, value)
            }
            "TIMESTAMP_LTZ" => {
                self.inner.advance_token();
                timestamp(self.inner.parse_optional_precision()?, true)?
            }
            _ => scalar(&self.inner.parse_data_type()?)?,
        };
        while self.inner.consume_token(&Token::LBracket) {
            let size = self.inner.parse_literal_uint()?;
            self.inner.expect_token(&Token::RBracket)?;
            data_type = fixed_size_list(data_type, size)?;
        }
        Ok(data_type)
    }

    /// Steps over the word of a type and its opening bracket; gives the closing one.
    fn open(&mut self, pairs: &[(Token, Token)]) -> Result<Token, ParserError> {
        self.inner.advance_token();
        for (open, close) in pairs {
            if self.inner.consume_token(open) {
                return Ok(close.clone());
            }
        }
        let expected = pairs.iter().map(|(open, _)| open.to_string()).collect::<Vec<_>>().join(" or ");
        self.inner.expected(&expected, self.inner.peek_token())
    }
}

fn refuse<T>(message: impl Into<String>) -> Result<T, ParserError> {
    Err(ParserError::ParserError(message.into()))
}

fn scalar(data_type: &ast::DataType) -> Result<DataType, ParserError> {
    use ast::DataType as Sql;
    use ast::TimezoneInfo;

    Ok(match data_type {
        Sql::TinyInt(None) => DataType::Int8,
        Sql::SmallInt(None) => DataType::Int16,
        Sql::Int(None) | Sql::Integer(None) => DataType::Int32,
        Sql::BigInt(None) => DataType::Int64,
        Sql::TinyIntUnsigned(None) => DataType::UInt8,
        Sql::SmallIntUnsigned(None) => DataType::UInt16,
        Sql::IntUnsigned(None) | Sql::IntegerUnsigned(None) => DataType::UInt32,
        Sql::BigIntUnsigned(None) => DataType::UInt64,
        Sql::Float(ast::ExactNumberInfo::None) | Sql::Real => DataType::Float32,
        Sql::Double(ast::ExactNumberInfo::None) | Sql::DoublePrecision => DataType::Float64,
        Sql::Boolean | Sql::Bool => DataType::Boolean,
        Sql::String(_) | Sql::Varchar(_) | Sql::Char(_) | Sql::Text => DataType::Utf8,
        Sql::Bytes(None) | Sql::Binary(None) | Sql::Varbinary(_) => DataType::Binary,
        Sql::Binary(Some(length)) => match i32::try_from(*length) {
            Ok(length) if length > 0 => DataType::FixedSizeBinary(length),
            _ => return refuse(format!("{data_type}: the length must be 1 to {}", i32::MAX)),
        },
        Sql::Date => DataType::Date32,
        Sql::Time(precision, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            match unit(precision.unwrap_or(TIME_DEFAULT))? {
                unit @ (TimeUnit::Second | TimeUnit::Millisecond) => DataType::Time32(unit),
                unit => DataType::Time64(unit),
            }
        }
        Sql::Timestamp(precision, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => timestamp(*precision, false)?,
        Sql::Timestamp(precision, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => timestamp(*precision, true)?,
        Sql::Decimal(numbers) | Sql::Numeric(numbers) | Sql::Dec(numbers) => decimal(numbers)?,
        Sql::Array(ast::ArrayElemTypeDef::SquareBracket(element, Some(size))) => {
            fixed_size_list(scalar(element)?, *size)?
        }
        Sql::Array(ast::ArrayElemTypeDef::SquareBracket(element, None)) => {
            return refuse(format!("{element}[] has no length; say {element}[N] or ARRAY<{element}>"));
        }
        other => return refuse(format!("type {other} is not known")),
    })
}

fn unit(precision: u64) -> Result<TimeUnit, ParserError> {
    Ok(match precision {
        0 => TimeUnit::Second,
        1..=3 => TimeUnit::Millisecond,
        4..=6 => TimeUnit::Microsecond,
        7..=9 => TimeUnit::Nanosecond,
        _ => return refuse(format!("a time has at most 9 digits behind the second, not {precision}")),
    })
}

fn timestamp(precision: Option<u64>, zoned: bool) -> Result<DataType, ParserError> {
    let unit = unit(precision.unwrap_or(TIMESTAMP_DEFAULT))?;
    Ok(DataType::Timestamp(unit, zoned.then(|| "UTC".into())))
}

fn decimal(numbers: &ast::ExactNumberInfo) -> Result<DataType, ParserError> {
    let (precision, scale) = match numbers {
        ast::ExactNumberInfo::None => (DECIMAL_DEFAULT.0, DECIMAL_DEFAULT.1 as i64),
        ast::ExactNumberInfo::Precision(precision) => (*precision, 0),
        ast::ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    match (u8::try_from(precision), i8::try_from(scale)) {
        (Ok(p @ 1..=38), Ok(s)) if (0..=precision as i64).contains(&scale) => Ok(DataType::Decimal128(p, s)),
        _ => refuse(format!("DECIMAL({precision}, {scale}): 1 to 38 digits, and not more of them behind the point")),
    }
}

fn fixed_size_list(element: DataType, size: u64) -> Result<DataType, ParserError> {
    match i32::try_from(size) {
        Ok(size) if size > 0 => Ok(DataType::FixedSizeList(Arc::new(Field::new("item", element, true)), size)),
        _ => refuse(format!("[{size}]: the length must be 1 to {}", i32::MAX)),
    }
}

fn map(key: DataType, value: Arc<Field>) -> DataType {
    let entries = DataType::Struct(Fields::from(vec![Arc::new(Field::new("key", key, false)), value]));
    DataType::Map(Arc::new(Field::new("entries", entries, false)), false)
}

/// The SQL text of a type; Arrow's own for what SQL has no word for.
pub fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Int8 => "TINYINT".to_owned(),
        DataType::Int16 => "SMALLINT".to_owned(),
        DataType::Int32 => "INT".to_owned(),
        DataType::Int64 => "BIGINT".to_owned(),
        DataType::UInt8 => "TINYINT UNSIGNED".to_owned(),
        DataType::UInt16 => "SMALLINT UNSIGNED".to_owned(),
        DataType::UInt32 => "INT UNSIGNED".to_owned(),
        DataType::UInt64 => "BIGINT UNSIGNED".to_owned(),
        DataType::Float32 => "FLOAT".to_owned(),
        DataType::Float64 => "DOUBLE".to_owned(),
        DataType::Boolean => "BOOLEAN".to_owned(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "STRING".to_owned(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "BYTES".to_owned(),
        DataType::FixedSizeBinary(length) => format!("BINARY({length})"),
        DataType::Date32 => "DATE".to_owned(),
        DataType::Time32(unit) | DataType::Time64(unit) => format!("TIME({})", precision(unit)),
        DataType::Timestamp(unit, None) => format!("TIMESTAMP({})", precision(unit)),
        DataType::Timestamp(unit, Some(_)) => format!("TIMESTAMP_LTZ({})", precision(unit)),
        DataType::Decimal128(precision, scale) => format!("DECIMAL({precision}, {scale})"),
        DataType::FixedSizeList(element, size) => format!("{}[{size}]", type_name(element.data_type())),
        DataType::List(element) | DataType::LargeList(element) => format!("ARRAY<{}>", field_type(element)),
        DataType::Struct(fields) => {
            let fields: Vec<_> = fields.iter().map(|f| format!("{} {}", name(f.name()), field_type(f))).collect();
            format!("ROW<{}>", fields.join(", "))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) if pair.len() == 2 => {
                format!("MAP<{}, {}>", type_name(pair[0].data_type()), field_type(&pair[1]))
            }
            _ => data_type.to_string(),
        },
        other => other.to_string(),
    }
}

/// The SQL text of a schema, which [`parse_schema`] reads.
#[cfg(test)]
fn schema_text(schema: &Schema) -> String {
    schema.fields().iter().map(|f| format!("{} {}", name(f.name()), field_type(f))).collect::<Vec<_>>().join(", ")
}

fn field_type(field: &Field) -> String {
    let not_null = if field.is_nullable() { "" } else { " NOT NULL" };
    format!("{}{not_null}", type_name(field.data_type()))
}

fn name(name: &str) -> String {
    let plain = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if plain { name.to_owned() } else { format!("`{}`", name.replace('`', "``")) }
}

fn precision(unit: &TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn parsed(data_type: &str) -> DataType {
        parse_schema(&format!("c {data_type}"))
            .unwrap_or_else(|e| panic!("{data_type}: {e}"))
            .field(0)
            .data_type()
            .clone()
    }

    fn list(element: DataType) -> DataType {
        DataType::List(Arc::new(Field::new("item", element, true)))
    }

    #[test]
    fn every_scalar_type_has_its_arrow_type() {
        use DataType::*;
        for (text, expected) in [
            ("BIGINT", Int64),
            ("int", Int32),
            ("INTEGER", Int32),
            ("SMALLINT", Int16),
            ("TINYINT", Int8),
            ("BIGINT UNSIGNED", UInt64),
            ("FLOAT", Float32),
            ("DOUBLE", Float64),
            ("DOUBLE PRECISION", Float64),
            ("STRING", Utf8),
            ("VARCHAR(20)", Utf8),
            ("BOOLEAN", Boolean),
            ("BYTES", Binary),
            ("BINARY", Binary),
            ("VARBINARY", Binary),
            ("BINARY(16)", FixedSizeBinary(16)),
            ("DATE", Date32),
            ("TIME", Time32(TimeUnit::Second)),
            ("TIME(3)", Time32(TimeUnit::Millisecond)),
            ("TIME(9)", Time64(TimeUnit::Nanosecond)),
            ("TIMESTAMP", Timestamp(TimeUnit::Microsecond, None)),
            ("TIMESTAMP(3)", Timestamp(TimeUnit::Millisecond, None)),
            ("TIMESTAMP(9) WITHOUT TIME ZONE", Timestamp(TimeUnit::Nanosecond, None)),
            ("TIMESTAMP_LTZ(3)", Timestamp(TimeUnit::Millisecond, Some("UTC".into()))),
            ("TIMESTAMP_LTZ", Timestamp(TimeUnit::Microsecond, Some("UTC".into()))),
            ("TIMESTAMP(0) WITH TIME ZONE", Timestamp(TimeUnit::Second, Some("UTC".into()))),
            ("DECIMAL", Decimal128(10, 0)),
            ("DECIMAL(5)", Decimal128(5, 0)),
            ("DECIMAL(38, 18)", Decimal128(38, 18)),
        ] {
            assert_eq!(parsed(text), expected, "{text}");
        }
    }

    #[test]
    fn vectors_lists_rows_and_maps_nest() {
        let vector = DataType::FixedSizeList(Arc::new(Field::new("item", DataType::Float32, true)), 50);
        assert_eq!(parsed("FLOAT[50]"), vector);
        assert_eq!(parsed("ARRAY<FLOAT[50]>"), list(vector));
        assert_eq!(parsed("ARRAY<ARRAY<INT>>"), list(list(DataType::Int32)));
        let row = DataType::Struct(Fields::from(vec![
            Field::new("a", DataType::Int32, false),
            Field::new("b c", list(DataType::Utf8), true),
        ]));
        assert_eq!(parsed("ROW<a INT NOT NULL, `b c` ARRAY<STRING>>"), row);
        assert_eq!(parsed("STRUCT(a INT NOT NULL, `b c` ARRAY<STRING>)"), row);
        let DataType::Map(entries, false) = parsed("MAP<STRING, ARRAY<INT> NOT NULL>") else { panic!("no map") };
        let DataType::Struct(pair) = entries.data_type() else { panic!("no pair") };
        assert_eq!((pair[0].data_type(), pair[0].is_nullable()), (&DataType::Utf8, false));
        assert_eq!((pair[1].data_type(), pair[1].is_nullable()), (&list(DataType::Int32), false));
    }

    #[test]
    fn names_are_exact_and_not_null_is_kept() {
        let schema =
            parse_schema(r#"id BIGINT NOT NULL, PartyAbbrev STRING, `user-id` INT, "a.b" INT, `select` INT NULL"#);
        let schema = schema.unwrap();
        let names: Vec<_> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        assert_eq!(names, ["id", "PartyAbbrev", "user-id", "a.b", "select"]);
        assert_eq!(schema.fields().iter().filter(|f| !f.is_nullable()).count(), 1);
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (text, part) in [
            ("", "identifier"),
            ("id", "type"),
            ("id BIGINT,", "identifier"),
            ("id NOSUCHTYPE", "NOSUCHTYPE"),
            ("id INT, id INT", "\"id\" is there twice"),
            ("v FLOAT[]", "ARRAY<FLOAT>"),
            ("v FLOAT[0]", "length"),
            ("d DECIMAL(39)", "38"),
            ("d DECIMAL(5, 6)", "point"),
            ("t TIMESTAMP(10)", "9 digits"),
            ("a ARRAY<INT", ">"),
            ("a INT b INT", "EOF"),
            ("a BLOB", "BLOB"),
        ] {
            let error = parse_schema(text).unwrap_err();
            assert!(error.contains(part), "{text:?}: {error}");
        }
        let deep = format!("a {}INT{}", "ARRAY<".repeat(10_000), ">".repeat(10_000));
        assert!(parse_schema(&deep).unwrap_err().contains("deep"));
    }

    #[test]
    fn the_text_of_a_schema_is_read_back() {
        let text = "id BIGINT NOT NULL, `user-id` ROW<a TIMESTAMP_LTZ(3), m MAP<STRING, DECIMAL(5, 2)>> NOT NULL, \
                    v FLOAT[4], t TIME(6), l ARRAY<BYTES NOT NULL>, u INT UNSIGNED";
        let schema = parse_schema(text).unwrap();
        assert_eq!(schema_text(&schema), text);
    }
}
