//! Files of flows: from a running function, into one, and into a replay. And files of whole switches.

use crate::console::{say, tell};
use crate::output::PendingFile;
use anyhow::{Context, Result, bail, ensure};
use std::io::{IsTerminal, Write, stdout};
use std::path::{Path, PathBuf};
use weftwire_catalog::file::{self, Kind};
use weftwire_core::control::change;
use weftwire_core::{Change, ControlError, FlowId, Function, Outbox, Time};
use weftwire_engine::state::{StateHead, StatesHeader, states};
use weftwire_linux::LinuxError;
use weftwire_linux::control_client::ControlClient;
use weftwire_switch::state::SwitchState;

/// Writes a flow of a run, or all, to the file or to standard output. With `take` the run has them no more.
pub fn write(client: &mut ControlClient, flow: Option<FlowId>, take: bool, out: Option<PathBuf>) -> Result<()> {
    let mut file = create(out)?;
    let mut writer = file.take_writer();
    writer.write_all(&StatesHeader { taken: take }.to_bytes())?;
    let mut taken = Vec::new();
    let count = match (flow, take) {
        (Some(flow), _) => {
            let state = client.state(flow, take)?;
            let written = writer.write_all(&state.bytes);
            taken.extend(take.then_some(state.bytes));
            written.map(|()| 1)
        }
        (None, true) => {
            for flow in client.flows()? {
                match client.state(flow.flow, true) {
                    Ok(state) => taken.push(state.bytes),
                    Err(error) if has_ended(&error, flow.flow) => {}
                    Err(error) => return Err(put_back(client, &taken, error.into())),
                }
            }
            taken.iter().try_for_each(|state| writer.write_all(state)).map(|()| taken.len())
        }
        (None, false) => {
            let mut count = 0;
            client.states(|state| {
                count += 1;
                writer.write_all(&state.bytes).map_err(anyhow::Error::from)
            })?;
            Ok(count)
        }
    };
    match count.map_err(anyhow::Error::from).and_then(|count| file.finish(writer).map(|()| count)) {
        Ok(count) => tell!("{}", flows(count)),
        Err(error) => return Err(put_back(client, &taken, error)),
    }
    Ok(())
}

/// Writes the state of a run's function as a whole to the file or to standard output.
pub fn write_whole(client: &mut ControlClient, out: Option<PathBuf>) -> Result<()> {
    let mut file = create(out)?;
    let mut writer = file.take_writer();
    writer.write_all(&client.whole()?)?;
    file.finish(writer)
}

/// The state of a switch that [`write_whole`] has written.
pub fn read_switch(path: &Path) -> Result<SwitchState> {
    SwitchState::from_bytes(&file::bytes(path, Kind::Data)?).with_context(|| wrong(path))
}

/// A file that only its owner may read; none: standard output.
fn create(out: Option<PathBuf>) -> Result<PendingFile> {
    let path = out.unwrap_or_else(|| "-".into());
    if path == Path::new("-") && stdout().is_terminal() {
        bail!("these bytes are not for terminals, and hold payload and keys: name a file with --out");
    }
    PendingFile::create_private(&path)
}

/// Whether a flow that was there a moment ago is there no more.
fn has_ended(error: &LinuxError, flow: FlowId) -> bool {
    matches!(error, LinuxError::Control(reason) if *reason == ControlError::NoFlow(flow).to_string())
}

/// Flows that were taken and could not be written go back to where they were.
fn put_back(client: &mut ControlClient, taken: &[Vec<u8>], error: anyhow::Error) -> anyhow::Error {
    let lost = taken.iter().filter(|state| client.adopt(state).is_err()).count();
    match (taken.len(), lost) {
        (0, _) => error,
        (_, 0) => error.context("the flows are in the run again"),
        (count, lost) => error.context(format!("of {count} flows that were taken {lost} could not be put back")),
    }
}

/// Puts the flows of a file into a run.
pub fn adopt(client: &mut ControlClient, path: &Path, copy: bool) -> Result<()> {
    let all = flows_to_adopt(path, copy)?;
    let mut refused = 0;
    for (number, state) in all.iter().enumerate() {
        match client.adopt(state) {
            Ok(flow) => say!("flow {flow}"),
            Err(error) => {
                refused += 1;
                tell!("error: flow {} of the file: {error}", number + 1);
            }
        }
    }
    ensure!(refused == 0, "{refused} of {} flows were not adopted", all.len());
    Ok(())
}

/// The flows of a file, for a function on ports; of copies only if somebody says that they may be there.
pub fn flows_to_adopt(path: &Path, copy: bool) -> Result<Vec<Vec<u8>>> {
    let bytes = file::bytes(path, Kind::Data)?;
    let (header, all) = read(path, &bytes)?;
    ensure!(
        header.taken || copy,
        "{} holds copies: where they come from the flows may still be alive, and both would answer the other end. \
         Take flows out with `weft flows snapshot --take`, or say --copy if only one of both will be on the ports",
        path.display()
    );
    Ok(all.into_iter().map(<[u8]>::to_vec).collect())
}

/// Puts the flows of a file into a function in virtual time. Its time is 0 at the boundary of the latest of them. Returns how many there are, in words.
pub fn begin(function: &mut dyn Function, path: &Path) -> Result<String> {
    let bytes = file::bytes(path, Kind::Data)?;
    let (_, all) = read(path, &bytes)?;
    let heads = all.iter().map(|state| StateHead::read(state)).collect::<Result<Vec<_>, _>>();
    let heads = heads.with_context(|| wrong(path))?;
    let instants = heads.iter().filter_map(|head| Some((head.time, head.clocks?)));
    let latest = instants.max_by_key(|(time, clocks)| time.nanoseconds().saturating_add(clocks.monotonic));
    let clocks = latest.map(|(time, clocks)| clocks.of_time_ahead(time.nanoseconds().saturating_neg()));
    for (number, state) in all.iter().enumerate() {
        let adopted = change(function, Time::ZERO, Change::Adopt { state: state.to_vec(), clocks }, &mut Outbox::new());
        adopted.with_context(|| format!("{}: flow {} of the file", wrong(path), number + 1))?;
    }
    Ok(flows(all.len()))
}

fn flows(count: usize) -> String {
    if count == 1 { "1 flow".into() } else { format!("{count} flows") }
}

fn read<'a>(path: &Path, bytes: &'a [u8]) -> Result<(StatesHeader, Vec<&'a [u8]>)> {
    let (header, all) = states(bytes).with_context(|| wrong(path))?;
    Ok((header, all.collect::<Result<_, _>>().with_context(|| wrong(path))?))
}

fn wrong(path: &Path) -> String {
    format!("cannot read {}", path.display())
}
