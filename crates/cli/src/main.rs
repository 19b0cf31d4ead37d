//! The command `weft`: one module a subcommand, nothing else here.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the command line: this is where files, processes and the terminal live"
)]
// They panic when the stream is closed or full: `console::say!` and `console::tell!` do not.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod arguments;
mod commands;
mod console;
mod diagnostics;
mod ending;
mod folder;
mod load;
mod memory;
mod network;
mod output;
mod outputs;
mod progress;
mod recording;
mod reload;
mod states;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Network functions written once: one image, run on captures and on Linux.
#[derive(Parser)]
#[command(name = "weft", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure this machine.
    Bench(commands::bench::Arguments),
    /// Open one connection by a machine, as nc does: standard input goes out, what comes goes to standard output.
    ///
    /// At the end of standard input the connection is closed for sending; the command ends when both directions have. Ctrl-C breaks the
    /// connection off.
    ///
    /// Exit codes: 0 both directions have ended, 3 refused, 4 reset, 5 timed out, 6 no route, 7 lost, 130 interrupted, 1 any other error.
    Cat(Box<commands::cat::Arguments>),
    /// Steer TCP sessions through middleboxes.
    Chain(Box<commands::chain::Arguments>),
    /// Check programs and images.
    Check(commands::check::Arguments),
    /// Compile a program to a machine image.
    Compile(commands::compile::Arguments),
    /// Show what a machine does, in words.
    Explain(commands::explain::Arguments),
    /// Draw a machine's state diagram.
    Graph(commands::graph::Arguments),
    /// Take one connection by a machine: standard input goes out, what comes goes to standard output.
    ///
    /// It is the first one that another end opens. At the end of standard input it is closed for sending; the command ends when both
    /// directions have. Ctrl-C breaks the connection off.
    ///
    /// Exit codes: 0 both directions have ended, 4 reset, 5 timed out, 7 lost, 130 interrupted, 1 any other error.
    Listen(Box<commands::listen::Arguments>),
    /// Pace packets from a rate envelope.
    Pace(commands::pace::Arguments),
    /// Join connections of the kernel's TCP with connections of a machine.
    ///
    /// One with one, until Ctrl-C. Either the kernel listens and the machine connects (--kernel-listen with --connect), or the machine
    /// listens and the kernel connects (--listen with --kernel-connect). The end of a direction is passed on, and so is a reset.
    Proxy(Box<commands::proxy::Arguments>),
    /// Run a function in virtual time from captures.
    Replay(commands::replay::Arguments),
    /// Make one HTML page of a capture.
    Report(commands::report::Arguments),
    /// Run a function on network interfaces, TUN and TAP devices.
    Run(Box<commands::run::Arguments>),
    /// Simulate a network.
    Sim(commands::sim::Arguments),
    /// Measure designs of hardware as models.
    Study(commands::study::Arguments),
    /// Compile packet subscriptions: filters that forward messages.
    Subs(commands::subs::Arguments),
    /// Make a network from network namespaces.
    Up(commands::up::Arguments),
    /// Remove networks made by `up`.
    Down(commands::down::Arguments),
    /// Run a command in a node of a network that is up.
    Exec(commands::exec::Arguments),
    /// Show the networks that are up.
    Status(commands::status::Arguments),
    /// Hold a network; started by `up`.
    #[command(hide = true)]
    Hold(commands::up::HoldArguments),
    /// Connect for a switch that has given up its privileges; started by `subs run`.
    #[command(hide = true)]
    Reach(commands::reach::Arguments),
    /// Compare two runs of a network.
    Compare(commands::compare::Arguments),
    /// Show and change the flows of a running function.
    Flows(commands::flows::Arguments),
    /// Follow the debug records of a running function.
    Debug(commands::debug::Arguments),
}

fn main() -> ExitCode {
    match Arguments::try_parse() {
        Ok(arguments) => console::end(execute(arguments.command)),
        Err(found) => console::end_of_arguments(&found),
    }
}

fn execute(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Bench(arguments) => commands::bench::execute(&arguments),
        Command::Cat(arguments) => commands::cat::execute(&arguments),
        Command::Chain(arguments) => commands::chain::execute(&arguments),
        Command::Check(arguments) => commands::check::execute(arguments),
        Command::Compile(arguments) => commands::compile::execute(arguments),
        Command::Explain(arguments) => commands::explain::execute(arguments),
        Command::Graph(arguments) => commands::graph::execute(arguments),
        Command::Listen(arguments) => commands::listen::execute(&arguments),
        Command::Pace(arguments) => commands::pace::execute(&arguments),
        Command::Proxy(arguments) => commands::proxy::execute(&arguments),
        Command::Replay(arguments) => commands::replay::execute(arguments),
        Command::Report(arguments) => commands::report::execute(arguments),
        Command::Run(arguments) => commands::run::execute(&arguments),
        Command::Sim(arguments) => commands::sim::execute(&arguments),
        Command::Study(arguments) => commands::study::execute(&arguments),
        Command::Subs(arguments) => commands::subs::execute(arguments),
        Command::Up(arguments) => commands::up::execute(&arguments),
        Command::Down(arguments) => commands::down::execute(&arguments),
        Command::Exec(arguments) => commands::exec::execute(&arguments),
        Command::Status(arguments) => commands::status::execute(&arguments),
        Command::Hold(arguments) => commands::up::hold(&arguments),
        Command::Reach(arguments) => commands::reach::execute(&arguments),
        Command::Compare(arguments) => commands::compare::execute(&arguments),
        Command::Flows(arguments) => commands::flows::execute(arguments),
        Command::Debug(arguments) => commands::debug::execute(arguments),
    }
}
