//! The verifier: from a document to an image that engines may run without further checks.

mod behaviour;
mod endings;
mod packets;
mod report;
mod scratch;
mod stores;

use crate::error::ImageError;
use crate::limits::*;
use crate::types::{Feature, FieldName, IMAGE_VERSION, Image, OtherPackets, WhenFull};
use report::{Path, Report, quote};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::ops::Deref;
use weftwire_core::format::{self, FieldPlace, Formats};

/// An image that keeps every promise of `docs/semantics.md` and of its types. Only verification makes one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerifiedImage(Image);

impl VerifiedImage {
    /// Reads and verifies a document.
    ///
    /// # Errors
    /// See [`ImageError`].
    pub fn from_json(bytes: &[u8]) -> Result<VerifiedImage, ImageError> {
        if bytes.len() > MAX_DOCUMENT {
            return Err(ImageError::TooLong { bytes: bytes.len(), limit: MAX_DOCUMENT });
        }
        Head::of(bytes)?;
        let image: Image = serde_json::from_slice(bytes).map_err(|error| ImageError::Form(error.to_string()))?;
        image.verify()
    }

    /// The formats, resolved, for the packet parser.
    pub fn formats(&self) -> Formats {
        let list: Vec<format::Format> = self.0.formats.iter().map(format::Format::from).collect();
        Formats::new(&list).expect("the verifier resolved the same formats")
    }

    /// Where the fields are that the image names, by their index, under [`VerifiedImage::formats`].
    pub fn places(&self, formats: &Formats) -> Vec<FieldPlace> {
        let place = |name: &FieldName| formats.field(&name.format, &name.field);
        self.0.fields.iter().map(|name| place(name).expect("the verifier resolved the same fields")).collect()
    }

    /// The same machine with other initial values of registers, by their index. It need not be verified again: of an initial value
    /// nothing matters but that the register's type holds it, to which it is cut.
    #[must_use]
    pub fn with_initial_values(self, values: impl IntoIterator<Item = (usize, i64)>) -> VerifiedImage {
        let VerifiedImage(mut image) = self;
        for (index, value) in values {
            let register = &mut image.registers[index];
            register.initial = register.kind.cut(value);
        }
        image.seal();
        VerifiedImage(image)
    }

    /// The image itself, to change it. It has to be sealed and verified again.
    pub fn into_image(self) -> Image {
        self.0
    }
}

impl Deref for VerifiedImage {
    type Target = Image;

    fn deref(&self) -> &Image {
        &self.0
    }
}

impl Image {
    /// Checks everything: version, limits, names, indexes, types, formats, templates, that events end, digest.
    ///
    /// # Errors
    /// [`ImageError::Invalid`] with all findings.
    pub fn verify(self) -> Result<VerifiedImage, ImageError> {
        let mut verifier =
            Verifier { image: &self, formats: Formats::default(), blocks: Vec::new(), report: Report::default() };
        verifier.head();
        verifier.names();
        verifier.registers();
        verifier.flow();
        verifier.tables();
        verifier.stores();
        verifier.debug();
        verifier.packets();
        verifier.behaviour();
        verifier.endings();
        if verifier.report.is_empty() {
            verifier.scratch();
        }
        verifier.digest();
        verifier.report.finish().map_err(ImageError::Invalid)?;
        Ok(VerifiedImage(self))
    }
}

/// What a document of any version says of itself. The rest is read only if this release knows how.
#[derive(Deserialize)]
struct Head {
    weftwire_image: Option<u64>,
    features: Option<Vec<String>>,
}

impl Head {
    /// Sees that the document is an image for this release, as far as its head tells; what is not there, or of another form, the
    /// reader of images reports.
    fn of(bytes: &[u8]) -> Result<(), ImageError> {
        let Ok(head) = serde_json::from_slice::<Head>(bytes) else { return Ok(()) };
        if let Some(found) = head.weftwire_image.filter(|found| *found != u64::from(IMAGE_VERSION)) {
            return Err(ImageError::Version { found });
        }
        let known = |name: &String| serde_json::from_value::<Feature>(name.as_str().into()).is_ok();
        let names: Vec<String> = head.features.unwrap_or_default().into_iter().filter(|name| !known(name)).collect();
        if names.is_empty() { Ok(()) } else { Err(ImageError::UnknownFeatures { names }) }
    }
}

struct Verifier<'a> {
    image: &'a Image,
    /// The formats that are good, resolved.
    formats: Formats,
    /// What each block needs of the place where it runs.
    blocks: Vec<behaviour::Needs>,
    report: Report,
}

