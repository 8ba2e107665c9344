//! Rows for people.

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, SchemaRef};
use comfy_table::{Attribute, Cell, CellAlignment, ColumnConstraint, Table, Width};

use super::Rows;
use crate::console::{Results, new_table};
use crate::failure::Result;

/// Rows that are laid out together; more would be held in memory, and seen late.
const PAGE_ROWS: usize = 1000;
/// Characters of a cell. Who wants all of a vector asks for json.
const CELL_CHARS: usize = 60;

pub struct TableRows {
    out: Results,
    schema: SchemaRef,
    page: Table,
    page_rows: usize,
    /// Of the pages before, so that columns stay where they are.
    widths: Option<Vec<u16>>,
}

impl TableRows {
    pub fn new(out: Results, schema: &SchemaRef) -> Self {
        let mut page = new_table();
        page.set_header(schema.fields().iter().map(|f| Cell::new(f.name()).add_attribute(Attribute::Bold)));
        Self { out, schema: schema.clone(), page, page_rows: 0, widths: None }
    }

    fn print_page(&mut self) -> Result<()> {
        for (column, field) in self.page.column_iter_mut().zip(self.schema.fields()) {
            if field.data_type().is_numeric() {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        for (column, width) in self.page.column_iter_mut().zip(self.widths.iter().flatten()) {
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(*width)));
        }
        self.widths
            .get_or_insert_with(|| self.page.column_max_content_widths().iter().map(|width| width + 2).collect());
        for line in self.page.lines() {
            writeln!(self.out, "{}", line.trim_end())?;
        }
        self.out.flush()?;
        self.page = new_table();
        self.page_rows = 0;
        Ok(())
    }
}

impl Rows for TableRows {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let options = FormatOptions::default().with_null("NULL").with_display_error(true);
        let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column.as_ref(), &options));
        let columns = columns.collect::<Result<Vec<_>, ArrowError>>()?;
        for row in 0..batch.num_rows() {
            self.page.add_row(columns.iter().map(|column| cut(&column.value(row).to_string())));
            self.page_rows += 1;
            if self.page_rows == PAGE_ROWS {
                self.print_page()?;
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        if self.page_rows > 0 || self.widths.is_none() {
            self.print_page()?;
        }
        Ok(())
    }
}

/// One line of bounded length, with nothing in it that moves the cursor of a terminal.
fn cut(text: &str) -> String {
    let shown = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut cell: String = text.chars().take(CELL_CHARS).map(shown).collect();
    if text.chars().nth(CELL_CHARS).is_some() {
        cell.pop();
        cell.push('…');
    }
    cell
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_one_line_of_bounded_length() {
        assert_eq!(cut("short"), "short");
        assert_eq!(cut("a\nb\u{1b}[31m"), "a\u{fffd}b\u{fffd}[31m");
        assert_eq!(cut(&"x".repeat(60)), "x".repeat(60));
        let long = cut(&"é".repeat(61));
        assert_eq!(long.chars().count(), 60);
        assert!(long.ends_with("é…"));
    }
}
