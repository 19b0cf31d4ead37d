//! The form of a `network.toml`. Types and comments here are the JSON Schema; `docs/network.md` explains them.

pub mod values;

use crate::read::fields::{table, words};
use values::*;

table! {
    /// A network in one file.
    pub struct File {
        /// Its name: letters, digits, `-` and `_`, at most 24. Default: the file's.
        name: Option<Word>,
        /// Where all random numbers come from. Default 1.
        seed: Option<u64>,
        /// How long a run lasts.
        duration: Duration,
        /// So much of the beginning is left out of what is measured. Default 0s.
        warm_up: Option<Duration>,
        /// How often it is run, each time with another seed. Default 1.
        repetitions: Option<u32>,
        /// Every how long links are sampled. Default: a thousandth of the duration, at least 1us.
        sample_interval: Option<Duration>,
        /// Registers of machines to sample as often, of the first flows: `congestion_window`, `smoothed`.
        probes: Option<Names>,
        /// Ports to capture at: `NODE:PORT`, or `NODE` for all its ports; `*` stands for any letters.
        record: Option<Names>,
        /// How packets find their ways.
        routing: Option<Routing>,
        /// Static routes.
        routes: Option<Vec<Route>>,
        /// Nodes and links made by a rule.
        topology: Option<Topology>,
        /// Nodes by name.
        nodes: Option<Named<Node>>,
        /// Links.
        links: Option<Vec<Link>>,
        /// Traffic.
        traffic: Option<Vec<Traffic>>,
        /// Changes of links over time.
        changes: Option<Vec<Change>>,
        /// Faults over time.
        faults: Option<Vec<Fault>>,
        /// Dotted paths into this file and the values each takes: a run for each combination.
        sweep: Option<Sweep>,
    }
}

words! {
    /// Rules that make nodes and links.
    pub enum TopologyKind {
        /// Pairs of hosts over one bottleneck.
        Dumbbell = "dumbbell",
        /// A row of bottlenecks, each with a pair across it, and one pair over all.
        ParkingLot = "parking-lot",
        /// Two hosts and a row of routers between.
        Chain = "chain",
        /// Hosts around one router.
        Star = "star",
        /// A fat tree of k-port routers.
        FatTree = "fat-tree",
        /// Routers joined by preferential attachment, hosts on the least joined.
        AsGraph = "as-graph",
    }
}

table! {
    /// Nodes and links made by a rule.
    pub struct Topology {
        /// The rule.
        kind: TopologyKind,
        /// Of `dumbbell`: pairs of hosts.
        pairs: Option<u32>,
        /// Of `parking-lot`: bottlenecks.
        hops: Option<u32>,
        /// Of `chain`: routers between the hosts.
        length: Option<u32>,
        /// Of `star`: hosts.
        leaves: Option<u32>,
        /// Of `fat-tree`: ports of each router, even.
        k: Option<u32>,
        /// Of `as-graph`: routers.
        nodes: Option<u32>,
        /// Of `as-graph`: links of each new router. Default 2.
        degree: Option<u32>,
        /// Of `as-graph`: hosts. Default: one on each stub.
        hosts: Option<u32>,
        /// Of `as-graph`: its own seed. Default: the network's.
        seed: Option<u64>,
        /// Links of hosts.
        access: Option<LinkSettings>,
        /// Of `dumbbell` and `parking-lot`: the links between routers.
        bottleneck: Option<LinkSettings>,
        /// Of the others: the links between routers.
        core: Option<LinkSettings>,
    }
}

words! {
    /// What a node is.
    pub enum NodeKind {
        /// An end with TCP and UDP.
        Host = "host",
        /// Forwards IP packets.
        Router = "router",
        /// Forwards Ethernet frames.
        Switch = "switch",
        /// A host that only sends.
        Source = "source",
        /// Takes every packet and answers none.
        Sink = "sink",
        /// Sends every UDP datagram back.
        Echo = "echo",
        /// Runs a function.
        Function = "function",
    }
}

