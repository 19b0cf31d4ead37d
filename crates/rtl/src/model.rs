//! The simulated hardware: built once, run as a process.

use crate::encode::{EncodeError, encode};
use sha2::{Digest, Sha256};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::{env, fs, process};
use weftwire_image::VerifiedImage;

/// The sources, which the program carries.
const SOURCES: [(&str, &str); 6] = [
    ("weft_pkg.sv", include_str!("../../../rtl/weft_pkg.sv")),
    ("packet_parser.sv", include_str!("../../../rtl/packet_parser.sv")),
    ("packet_sender.sv", include_str!("../../../rtl/packet_sender.sv")),
    ("rule_engine.sv", include_str!("../../../rtl/rule_engine.sv")),
    ("weft_core.sv", include_str!("../../../rtl/weft_core.sv")),
    ("weft_core.cpp", include_str!("../model/weft_core.cpp")),
];
const OPTIONS: [&str; 14] = [
    "--cc",
    "--exe",
    "--build",
    "-Wall",
    "-O3",
    "--x-assign",
    "unique",
    "--x-initial",
    "unique",
    "--top-module",
    "weft_core",
    "-o",
    "weft_core",
    "-MAKEFLAGS",
];
const MAKE_FLAGS: &str = "OPT_FAST=-O1 OPT_SLOW=-O0 OPT_GLOBAL=-O0";

/// Why the hardware could not be built or did not answer.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The image asks for more than the hardware has.
    #[error(transparent)]
    Image(#[from] EncodeError),
    /// Verilator is not there.
    #[error(
        "Verilator is needed to simulate the RTL and can't be started ({0}): install the package `verilator` (5.006 or later) and a C++ compiler"
    )]
    NoVerilator(io::Error),
    /// Building failed.
    #[error("Verilator could not build the model:\n{0}")]
    Build(String),
    /// A file or pipe.
    #[error("the model of the RTL, {what}: {error}")]
    Io {
        /// What was being done.
        what: &'static str,
        /// What happened.
        error: io::Error,
    },
    /// A frame was not done after a million clocks.
    #[error("the model of the RTL is not done with a frame after 1,000,000 clocks: this is a fault of the RTL")]
    Hangs,
    /// It said what it should not.
    #[error("the model of the RTL answered `{0}`, which is none of its lines")]
    Answer(String),
}

fn at(what: &'static str) -> impl Fn(io::Error) -> ModelError {
    move |error| ModelError::Io { what, error }
}

/// Something that the hardware put out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// A frame on port 1.
    Sent(Vec<u8>),
    /// Bytes for the application.
    Delivered(Vec<u8>),
    /// A notice: its number and value.
    Notice(u16, i64),
}

/// When things happened, in clocks from reset on; 0: not at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Clocks {
    /// The frame was done with.
    pub done: u64,
    /// Its last beat came in.
    pub last_in: u64,
    /// A lane began its event.
    pub dispatch: u64,
    /// The first frame of the event went to the sender.
    pub send: u64,
    /// That frame's first beat went out.
    pub first_out: u64,
}

/// What became of a frame.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Response {
    /// Frames, in order.
    pub sent: Vec<Vec<u8>>,
    /// Bytes for the application and notices, in order.
    pub told: Vec<Message>,
    /// It made no event.
    pub dropped: bool,
    /// When.
    pub clocks: Clocks,
}

