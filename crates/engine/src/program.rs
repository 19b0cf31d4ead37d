//! An image made ready to run: names resolved to places, rows sorted by what they wait for.

use crate::instance::Instance;
use crate::lines::groups_of;
use crate::stores::{Ranges, Segments};
use crate::turns::Turns;
use weftwire_core::build::{TemplateSpec, TemplateTransport};
use weftwire_core::format::{FieldPlace, Formats};
use weftwire_core::packet::Packet;
use weftwire_core::wire::icmp::IcmpError;
use weftwire_core::{Endpoints, Frame, LinkType, Outbox};
use weftwire_image::layout::StateLayout;
use weftwire_image::{self as image, Event, Operation, RegisterType, VerifiedImage};

/// A loaded image.
#[derive(Debug)]
pub struct Program {
    /// The image.
    pub image: VerifiedImage,
    /// Its header formats.
    pub formats: Formats,
    /// Where everything is in the bytes of a flow's state.
    pub state_layout: StateLayout,
    /// Where the fields are that it names, by index.
    pub places: Vec<FieldPlace>,
    templates: Vec<Template>,
    /// The groups from which a full table evicts that each state belongs to.
    pub groups: Vec<u32>,
    /// The registers of a new instance.
    pub initial: Box<[i64]>,
    /// The types of the registers.
    pub kinds: Box<[RegisterType]>,
    /// Whether a row waits for ICMP errors.
    hears_icmp: bool,
    /// A field that every IP packet has.
    ip_version: FieldPlace,
    /// What happens at an event: by state, then by the event's place.
    cells: Vec<Vec<Cell>>,
}

/// A template with its names resolved.
#[derive(Debug)]
struct Template {
    transport: TemplateTransport,
    tcp_options: Vec<u8>,
    headers: Vec<usize>,
    payload: u16,
    presets: Vec<(FieldPlace, u64)>,
    /// Bytes that its packets fit in.
    room: usize,
}

/// What happens at one (state, event).
#[derive(Default, Debug)]
struct Cell {
    preparation: Option<usize>,
    rows: Vec<usize>,
    /// Of an internal event that is repeated: its repeat, by index.
    repeat: Option<usize>,
}

/// The place of an event among those of a state: first those that a machine has once, then each timer's, each internal
/// event and each kind of turns, side by side.
fn place(event: Event) -> usize {
    let of_many = |kind: usize, number: usize| 11 + 3 * number + kind;
    match event {
        Event::Packet => 0,
        Event::Data => 1,
        Event::Read => 2,
        Event::Enter => 3,
        Event::Exit => 4,
        Event::Connect => 5,
        Event::Close => 6,
        Event::Abort => 7,
        Event::Icmp => 8,
        Event::Expire => 9,
        Event::Set => 10,
        Event::Timer(number) => of_many(0, number.into()),
        Event::Internal(number) => of_many(1, number.into()),
        Event::Turn(number) => of_many(2, number.into()),
    }
}

/// The cell of an event, which comes to be if it is not there.
fn cell_of(cells: &mut Vec<Cell>, event: Event) -> &mut Cell {
    let place = place(event);
    if place >= cells.len() {
        cells.resize_with(place + 1, Cell::default);
    }
    &mut cells[place]
}

impl Program {
    /// Loads an image.
    pub fn new(image: VerifiedImage) -> Program {
        let formats = image.formats();
        let mut cells: Vec<Vec<Cell>> = Vec::new();
        cells.resize_with(image.states.len(), Vec::new);
        for (number, preparation) in image.preparations.iter().enumerate() {
            cell_of(&mut cells[usize::from(preparation.state)], preparation.event).preparation = Some(number);
        }
        for (number, row) in image.rows.iter().enumerate() {
            cell_of(&mut cells[usize::from(row.state)], row.event).rows.push(number);
        }
        for (number, repeat) in image.repeats.iter().enumerate() {
            cell_of(&mut cells[usize::from(repeat.state)], Event::Internal(repeat.event)).repeat = Some(number);
        }
        let places = image.places(&formats);
        Program {
            templates: image.templates.iter().map(|it| Template::new(it, &formats, &places)).collect(),
            groups: groups_of(&image),
            initial: image.registers.iter().map(|register| register.initial).collect(),
            kinds: image.registers.iter().map(|register| register.kind).collect(),
            cells,
            hears_icmp: image.rows.iter().any(|row| row.event == Event::Icmp),
            ip_version: formats.field("network", "version").expect("a built-in field"),
            places,
            formats,
            state_layout: StateLayout::of(&image),
            image,
        }
    }