table! {
    /// A node.
    pub struct Node {
        /// What it is. Default `host`.
        kind: Option<NodeKind>,
        /// Its IPv4 address. Default: by its place in the file, from 10.0.0.1.
        ipv4: Option<Word>,
        /// Its IPv6 address. Default: by its place in the file, from fd77::1.
        ipv6: Option<Word>,
        /// Of a host: commands that run when the network is real.
        commands: Option<Vec<Command>>,
        /// Of a function: its image or source, relative to this file.
        image: Option<Word>,
        /// Of a function that is a subscription switch, in place of `image`: its rules, relative to this file.
        rules: Option<Word>,
        /// Of a subscription switch: the formats of the messages, relative to this file.
        format: Option<Word>,
        /// Of a function: the engine that runs it. Default `reference`.
        engine: Option<String>,
        /// Of a function: frames cross it unchanged. Default: true with two or more ports.
        transparent: Option<bool>,
        /// Of a function, and of a host in the simulator: initial values of registers.
        parameters: Option<Parameters>,
        /// Of a function: write each event to `NODE.trace.jsonl`. Default false.
        trace: Option<bool>,
    }
}

table! {
    /// A command on a host.
    pub struct Command {
        /// Program and arguments.
        run: Run,
        /// After the start. Default 0s.
        at: Option<Duration>,
    }
}

table! {
    /// How a link treats packets.
    pub struct DirectionSettings {
        /// Bits per second, `unlimited` by default.
        rate: Option<LinkRate>,
        /// Propagation. Default 0s.
        delay: Option<Duration>,
        /// Added to the delay at random, uniform up to so much; packets keep their order, or not. Default 0s.
        jitter: Option<JitterValue>,
        /// The queue before the link. Default 100 packets, drop-tail.
        queue: Option<QueueValue>,
        /// The far end asks for a pause when too much waits in it of what came by here. Default: never.
        pause: Option<Pause>,
        /// Loss before the queue. Default 0.
        loss: Option<LossValue>,
        /// Packets that others may overtake.
        reorder: Option<Reorder>,
        /// Share of packets that arrive twice. Default 0.
        duplicate: Option<Share>,
        /// Share of packets of which one bit is inverted. Default 0.
        corrupt: Option<Share>,
        /// Bytes added to each packet for its time on the wire (24 on Ethernet). Default 0.
        overhead: Option<u16>,
        /// Rates over time, in place of `rate`.
        rate_trace: Option<TraceValue>,
        /// After which `rate_trace` begins anew. Default: as long after its last step as that is after the one before.
        rate_period: Option<Duration>,
    }
}

words! {
    /// What becomes of ways of equal cost.
    pub enum Multipath {
        /// Each flow takes one of them, by a hash under a key of the node's own.
        Flow = "flow",
        /// Each packet takes one of them.
        Packet = "packet",
        /// All packets take the first.
        Single = "single",
    }
}

words! {
    /// What ways cost.
    pub enum Cost {
        /// The metrics of their links; at equal metric the delay.
        MetricDelay = "metric-delay",
        /// The metrics of their links.
        Metric = "metric",
    }
}

table! {
    /// How packets find their ways.
    pub struct Routing {
        /// What becomes of ways of equal cost. Default `flow`.
        multipath: Option<Multipath>,
        /// What ways cost. Default `metric-delay`.
        cost: Option<Cost>,
        /// After which time a link that is down is routed round, or `never`. Default 1s.
        convergence: Option<Convergence>,
    }
}

table! {
    /// Static routes.
    pub struct Route {
        /// Of which nodes; `*` stands for any letters.
        node: Names,
        /// Towards which nodes.
        to: Names,
        /// Over which neighbours.
        via: Names,
    }
}

table! {
    /// How both directions of a link treat packets.
    pub struct LinkSettings {
        /// What it costs to go over it. Default 1.
        metric: Option<u32>,
        /// Its share where a node has several ways of equal cost, from 1 to 256. Default 1.
        weight: Option<u16>,
        /// Only from the first end to the second.
        forward: Option<DirectionSettings>,
        /// Only from the second end to the first.
        backward: Option<DirectionSettings>,
    }
    with {
        /// Both directions.
        both: DirectionSettings,
    }
}

table! {
    /// A link, or, without `between`, more about links that the topology made.
    pub struct Link {
        /// Its name. Default `A-B`.
        name: Option<Word>,
        /// Its ends: `NODE`, or `NODE:PORT`.
        between: Option<Vec<Word>>,
    }
    with {
        /// How it treats packets.
        settings: LinkSettings,
    }
}

