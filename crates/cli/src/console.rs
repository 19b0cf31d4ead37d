//! Standard output and standard error, as all commands write to them. Neither may end a command by a panic: both can be
//! closed, or be a file on a full disk.

use crate::ending;
use crate::output::WriteFailure;
use anyhow::Result;
use serde::Serialize;
use std::fmt;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use weftwire_text::{printable_json, printable_lines};

/// Says a line on standard output, as `println!` does, with control characters escaped: it may tell what a file or another
/// process says. What goes wrong is told at the command's end, by [`finish`].
macro_rules! say {
    ($($words:tt)*) => { $crate::console::say_line(format_args!($($words)*)) };
}

/// Says a line on standard error, as `eprintln!` does, with control characters escaped. If that fails, nobody is left to tell.
macro_rules! tell {
    ($($words:tt)*) => { $crate::console::tell_line(format_args!($($words)*)) };
}

pub(crate) use {say, tell};

/// The first failure of standard output. After it nothing more is written.
static FAILURE: Mutex<Option<io::Error>> = Mutex::new(None);

/// What `say!` does.
pub fn say_line(text: fmt::Arguments<'_>) {
    say_text(format_args!("{}\n", printable_lines(&text.to_string())));
}

/// What `tell!` does.
pub fn tell_line(text: fmt::Arguments<'_>) {
    tell_text(format_args!("{}\n", printable_lines(&text.to_string())));
}

/// Says a text on standard output as it is, without a line's end.
pub fn say_text(text: fmt::Arguments<'_>) {
    let mut failure = FAILURE.lock().unwrap_or_else(PoisonError::into_inner);
    if failure.is_none()
        && let Err(error) = io::stdout().lock().write_fmt(text)
    {
        *failure = Some(error);
    }
}

/// Says a text on standard error as it is, without a line's end.
pub fn tell_text(text: fmt::Arguments<'_>) {
    let _ = io::stderr().lock().write_fmt(text);
}

/// A document as one line of JSON, for standard output.
///
/// # Errors
/// Those of the document.
pub fn json(document: &impl Serialize) -> Result<String> {
    Ok(printable_json(&serde_json::to_string(document)?).into_owned())
}

/// A document as JSON for people, for standard output.
///
/// # Errors
/// Those of the document.
pub fn pretty_json(document: &impl Serialize) -> Result<String> {
    Ok(printable_json(&serde_json::to_string_pretty(document)?).into_owned())
}

/// Writes to standard output what is the command's product.
///
/// # Errors
/// It could not be written. A command that goes on until nobody listens ends by this.
pub fn write(bytes: &[u8]) -> Result<()> {
    finish()?;
    Ok(io::stdout().lock().write_all(bytes).map_err(WriteFailure::output)?)
}

/// Writes what is still held back of standard output.
///
/// # Errors
/// Something could not be written, now or before.
pub fn finish() -> Result<()> {
    let failure = FAILURE.lock().unwrap_or_else(PoisonError::into_inner).take();
    let flushed = failure.map_or_else(|| io::stdout().lock().flush(), Err);
    Ok(flushed.map_err(WriteFailure::output)?)
}

/// How the process ends: errors are told, but a reader like `head` that has seen enough is none.
pub fn end(outcome: Result<()>) -> ExitCode {
    match outcome.and_then(|()| finish()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if WriteFailure::is_closed_output(error.as_ref()) => ExitCode::SUCCESS,
        Err(error) => {
            tell!("error: {error:#}");
            ending::code(&error).into()
        }
    }
}

/// How the process ends when its arguments ask for help, or are wrong.
pub fn end_of_arguments(found: &clap::Error) -> ExitCode {
    match found.print() {
        Err(error) if !found.use_stderr() => end(Err(WriteFailure::output(error).into())),
        _ => ExitCode::from(u8::try_from(found.exit_code()).unwrap_or(1)),
    }
}