    /// What runs before the conditions of (state, event), and its rows by number, in order.
    pub fn cell(&self, state: u16, event: Event) -> (&[Operation], &[usize]) {
        let Some(cell) = self.cells[usize::from(state)].get(place(event)) else { return (&[], &[]) };
        let preparation = cell.preparation.map(|number| self.image.preparations[number].operations.as_slice());
        (preparation.unwrap_or_default(), &cell.rows)
    }

    /// Whether anything waits for an event.
    pub fn has_rows(&self, state: u16, event: Event) -> bool {
        !self.cell(state, event).1.is_empty()
    }

    /// The repeat of an internal event, by its index in the image's list.
    pub fn repeat_of(&self, state: u16, event: u16) -> Option<usize> {
        self.cells[usize::from(state)].get(place(Event::Internal(event)))?.repeat
    }

    /// Sees that an instance has its ranges and segments; one that was of another flow has them.
    pub fn fill_stores(&self, instance: &mut Instance) {
        if instance.ranges.len() != self.image.ranges.len() || instance.segments.len() != self.image.segments.len() {
            instance.ranges = self.new_ranges();
            instance.segments = self.new_segments();
        }
    }

    /// The turns of a new function.
    pub fn new_turns(&self) -> Vec<Turns> {
        self.image.turns.iter().map(|turns| Turns::new(turns.most)).collect()
    }

    /// The ranges of a new instance.
    pub fn new_ranges(&self) -> Vec<Ranges> {
        self.image.ranges.iter().map(|object| Ranges::new(object.most, object.bytes)).collect()
    }

    /// The segments of a new instance.
    pub fn new_segments(&self) -> Vec<Segments> {
        let segments = self.image.segments.iter();
        segments.map(|object| Segments::new(object.most, object.fields.iter().map(|field| field.kind))).collect()
    }

    /// Whether a packet can leave by a port of this link type (rule P18).
    pub fn fits(&self, packet: &Packet, link: LinkType) -> bool {
        link == LinkType::Ethernet || packet.get(self.ip_version).is_some()
    }

    /// Builds a template's packet from this end of a flow to the other (rule P22), in a buffer of the outbox, with the options that
    /// are wanted.
    pub fn build(&self, template: u16, wanted: &[i64], endpoints: &Endpoints, out: &mut Outbox) -> Packet {
        let template = &self.templates[usize::from(template)];
        Packet::build_in(out.buffer(template.room), &template.specification(wanted), endpoints, &self.formats)
    }

    /// A packet of a flow, to see what flow key it has.
    pub fn probe(&self, transport: TemplateTransport, endpoints: &Endpoints) -> Packet {
        let bare = TemplateSpec { transport, tcp_options: &[], wanted: &[], headers: &[], payload: 0, presets: &[] };
        Packet::build(&bare, endpoints, &self.formats)
    }

    /// The transport of a template.
    pub fn template_transport(&self, template: u16) -> TemplateTransport {
        self.templates[usize::from(template)].transport
    }

    /// The flow key of a packet (rules F1 and F2) into `key`. `false` if it has none.
    pub fn flow_key(&self, packet: &Packet, key: &mut Vec<u8>) -> bool {
        let flow = &self.image.flow;
        key.clear();
        let mut append = |fields: &[u16]| {
            fields.iter().all(|&field| {
                let place = self.places[usize::from(field)];
                let Some(value) = packet.get_wide(place) else { return false };
                let bytes = usize::from(place.width()).div_ceil(8);
                key.extend_from_slice(&value.to_be_bytes()[16 - bytes..]);
                true
            })
        };
        if !(append(&flow.common) && append(&flow.source) && append(&flow.destination)) {
            return false;
        }
        if flow.symmetric {
            let sides = &mut key[self.key_bytes(&flow.common)..];
            let (source, destination) = sides.split_at_mut(sides.len() / 2);
            if destination < source {
                source.swap_with_slice(destination);
            }
        }
        true
    }