impl Verifier<'_> {
    fn head(&mut self) {
        let version = self.image.weftwire_image;
        if version != IMAGE_VERSION {
            let remedy = format_args!("this release reads version {IMAGE_VERSION}");
            self.report.add(Path::Root.member("weftwire_image"), format_args!("version {version}"), remedy);
        }
        self.name(Path::Root.member("name"), &self.image.name);
        let used = self.image.used_features();
        if self.image.features != used {
            let names: Vec<String> = used.iter().map(|feature| quote(&feature.to_string())).collect();
            let remedy =
                format_args!("list {}, in this order", if names.is_empty() { "none".into() } else { names.join(", ") });
            self.report.add(Path::Root.member("features"), "these are not the features that the image uses", remedy);
        }
    }

    fn digest(&mut self) {
        let right = self.image.computed_digest();
        if self.image.digest != right {
            let problem = format_args!("{} is not the digest of this document", quote(&self.image.digest));
            self.report.add(Path::Root.member("digest"), problem, format_args!("the document's is `{right}`"));
        }
    }

    fn names(&mut self) {
        let image = self.image;
        let list = |name| Path::Member(&Path::Root, name);
        self.list_of_names(list("registers"), image.registers.iter().map(|it| &it.name), MAX_REGISTERS);
        self.list_of_names(list("formats"), image.formats.iter().map(|it| &it.name), MAX_FORMATS);
        self.list_of_names(list("slots"), image.slots.iter(), MAX_SLOTS);
        self.list_of_names(list("templates"), image.templates.iter().map(|it| &it.name), MAX_TEMPLATES);
        self.list_of_names(list("timers"), image.timers.iter().map(|it| &it.name), MAX_TIMERS);
        self.list_of_names(list("tables"), image.tables.iter().map(|it| &it.name), MAX_TABLES);
        self.list_of_names(list("notices"), image.notices.iter(), MAX_NOTICES);
        self.list_of_names(list("states"), image.states.iter().map(|it| &it.name), MAX_STATES);
        self.list_of_names(list("ranges"), image.ranges.iter().map(|it| &it.name), MAX_RANGES);
        self.list_of_names(list("tallies"), image.tallies.iter().map(|it| &it.name), MAX_TALLIES);
        self.list_of_names(list("turns"), image.turns.iter().map(|it| &it.name), MAX_TURNS);
        self.list_of_names(list("segments"), image.segments.iter().map(|it| &it.name), MAX_SEGMENTS);
        let debug = list("debug");
        self.list_of_names(debug.member("points"), image.debug.points.iter(), MAX_DEBUG_POINTS);
        let timers = list("timers");
        for (index, timer) in image.timers.iter().enumerate() {
            let timer_path = timers.item(index);
            self.list_of_names(timer_path.member("payload"), timer.payload.iter(), MAX_TIMER_PAYLOAD);
        }
        if image.states.is_empty() {
            self.report.add(list("states"), "there is no state", "state 0 is the initial state");
        }
    }

    fn registers(&mut self) {
        let registers = Path::Root.member("registers");
        for (index, register) in self.image.registers.iter().enumerate() {
            let item = registers.item(index);
            let path = item.member("initial");
            let cut = register.kind.cut(register.initial);
            if cut != register.initial {
                let problem = format_args!("{} does not fit the register's type", register.initial);
                self.report.add(path, problem, format_args!("a write of it would keep {cut}"));
            }
            if register.scratch && register.initial != 0 {
                self.report.add(path, "a scratch register has no value when an event begins", "use 0");
            }
            self.list_of_names(item.member("values"), register.values.iter(), MAX_NAMED_VALUES);
        }
    }

    fn flow(&mut self) {
        let flow = &self.image.flow;
        let path = Path::Root.member("flow");
        if flow.expire < 0 {
            self.report.add(path.member("expire"), "the time is negative", "use nanoseconds, or 0 for never");
        }
        if !(1..=MAX_FLOWS).contains(&flow.max) {
            let problem = format_args!("{} instances", flow.max);
            self.report.add(path.member("max"), problem, format_args!("use 1 to {MAX_FLOWS}"));
        }
        self.report.at_most(path.member("max_timers"), flow.max_timers as usize, MAX_PENDING_TIMERS as usize);
        let path = path.member("when_full");
        match &flow.when_full {
            WhenFull::Reject | WhenFull::EvictOldest => {}
            WhenFull::EvictOldestIn(states) => self.listed_states(path.member("evict_oldest_in"), states),
            WhenFull::EvictInTurn(groups) => {
                let path = path.member("evict_in_turn");
                self.report.at_most(path, groups.len(), MAX_EVICTIONS);
                for (index, group) in groups.iter().enumerate() {
                    let item = path.item(index);
                    self.listed_states(item.member("states"), &group.states);
                    if group.idle < 0 {
                        self.report.add(item.member("idle"), "the time is negative", "use nanoseconds, or 0 for any");
                    }
                }
            }
        }
        let states = Path::Root.member("states");
        for (index, state) in self.image.states.iter().enumerate() {
            if state.expire.is_some_and(|idle| idle < 0) {
                let item = states.item(index);
                self.report.add(item.member("expire"), "the time is negative", "use nanoseconds, or 0 for never");
            }
        }
        if let OtherPackets::Pass(pairs) = &self.image.other_packets {
            let path = Path::Root.member("other_packets");
            let path = path.member("pass");
            self.report.at_most(path, pairs.len(), MAX_PORT_PAIRS);
            let mut seen = BTreeSet::new();
            for (index, (one, other)) in pairs.iter().enumerate() {
                if *one == 0 || *other == 0 {
                    self.report.add(path.item(index), "port 0", "ports count from 1");
                }
                if !seen.insert(one) || !seen.insert(other) {
                    let remedy = "each port belongs to at most one pair of different ports";
                    self.report.add(path.item(index), "a port is there twice", remedy);
                }
            }
        }
    }

    /// Indexes of states, each once.
    pub(super) fn listed_states(&mut self, path: Path<'_>, states: &[u16]) {
        let mut seen = BTreeSet::new();
        for (index, state) in states.iter().enumerate() {
            let good = self.report.index(path.item(index), "state", usize::from(*state), self.image.states.len());
            if good && !seen.insert(state) {
                self.report.add(path.item(index), format_args!("state {state} a second time"), "list it once");
            }
        }
    }

    fn tables(&mut self) {
        let tables = Path::Root.member("tables");
        let all: usize = self.image.tables.iter().map(|table| table.entries.len()).sum();
        if all > MAX_TABLE_ENTRIES {
            let remedy = format_args!("at most {MAX_TABLE_ENTRIES} entries in all tables together");
            self.report.add(tables, format_args!("{all} entries"), remedy);
        }
        for (index, table) in self.image.tables.iter().enumerate() {
            let item = tables.item(index);
            let path = item.member("entries");
            let last = table.entries.len() as i64 - 1;
            if table.entries.is_empty() {
                self.report.add(path, "the table is empty", "a table has at least one entry");
            } else if table.base.checked_add(last).is_none() {
                let remedy = "the last entry's index must fit 64 bits, signed";
                self.report.add(item.member("base"), "the table ends beyond all indexes", remedy);
            }
        }
    }

    fn debug(&mut self) {
        let debug = Path::Root.member("debug");
        let sources = debug.member("sources");
        self.report.at_most(sources, self.image.debug.sources.len(), MAX_SOURCES);
        for (index, source) in self.image.debug.sources.iter().enumerate() {
            self.name(sources.item(index), source);
        }
        let samples = debug.member("samples");
        self.report.at_most(samples, self.image.debug.samples.len(), MAX_SAMPLES);
        for (index, sample) in self.image.debug.samples.iter().enumerate() {
            let item = samples.item(index);
            let path = item.member("register");
            let register = usize::from(sample.register);
            let good = self.report.index(path, "register", register, self.image.registers.len());
            if good && self.image.registers[register].scratch {
                self.report.add(path, "a scratch register has no value between events", "sample a stored register");
            }
            if sample.interval < MIN_SAMPLE_INTERVAL {
                let problem = format_args!("{} ns", sample.interval);
                self.report.add(item.member("interval"), problem, format_args!("at least {MIN_SAMPLE_INTERVAL} ns"));
            }
        }
    }

    /// Names of one list: not too many, none empty or too long, all different.
    pub(super) fn list_of_names<'n>(
        &mut self,
        path: Path<'_>,
        names: impl ExactSizeIterator<Item = &'n String>,
        limit: usize,
    ) {
        self.report.at_most(path, names.len(), limit);
        let mut seen = BTreeSet::new();
        for (index, name) in names.enumerate() {
            self.name(path.item(index), name);
            if !seen.insert(name) {
                self.report.add(path.item(index), format_args!("the name {} again", quote(name)), "names are unique");
            }
        }
    }

    fn name(&mut self, path: Path<'_>, name: &str) {
        if name.is_empty() {
            self.report.add(path, "the name is empty", "give it a name");
        } else if name.len() > MAX_NAME {
            let problem = format_args!("the name {} has {} bytes", quote(name), name.len());
            self.report.add(path, problem, format_args!("at most {MAX_NAME}"));
        } else if name.chars().any(char::is_control) {
            let problem = format_args!("the name {} has control characters", quote(name));
            self.report.add(path, problem, "use printable characters");
        }
    }
}
