//! Kafka's own client for Java, with the bridge and with Kafka's broker.

use super::{Lab, Load, Outcome, START, System};
use anyhow::{Context as _, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use weftwire_testbed::{Namespace, Running, run, wait_for};

const LIMIT: Duration = Duration::from_secs(180);
const BRIDGE: &str = "127.0.0.1:9092";
const BROKER: &str = "10.0.1.254:9092";

/// Kafka's jars and the load generator.
pub struct Java {
    /// Where they are, as `java -cp` takes it.
    class_path: String,
    folder: PathBuf,
}

impl Java {
    /// Brings the jars, with Maven if they are not there, and compiles the load generator.
    pub fn prepare(folder: &Path) -> Result<Java> {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/kafka");
        let jars = folder.join("jars");
        let path = |path: &Path| path.to_str().map(str::to_owned).context("the folder has a plain name");
        if !jars.exists() {
            let mut maven = Command::new("mvn");
            maven.args(["-q", "-B", "-f", &path(&sources.join("pom.xml"))?, "dependency:copy-dependencies"]);
            maven.arg(format!("-DoutputDirectory={}", path(&jars)?));
            run(maven, Duration::from_secs(600)).context("Maven brings Kafka's jars")?;
        }
        let class_path = format!("{}/*:{}", path(&jars)?, path(folder)?);
        let mut compiler = Command::new("javac");
        compiler.args(["-cp", &class_path, "-d", &path(folder)?, &path(&sources.join("Load.java"))?]);
        run(compiler, LIMIT)?;
        Ok(Java { class_path, folder: folder.to_owned() })
    }

    fn words<'a>(&'a self, rest: &[&'a str]) -> Vec<&'a str> {
        [&["java", "-Xmx512m", "-cp", &self.class_path][..], rest].concat()
    }

    /// A consumer on one host and a producer on the other.
    fn run(&self, load: Load, topic: &str, broker: &str, source: &Namespace, sink: &Namespace) -> Result<Outcome> {
        let ready = self.folder.join("ready");
        // It may be there from the last run.
        let _ = fs::remove_file(&ready);
        let [count, warm, size, rate] =
            [u64::from(load.count), u64::from(load.warm), load.size as u64, load.rate.unwrap_or(0)]
                .map(|it| it.to_string());
        let path = ready.to_str().context("the folder has a plain name")?;
        let consumer = sink.spawn(&self.words(&["Load", "consume", broker, topic, &count, &warm, path]))?;
        wait_for("the consumer", START, || ready.exists())?;
        source.exec_within(LIMIT, &self.words(&["Load", "produce", broker, topic, &count, &size, &rate]))?;
        let said = consumer.wait(LIMIT)?;
        let numbers: Vec<f64> = said.stdout.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [received, seconds, median, late] = numbers[..] else {
            anyhow::bail!("the consumer said: {}{}", said.stdout, said.stderr);
        };
        Ok(Outcome { received: received as u32, seconds, median, late })
    }
}

/// Kafka's client, a bridge at either end, the switch between them.
pub struct Bridge<'a> {
    lab: &'a Lab,
    weft: &'a str,
    java: &'a Java,
}

impl Bridge<'_> {
    pub fn new<'a>(lab: &'a Lab, weft: &'a str, java: &'a Java) -> Bridge<'a> {
        Bridge { lab, weft, java }
    }
}

impl System for Bridge<'_> {
    fn name(&self) -> &'static str {
        "weft, bridge"
    }

    fn has_flow_control(&self) -> bool {
        false
    }

    fn run(&mut self, load: Load) -> Result<Outcome> {
        let rate = load.rate.filter(|rate| *rate > 1_000).map(|rate| rate.to_string());
        let start = |host: &Namespace, local: &str, rate: Option<&str>| -> Result<Running> {
            let mut words = vec![self.weft, "subs", "kafka", "--local", local];
            words.extend(rate.into_iter().flat_map(|rate| ["--rate", rate]));
            let bridge = host.spawn(&words)?;
            Lab::wait_for_server(host, BRIDGE)?;
            Ok(bridge)
        };
        let _source = start(&self.lab.source, "10.0.1.1", rate.as_deref())?;
        let _sink = start(&self.lab.sink, "10.0.2.1", None)?;
        // The bridge keeps the rate, the client is as fast as it is let.
        let load = Load { rate: load.rate.filter(|rate| *rate <= 1_000), ..load };
        self.java.run(load, "bench", BRIDGE, &self.lab.source, &self.lab.sink)
    }
}

/// Kafka's client and broker.
pub struct Broker<'a> {
    lab: &'a Lab,
    java: &'a Java,
    _broker: Running,
    runs: u32,
}

impl Broker<'_> {
    pub fn new<'a>(lab: &'a Lab, java: &'a Java) -> Result<Broker<'a>> {
        let data = java.folder.join("kafka-data");
        // It may be there from the last run.
        let _ = fs::remove_dir_all(&data);
        let properties = java.folder.join("server.properties");
        let text = format!(
            "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:9093\n\
             listeners=PLAINTEXT://{BROKER},CONTROLLER://127.0.0.1:9093\nadvertised.listeners=PLAINTEXT://{BROKER}\n\
             controller.listener.names=CONTROLLER\nlog.dirs={}\noffsets.topic.replication.factor=1\n",
            data.display()
        );
        fs::write(&properties, text)?;
        let properties = properties.to_str().context("the folder has a plain name")?;
        let format = ["kafka.tools.StorageTool", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAA", "-c", properties];
        lab.middle.exec_within(LIMIT, &java.words(&format))?;
        let mut broker = lab.middle.spawn(&java.words(&["kafka.Kafka", properties]))?;
        Lab::wait_for_server(&lab.source, BROKER)?;
        ensure!(broker.is_running(), "the broker has ended");
        Ok(Broker { lab, java, _broker: broker, runs: 0 })
    }
}

impl System for Broker<'_> {
    fn name(&self) -> &'static str {
        "Kafka"
    }

    fn has_flow_control(&self) -> bool {
        true
    }

    fn run(&mut self, load: Load) -> Result<Outcome> {
        self.runs += 1;
        self.java.run(load, &format!("bench-{}", self.runs), BROKER, &self.lab.source, &self.lab.sink)
    }
}