    /// What an ICMP error says and the packet that it is about, whose flow key goes into `key`. `None` if no row waits for
    /// such errors, or the packet is none, or what it is about has no flow key (rule E19).
    pub fn icmp_error(&self, packet: &Packet, key: &mut Vec<u8>) -> Option<(IcmpError, Packet)> {
        let error = packet.icmp_error().filter(|_| self.hears_icmp)?;
        let about = Packet::parse(LinkType::Ip, Frame::new(&error.about), &self.formats).ok()?;
        self.flow_key(&about, key).then_some((error, about))
    }

    /// Bytes of a flow key.
    pub fn key_length(&self) -> usize {
        let flow = &self.image.flow;
        [&flow.common, &flow.source, &flow.destination].into_iter().map(|fields| self.key_bytes(fields)).sum()
    }

    /// Whether bytes as long as a flow key are one that [`Program::flow_key`] can make: the sides of a symmetric one are
    /// in order.
    pub fn is_key(&self, key: &[u8]) -> bool {
        let sides = key.get(self.key_bytes(&self.image.flow.common)..).unwrap_or_default();
        let (source, destination) = sides.split_at(sides.len() / 2);
        !self.image.flow.symmetric || source <= destination
    }

    /// Whether the ends of a flow tell its key. Of an IPv6 packet with extension headers the next header is the first of them.
    pub fn ends_tell_key(&self) -> bool {
        let flow = &self.image.flow;
        let fields = [&flow.common, &flow.source, &flow.destination].into_iter().flatten();
        fields
            .map(|&field| &self.image.fields[usize::from(field)])
            .all(|name| name.known_to_connect() && !(name.format == "ipv6" && name.field == "next_header"))
    }

    fn key_bytes(&self, fields: &[u16]) -> usize {
        fields.iter().map(|&field| usize::from(self.places[usize::from(field)].width()).div_ceil(8)).sum()
    }

    /// Name of a state.
    pub fn state_name(&self, state: u16) -> &str {
        &self.image.states[usize::from(state)].name
    }

    /// Name of an event, as traces show it.
    pub fn event_name(&self, event: Event) -> String {
        match event {
            Event::Packet => "packet".into(),
            Event::Timer(timer) => self.image.timers[usize::from(timer)].name.clone(),
            Event::Turn(turns) => self.image.turns[usize::from(turns)].name.clone(),
            Event::Connect => "connect".into(),
            Event::Close => "close".into(),
            Event::Data => "data".into(),
            Event::Enter => "enter".into(),
            Event::Exit => "exit".into(),
            Event::Abort => "abort".into(),
            Event::Read => "read".into(),
            Event::Icmp => "icmp".into(),
            Event::Set => "set".into(),
            Event::Expire => "expire".into(),
            Event::Internal(number) => format!("internal {number}"),
        }
    }
}

impl Template {
    fn new(template: &image::Template, formats: &Formats, places: &[FieldPlace]) -> Template {
        let header = |name: &String| formats.imported_index(name).expect("the verifier found the imported format");
        let mut made = Template {
            transport: match template.transport {
                image::TemplateTransport::Tcp => TemplateTransport::Tcp,
                image::TemplateTransport::Udp => TemplateTransport::Udp,
            },
            tcp_options: template.tcp_options.clone(),
            headers: template.headers.iter().map(header).collect(),
            payload: template.payload,
            presets: template
                .presets
                .iter()
                .map(|&(field, value)| (places[usize::from(field)], value as u64))
                .collect(),
            room: 0,
        };
        made.room = made.specification(&[]).room(formats);
        made
    }

    fn specification<'a>(&'a self, wanted: &'a [i64]) -> TemplateSpec<'a> {
        TemplateSpec {
            transport: self.transport,
            tcp_options: &self.tcp_options,
            wanted,
            headers: &self.headers,
            payload: self.payload,
            presets: &self.presets,
        }
    }
}