words! {
    /// Queue disciplines.
    pub enum Discipline {
        /// What finds the queue full is dropped.
        DropTail = "drop-tail",
        /// ECN-capable arrivals that find more than `threshold` waiting are marked (RFC 8257).
        Step = "step",
        /// Random early detection.
        Red = "red",
        /// Controlled delay (RFC 8289).
        Codel = "codel",
    }
}

table! {
    /// A queue.
    pub struct Queue {
        /// How much may wait: packets or bytes. Default 100 packets.
        limit: Option<Amount>,
        /// Who is dropped before the limit is reached. Default `drop-tail`.
        discipline: Option<Discipline>,
        /// ECN-capable packets are marked where the discipline would drop them. Default false.
        ecn: Option<bool>,
        /// There is such a queue for each of eight classes, the upper three bits of DSCP; higher ones go first. Default false.
        priority: Option<bool>,
        /// Of `step`: K. Default: a quarter of the limit.
        threshold: Option<Amount>,
        /// Of `red`: average below which nothing is dropped. Default: a quarter of the limit.
        minimum: Option<Amount>,
        /// Of `red`: average at which `probability` is reached. Default: three quarters of the limit.
        maximum: Option<Amount>,
        /// Of `red`: greatest probability before the gentle ramp. Default 10%.
        probability: Option<Share>,
        /// Of `red`: weight of a new sample in the average. Default 0.002.
        weight: Option<Share>,
        /// Of `codel`: acceptable standing delay. Default 5ms.
        target: Option<Duration>,
        /// Of `codel`: the sliding minimum's width. Default 100ms.
        interval: Option<Duration>,
    }
}

table! {
    /// Priority-based flow control of what came by a link.
    pub struct Pause {
        /// Above so many bytes of a class, a pause is asked for.
        xoff: Bytes,
        /// When no more than so many are left, packets are taken again. Default: half of `xoff`.
        xon: Option<Bytes>,
        /// Bytes that have room above `xoff`, for what is on its way. Default: as many as `xoff`.
        headroom: Option<Bytes>,
        /// For these classes, 0 to 7. Default: all.
        classes: Option<Vec<u16>>,
    }
}

table! {
    /// Reordering.
    pub struct Reorder {
        /// Share of packets.
        share: Share,
        /// How much longer they take.
        delay: Duration,
    }
}

words! {
    /// What is sent.
    pub enum TrafficKind {
        /// One flow of many bytes.
        Bulk = "bulk",
        /// Requests and answers in turn.
        RequestResponse = "request-response",
        /// Flows that open one after another.
        Flows = "flows",
        /// UDP datagrams.
        Datagrams = "datagrams",
        /// The frames of a capture.
        Capture = "capture",
    }
}

words! {
    /// Transport protocols.
    pub enum Transport {
        /// TCP.
        Tcp = "tcp",
        /// UDP.
        Udp = "udp",
    }
}

words! {
    /// Who sends to whom.
    pub enum Pairs {
        /// The first to the first, the second to the second.
        InOrder = "in-order",
        /// Each to each.
        All = "all",
        /// Each to one, by chance.
        Random = "random",
        /// Of `flows`: each flow to one, by chance.
        PerFlow = "per-flow",
    }
}

words! {
    /// How begins lie in time.
    pub enum Arrivals {
        /// At equal distances.
        Constant = "constant",
        /// Exponential gaps.
        Poisson = "poisson",
    }
}

