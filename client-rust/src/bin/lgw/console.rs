//! Where results, notes and progress go.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use comfy_table::{Attribute, Cell, ContentArrangement, Table, presets};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::args::Output;
use crate::failure::{Failure, Result};

/// The streams of the process, and how the user wants results.
pub struct Console {
    output: Output,
    quiet: bool,
    reader_is_gone: Arc<AtomicBool>,
    stdout: Arc<Mutex<BufWriter<Stdout>>>,
}

/// A handle that writers of other crates can own.
#[derive(Clone)]
pub struct Results(Arc<Mutex<BufWriter<Stdout>>>);

struct Stdout {
    inner: io::Stdout,
    reader_is_gone: Arc<AtomicBool>,
}

impl Console {
    pub fn new(output: Output, quiet: bool) -> Self {
        let reader_is_gone = Arc::new(AtomicBool::new(false));
        let stdout = Stdout { inner: io::stdout(), reader_is_gone: reader_is_gone.clone() };
        let stdout = Arc::new(Mutex::new(BufWriter::with_capacity(64 << 10, stdout)));
        Self { output, quiet, reader_is_gone, stdout }
    }

    pub fn output(&self) -> Output {
        self.output
    }

    /// Whether stdout was closed by whoever read it.
    pub fn reader_is_gone(&self) -> bool {
        self.reader_is_gone.load(Ordering::Relaxed)
    }

    pub fn results(&self) -> Results {
        Results(self.stdout.clone())
    }

    pub fn flush(&self) -> io::Result<()> {
        lock(&self.stdout).flush()
    }

    /// A remark beside the result.
    pub fn note(&self, text: impl AsRef<str>) {
        if !self.quiet {
            eprintln!("{}", text.as_ref());
        }
    }

    /// Several things of one kind.
    pub fn list<T: Serialize>(&self, items: &[T], headers: &[&str], cells: impl Fn(&T) -> Vec<String>) -> Result<()> {
        match self.output {
            Output::Json => self.json(&items),
            Output::Csv => self.csv(headers, items.iter().map(cells)),
            Output::Table => {
                let mut table = new_table();
                table.set_header(headers.iter().map(|header| Cell::new(header).add_attribute(Attribute::Bold)));
                for item in items {
                    table.add_row(cells(item));
                }
                self.table(&table)
            }
        }
    }

    /// One thing with its properties.
    pub fn record<T: Serialize>(&self, item: &T, properties: &[(&str, String)]) -> Result<()> {
        match self.output {
            Output::Json => self.json(item),
            Output::Csv => {
                let headers: Vec<&str> = properties.iter().map(|(name, _)| *name).collect();
                self.csv(&headers, std::iter::once(properties.iter().map(|(_, value)| value.clone()).collect()))
            }
            Output::Table => {
                let mut table = new_table();
                for (name, value) in properties {
                    table.add_row([Cell::new(name).add_attribute(Attribute::Bold), Cell::new(value)]);
                }
                self.table(&table)
            }
        }
    }

    pub fn table(&self, table: &Table) -> Result<()> {
        let mut out = self.results();
        for line in table.lines() {
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }

    fn json<T: Serialize + ?Sized>(&self, value: &T) -> Result<()> {
        let mut out = self.results();
        serde_json::to_writer_pretty(&mut out, value).map_err(io::Error::from)?;
        Ok(writeln!(out)?)
    }

    fn csv(&self, headers: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Result<()> {
        let line = |cells: Vec<String>| cells.iter().map(|cell| quote(cell)).collect::<Vec<_>>().join(",");
        let mut out = self.results();
        writeln!(out, "{}", line(headers.iter().map(|&header| header.to_owned()).collect()))?;
        for row in rows {
            writeln!(out, "{}", line(row))?;
        }
        Ok(())
    }

    /// A bar that counts to `total`; hidden unless a person watches.
    pub fn progress(&self, total: u64, template: &str) -> Result<ProgressBar> {
        if self.quiet || !io::stderr().is_terminal() {
            return Ok(ProgressBar::hidden());
        }
        let style = self.progress_style(template)?;
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr()).with_style(style);
        bar.enable_steady_tick(Duration::from_millis(200));
        Ok(bar)
    }

    /// How a bar looks.
    pub fn progress_style(&self, template: &str) -> Result<ProgressStyle> {
        ProgressStyle::with_template(template).map_err(|e| Failure::local(e.to_string()))
    }

    /// Asks a person, who must say yes.
    pub fn confirm(&self, question: &str) -> Result<bool> {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Err(Failure::Usage("there is no terminal to ask at; say --yes".to_owned()));
        }
        eprint!("{question} [y/N] ");
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
    }
}

/// A table without lines but one below its head: easy on the eyes, and on `awk`.
pub fn new_table() -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table
}

fn quote(cell: &str) -> String {
    match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    }
}

/// Bytes as people read them.
pub fn human_bytes(bytes: u64) -> String {
    indicatif::BinaryBytes(bytes).to_string()
}

fn lock(stdout: &Mutex<BufWriter<Stdout>>) -> MutexGuard<'_, BufWriter<Stdout>> {
    // A panic while writing leaves bytes, not a broken invariant.
    stdout.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Write for Results {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        lock(&self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        lock(&self.0).flush()
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner.write(bytes).inspect_err(|e| self.note(e))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush().inspect_err(|e| self.note(e))
    }
}

impl Stdout {
    fn note(&self, error: &io::Error) {
        if error.kind() == io::ErrorKind::BrokenPipe {
            self.reader_is_gone.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_of_csv_is_quoted_only_if_it_must_be() {
        assert_eq!(quote("plain text"), "plain text");
        assert_eq!(quote("a,\"b\"\n"), "\"a,\"\"b\"\"\n\"");
    }
}