/// Simulated hardware with an image loaded. Its process ends with it.
#[derive(Debug)]
pub struct Model {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Model {
    /// Builds the model in `cache` unless it is there, starts it and loads an image. `pauses`: the streams pause at random, by this seed.
    ///
    /// # Errors
    /// See [`ModelError`].
    pub fn start(image: &VerifiedImage, cache: &Path, pauses: Option<u32>) -> Result<Model, ModelError> {
        let words = encode(image)?;
        let program = build(cache)?;
        let mut command = Command::new(program);
        command.args(pauses.map(|seed| seed.to_string())).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(at("starting it"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            unreachable!("both are piped")
        };
        let mut model = Model { child, input, output: BufReader::new(output) };
        let lines: String = words.iter().map(|word| format!("w {:x} {:x}\n", word.address, word.data)).collect();
        model.input.write_all(lines.as_bytes()).map_err(at("loading the image"))?;
        Ok(model)
    }

    /// Hands in a frame whose last byte arrives at `time` nanoseconds, which must not be less than before.
    ///
    /// # Errors
    /// See [`ModelError`].
    pub fn frame(&mut self, time: u64, bytes: &[u8]) -> Result<Response, ModelError> {
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(self.input, "f {time:x} {digits}").map_err(at("handing in a frame"))?;
        self.input.flush().map_err(at("handing in a frame"))?;
        let mut response = Response::default();
        loop {
            let mut line = String::new();
            self.output.read_line(&mut line).map_err(at("reading its answer"))?;
            let wrong = || ModelError::Answer(line.trim_end().into());
            let words: Vec<&str> = line.split_whitespace().collect();
            let number = |word: &str| u64::from_str_radix(word, 16).map_err(|_| wrong());
            match words.as_slice() {
                ["s", digits] => response.sent.push(hexadecimal(digits).ok_or_else(wrong)?),
                ["d", digits] => response.told.push(Message::Delivered(hexadecimal(digits).ok_or_else(wrong)?)),
                ["n", notice, value] => {
                    response.told.push(Message::Notice(number(notice)? as u16, number(value)? as i64));
                }
                ["e", dropped, done, last_in, dispatch, send, first_out] => {
                    response.dropped = *dropped == "1";
                    response.clocks = Clocks {
                        done: number(done)?,
                        last_in: number(last_in)?,
                        dispatch: number(dispatch)?,
                        send: number(send)?,
                        first_out: number(first_out)?,
                    };
                    return Ok(response);
                }
                ["hangs"] => return Err(ModelError::Hangs),
                _ => return Err(wrong()),
            }
        }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // A process that has ended already can't be killed; it is waited for either way.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn hexadecimal(digits: &str) -> Option<Vec<u8>> {
    let byte = |place: usize| u8::from_str_radix(digits.get(place..place + 2)?, 16).ok();
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// The model's program: of these sources, from the cache if it is there.
fn build(cache: &Path) -> Result<PathBuf, ModelError> {
    let mut hash = Sha256::new();
    for (name, text) in SOURCES {
        hash.update(name);
        hash.update(text);
    }
    hash.update(OPTIONS.concat());
    hash.update(MAKE_FLAGS);
    let digest: String = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let program = cache.join(format!("weft_core-{digest}"));
    // Threads of this process build one after the other; other processes have folders of their own.
    static BUILDING: Mutex<()> = Mutex::new(());
    let _building = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
    if program.exists() {
        return Ok(program);
    }
    let cache = std::path::absolute(cache).map_err(at("finding its folder"))?;
    let folder = cache.join(format!("build-{digest}-{}", process::id()));
    fs::create_dir_all(&folder).map_err(at("making its folder"))?;
    for (name, text) in SOURCES {
        fs::write(folder.join(name), text).map_err(at("writing its sources"))?;
    }
    let verilator = env::var_os("WEFT_VERILATOR").unwrap_or_else(|| "verilator".into());
    let mut command = Command::new(verilator);
    command.args(OPTIONS).args([MAKE_FLAGS, "--Mdir"]).arg(folder.join("model"));
    command.args(SOURCES.map(|(name, _)| folder.join(name))).current_dir(&folder).stdin(Stdio::null());
    let output = command.output().map_err(ModelError::NoVerilator);
    let built = output.and_then(|output| {
        if output.status.success() {
            // In one step, as others may be building the same.
            fs::rename(folder.join("model/weft_core"), &program).map_err(at("keeping it"))
        } else {
            Err(ModelError::Build(String::from_utf8_lossy(&output.stderr).into_owned()))
        }
    });
    fs::remove_dir_all(&folder).map_err(at("removing its folder"))?;
    built.map(|()| program)
}