table! {
    /// Traffic.
    pub struct Traffic {
        /// Its name, for tables. Default: its kind.
        name: Option<Word>,
        /// What is sent.
        kind: TrafficKind,
        /// Who opens flows and sends.
        from: Names,
        /// Who receives.
        to: Option<Names>,
        /// Who sends to whom, with several. Default `in-order` with equal counts, `all` with one at either end.
        pairs: Option<Pairs>,
        /// So many separate flows of it. Default 1.
        copies: Option<u32>,
        /// When it begins. Default 0s.
        start: Option<Duration>,
        /// Behind which nothing new begins. Default: the run's end.
        stop: Option<Duration>,
        /// `tcp` by default, of `datagrams` `udp`.
        transport: Option<Transport>,
        /// The congestion control of its TCP connections, as Linux names it: `cubic`, `reno`. Default: the platform's.
        congestion_control: Option<Word>,
        /// Of traffic between hosts: the DSCP of its packets, 0 to 63, both ways. Default 0.
        dscp: Option<u16>,
        /// How they recover from losses, as the simulator's TCP names it: `rack`, `rfc6675`, `tb_tcp`. Default: the platform's.
        recovery: Option<Word>,
        /// 4 or 6. Default 4.
        family: Option<u16>,
        /// The receiver's port number, default 5001 and up; of `capture` the port of the node, default 1.
        port: Option<u16>,
        /// The sender's port number of the first flow. Default 40000 and up.
        source_port: Option<u16>,
        /// Of `bulk`: how much. Default `unlimited`.
        bytes: Option<BulkBytes>,
        /// Of `request-response`: bytes of a request. Default 100B.
        request: Option<Bytes>,
        /// Of `request-response`: bytes of an answer. Default 10kB.
        response: Option<Bytes>,
        /// Of `request-response`: how many pairs, default 1. Of `flows` and `datagrams`: at most so many.
        count: Option<u64>,
        /// Of `request-response`: between an answer and the next request. Default 0s.
        think: Option<PauseValue>,
        /// Of `flows` and `datagrams`: how many a second each sender begins (`100/s`), or how many bits of their bytes
        /// (`1Mbit/s`).
        rate: Option<Pace>,
        /// Of `flows` and `datagrams`, in place of `rate`: from one to the next.
        gap: Option<Duration>,
        /// Of `flows` and `datagrams`, in place of `rate`: a rate envelope as `weft pace` reads it.
        envelope: Option<Word>,
        /// The round trip that the envelope counts in.
        rtt: Option<Duration>,
        /// Of `flows` and `datagrams`. Default: `poisson` for flows, `constant` for datagrams. The first of `poisson`
        /// comes a gap behind `start`, of `constant` at `start`.
        arrivals: Option<Arrivals>,
        /// Of `flows` and `datagrams`: bytes of each.
        size: Option<SizeValue>,
        /// Of `capture`: the file, relative to this one.
        file: Option<Word>,
    }
}

words! {
    /// Directions of a link.
    pub enum Direction {
        /// From the first end to the second.
        Forward = "forward",
        /// From the second end to the first.
        Backward = "backward",
        /// Both.
        Both = "both",
    }
}

table! {
    /// New settings of links from an instant on.
    pub struct Change {
        /// When.
        at: Duration,
        /// Which links; `*` stands for any letters.
        link: Names,
        /// Which direction. Default `both`.
        direction: Option<Direction>,
    }
    with {
        /// What becomes different.
        settings: DirectionSettings,
    }
}

words! {
    /// Faults.
    pub enum FaultKind {
        /// A link loses everything.
        LinkDown = "link-down",
        /// A link swallows what is offered.
        Blackhole = "blackhole",
        /// A link changes a header field.
        CorruptField = "corrupt-field",
        /// A node starts anew.
        NodeRestart = "node-restart",
        /// A function's clock runs wrong.
        Clock = "clock",
    }
}

table! {
    /// A fault.
    pub struct Fault {
        /// When.
        at: Duration,
        /// How long. Default: to the end.
        r#for: Option<Duration>,
        /// What.
        kind: FaultKind,
        /// Of a link's faults: which.
        link: Option<Names>,
        /// Of a link's faults: which direction. Default `both`.
        direction: Option<Direction>,
        /// Of `corrupt-field`: `format.field`.
        field: Option<Word>,
        /// Of `corrupt-field`: exclusive-ored into the field. Default 1.
        mask: Option<u64>,
        /// Of `corrupt-field`: share of packets. Default 1.
        share: Option<Share>,
        /// Of `node-restart` and `clock`: which nodes.
        node: Option<Names>,
        /// Of `clock`: how much faster it runs, parts per million. Default 0.
        drift_ppm: Option<i64>,
        /// Of `clock`: how far it leaps ahead. Default 0s.
        leap: Option<Duration>,
    }
}

/// The JSON Schema of a `network.toml`.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(File).to_value()
}
