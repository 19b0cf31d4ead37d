//! The commands by which `weft up` runs the functions of nodes: `weft run` and `weft subs run`.

use super::BEGINS;
use std::path::PathBuf;
use std::process::Command;
use weftwire_lab::functions::{FunctionProgram, FunctionSettings, RunCommand};
use weftwire_sim::spec::Connect;

/// This program.
#[derive(Debug)]
pub struct Weft {
    /// Its own file.
    pub program: PathBuf,
    /// Further folders that programs may include files of.
    pub includes: Vec<PathBuf>,
}

impl RunCommand for Weft {
    fn command(&self, settings: &FunctionSettings) -> Command {
        let mut command = Command::new(&self.program);
        match &settings.program {
            FunctionProgram::Machine { file, engine, parameters } => {
                command.arg("run").arg(file).args(["--engine", engine]);
                for folder in &self.includes {
                    command.arg("--allow-includes").arg(folder);
                }
                for (name, value) in parameters {
                    command.arg("--parameter").arg(format!("{name}={value}"));
                }
            }
            FunctionProgram::Rules { file, format } => {
                command.args(["subs", "run", "--rules"]).arg(file).arg("--format").arg(format);
            }
        }
        for (port, interface) in &settings.ports {
            command.arg("--port").arg(format!("{port}={interface}"));
        }
        command.args(["--name", &settings.name, "--seed", &settings.seed.to_string()]);
        command.arg("--control").arg(&settings.control);
        if let Some(trace) = &settings.trace {
            command.arg("--trace").arg(trace);
        }
        if let Some(ends) = settings.opens {
            command
                .arg("--connect")
                .arg(Connect { endpoints: ends, at: weftwire_core::Time::ZERO }.to_string())
                .args(["--send", "-"]);
            command.args(["--local-mac", &ends.local_mac.to_string()]);
            command.args(["--gateway-mac", &ends.remote_mac.to_string()]);
        }
        if settings.delivers {
            command.args(["--receive", "-"]);
        }
        command
    }

    fn begins(&self, line: &str) -> bool {
        line.contains(BEGINS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::run;
    use clap::{ArgMatches, CommandFactory, FromArgMatches};
    use std::collections::BTreeMap;
    use std::path::Path;
    use weftwire_core::{Endpoints, MacAddress, Port};
    use weftwire_linux::device::{Device, PortSpec};

    fn weft() -> Weft {
        Weft { program: "/opt/weft".into(), includes: vec!["/a/common".into(), "/b with space".into()] }
    }

    fn settings(program: FunctionProgram) -> FunctionSettings {
        FunctionSettings {
            program,
            ports: vec![(Port(1), "port1".into()), (Port(2), "port2".into())],
            name: "net.node".into(),
            control: "/run/net/node.sock".into(),
            seed: u64::MAX,
            trace: None,
            opens: None,
            delivers: false,
        }
    }

    /// What the command line's own parser makes of the command.
    fn matches(settings: &FunctionSettings) -> ArgMatches {
        let command = weft().command(settings);
        assert_eq!(command.get_program(), "/opt/weft");
        let words = [command.get_program()].into_iter().chain(command.get_args());
        crate::Arguments::command().try_get_matches_from(words).unwrap_or_else(|error| panic!("{command:?}: {error}"))
    }

    fn machine(settings: &FunctionSettings) -> run::Arguments {
        let found = matches(settings);
        let Some(("run", found)) = found.subcommand() else { panic!("another subcommand") };
        run::Arguments::from_arg_matches(found).unwrap()
    }

    fn check_platform(platform: &run::Platform, settings: &FunctionSettings) {
        let port = |(port, name): &(Port, String)| PortSpec { port: *port, device: Device::Socket(name.clone()) };
        assert_eq!(platform.ports, settings.ports.iter().map(port).collect::<Vec<_>>());
        assert_eq!(platform.name.as_ref(), Some(&settings.name));
        assert_eq!(platform.control.as_ref(), Some(&settings.control));
        assert_eq!(platform.seed, Some(settings.seed));
        assert_eq!(platform.trace, settings.trace);
    }

    #[test]
    fn a_machine_runs_as_it_is_described() {
        let parameters = BTreeMap::from([("peer".into(), "10.0.0.1".into()), ("timeout".into(), "a=b".into())]);
        let (file, engine) = (PathBuf::from("/f/arq.xl"), "reference".to_owned());
        let plain = settings(FunctionProgram::Machine { file, engine, parameters: parameters.clone() });
        let arguments = machine(&plain);
        assert_eq!(
            (arguments.machine.image.as_path(), &*arguments.machine.engine),
            (Path::new("/f/arq.xl"), "reference")
        );
        assert_eq!(arguments.machine.parameters, parameters.into_iter().collect::<Vec<_>>());
        assert_eq!(arguments.machine.includes.folders, weft().includes);
        assert!(arguments.connects.is_empty() && arguments.send.is_none() && arguments.receive.is_none());
        check_platform(&arguments.platform, &plain);
    }

    #[test]
    fn its_connection_and_what_is_delivered_come_back() {
        let machine_program =
            FunctionProgram::Machine { file: "a.json".into(), engine: "reference".into(), parameters: BTreeMap::new() };
        let ends = |protocol, local: &str, remote: &str| Endpoints {
            protocol,
            local_address: local.parse().unwrap(),
            local_port: 40_000,
            remote_address: remote.parse().unwrap(),
            remote_port: 80,
            local_mac: MacAddress([2, 0, 0, 1, 0, 1]),
            remote_mac: MacAddress([2, 0, 0, 2, 0, 0xff]),
            vlan: None,
        };
        for ends in [ends(6, "10.0.0.1", "10.0.0.2"), ends(17, "10.0.0.1", "10.0.0.2"), ends(6, "fd00::1", "fd00::2")] {
            let settings = FunctionSettings {
                opens: Some(ends),
                delivers: true,
                trace: Some("/out/node.trace.jsonl".into()),
                ..settings(machine_program.clone())
            };
            let arguments = machine(&settings);
            let [local_mac, remote_mac] = [arguments.link.local_mac, arguments.link.gateway_mac].map(Option::unwrap);
            let opened = arguments.connects.iter().map(|connect| Endpoints { local_mac, remote_mac, ..*connect });
            assert_eq!(opened.collect::<Vec<_>>(), [ends]);
            let stream = Some(PathBuf::from("-"));
            assert_eq!((&arguments.send, &arguments.receive), (&stream, &stream));
            check_platform(&arguments.platform, &settings);
        }
    }

    #[test]
    fn a_switch_runs_by_its_rules() {
        let settings = settings(FunctionProgram::Rules { file: "/f/a.rules".into(), format: "/f/itch.p4".into() });
        let found = matches(&settings);
        let Some(("subs", found)) = found.subcommand() else { panic!("another subcommand") };
        let Some(("run", found)) = found.subcommand() else { panic!("another subcommand") };
        let files = |name| found.get_many::<PathBuf>(name).unwrap_or_default().collect::<Vec<_>>();
        assert_eq!([files("rules"), files("formats")], [[Path::new("/f/a.rules")], [Path::new("/f/itch.p4")]]);
        check_platform(&run::Platform::from_arg_matches(found).unwrap(), &settings);
    }

    #[test]
    fn a_run_begins_with_its_seed() {
        assert!(weft().begins("proxy runs with seed 7; control socket /run/a; Ctrl-C ends it"));
        assert!(!weft().begins("warning: timers may be late"));
    }
}
