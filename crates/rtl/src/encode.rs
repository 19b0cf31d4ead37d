//! From a verified image to the words of the register bus.

use crate::layout::*;
use weftwire_image::{
    Comparison, Environment, Event, Operand, Operation, Operator, OtherPackets, PacketRef, Place, Row,
    TemplateTransport, VerifiedImage, WhenFull,
};

/// A write over the register bus.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Word {
    /// Table in the upper four bits, index in the others.
    pub address: u16,
    /// What is written.
    pub data: u64,
}

/// What the hardware lacks, or has too little of.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EncodeError {
    /// It has no means for this.
    #[error("the RTL lacks {what}{}", place(.line))]
    Lacks {
        /// What, by its name in the image.
        what: String,
        /// Source line, if the image has it.
        line: Option<u32>,
    },
    /// It has less room.
    #[error("the image has {count} {what}, the RTL has room for {limit}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// In the image.
        count: usize,
        /// In the hardware.
        limit: usize,
    },
}

fn place(line: &Option<u32>) -> String {
    line.map(|line| format!(" (line {line} of the source)")).unwrap_or_default()
}

/// Bytes of Ethernet, IPv4 and UDP headers.
const HEADERS: u64 = 42;
/// Bytes of the longest packet that is built.
const WORK_BYTES: u64 = 64;
const CONDITIONS: usize = 64;

/// The words that load an image.
///
/// # Errors
/// See [`EncodeError`].
pub fn encode(image: &VerifiedImage) -> Result<Vec<Word>, EncodeError> {
    let mut encoder = Encoder { image, words: Vec::new(), code: 0, line: None };
    encoder.sizes()?;
    encoder.flows()?;
    encoder.fields()?;
    encoder.templates()?;
    encoder.program()?;
    Ok(encoder.words)
}

struct Encoder<'a> {
    image: &'a VerifiedImage,
    words: Vec<Word>,
    /// Words of the program so far.
    code: usize,
    /// Where the source has what is being encoded.
    line: Option<u32>,
}

impl Encoder<'_> {
    fn lacks(&self, what: impl Into<String>) -> EncodeError {
        EncodeError::Lacks { what: what.into(), line: self.line }
    }

    fn write(&mut self, table: u16, index: usize, data: u64) {
        self.words.push(Word { address: (table << 12) | index as u16, data });
    }

    fn sizes(&self) -> Result<(), EncodeError> {
        let image = self.image;
        for (what, count, limit) in [
            ("flows", image.flow.max as usize, BUILT_FLOWS),
            ("states", image.states.len(), BUILT_STATES),
            ("registers", image.registers.len(), BUILT_REGISTERS),
            ("fields", image.fields.len(), BUILT_FIELDS),
            ("templates", image.templates.len(), BUILT_TEMPLATES),
        ] {
            if count > usize::from(limit) {
                return Err(EncodeError::TooMany { what, count, limit: limit.into() });
            }
        }
        if image.conditions.len() > CONDITIONS {
            return Err(EncodeError::TooMany { what: "conditions", count: image.conditions.len(), limit: CONDITIONS });
        }
        Ok(())
    }

    fn flows(&mut self) -> Result<(), EncodeError> {
        let image = self.image;
        let name = |&index: &u16| {
            let field = &image.fields[usize::from(index)];
            format!("{}.{}", field.format, field.field)
        };
        let names = |list: &[u16]| list.iter().map(name).collect::<Vec<String>>().join(", ");
        let flow = &image.flow;
        if names(&flow.source) != "network.source, transport.source_port"
            || names(&flow.destination) != "network.destination, transport.destination_port"
            || names(&flow.common) != "network.protocol"
            || !flow.symmetric
        {
            return Err(self.lacks("flow keys other than `five_tuple`"));
        }
        if flow.when_full != WhenFull::EvictOldest {
            return Err(self.lacks("a full flow table that does not give up the flow idle for longest"));
        }
        if flow.hold || image.states.iter().any(|state| state.expire.is_some()) {
            return Err(self.lacks("idle times that depend on the state"));
        }
        if !image.creation.is_empty() {
            return Err(self.lacks("conditions on packets that make instances"));
        }
        if image.other_packets != OtherPackets::Drop {
            return Err(self.lacks("`passed_packets`"));
        }
        for (index, register) in image.registers.iter().enumerate() {
            self.write(TABLE_INITIAL, index, register.initial as u64);
            self.write(TABLE_MASK, index, if register.kind.cut(-1) == 1 { 1 } else { register.kind.cut(-1) as u64 });
        }
        self.write(TABLE_LIMITS, 1, flow.expire as u64);
        self.write(TABLE_LIMITS, 2, flow.max.into());
        Ok(())
    }

    /// The one imported format's length in bytes: it stands behind UDP.
    fn fields(&mut self) -> Result<(), EncodeError> {
        let image = self.image;
        let mut payload = HEADERS;
        let imported: Vec<_> = image.formats.iter().filter(|format| format.place != Place::Builtin).collect();
        if imported.len() > 1 {
            return Err(EncodeError::TooMany { what: "imported formats", count: imported.len(), limit: 1 });
        }
        for format in &imported {
            if format.invariant_crc.is_some() {
                return Err(self.lacks("`invariant_crc`"));
            }
            match &format.place {
                Place::After { header, when: None } if header == "udp" => {}
                _ => return Err(self.lacks(format!("the format `{}`, which is not directly behind UDP", format.name))),
            }
            payload += u64::from(format.length / 8);
            if payload > WORK_BYTES {
                let limit = (WORK_BYTES - HEADERS) as usize;
                let count = format.length as usize / 8;
                return Err(EncodeError::TooMany { what: "bytes of an imported format", count, limit });
            }
        }
        self.write(TABLE_LIMITS, 0, payload);
        for (index, name) in image.fields.iter().enumerate() {
            let format = imported.iter().find(|format| format.name == name.format);
            let field = format.and_then(|format| format.fields.iter().find(|field| field.name == name.field));
            if let Some(field) = field {
                let offset = 8 * HEADERS + u64::from(field.offset);
                self.write(TABLE_FIELD, index, offset | payload << 16 | u64::from(field.width) << 24);
            }
        }
        Ok(())
    }

    /// A field that operands and operations may name.
    fn field(&self, index: u16) -> Result<u64, EncodeError> {
        let name = &self.image.fields[usize::from(index)];
        let format = self.image.formats.iter().find(|format| format.name == name.format);
        match format {
            Some(format) if format.place != Place::Builtin => Ok(index.into()),
            _ => Err(self.lacks(format!("the field `{}.{}` outside of flow keys", name.format, name.field))),
        }
    }

    fn templates(&mut self) -> Result<(), EncodeError> {
        let image = self.image;
        for (index, template) in image.templates.iter().enumerate() {
            if template.transport != TemplateTransport::Udp || template.payload != 0 {
                return Err(self.lacks(format!("templates like `{}`: of TCP, or with a payload", template.name)));
            }
            let mut bytes = [0_u8; WORK_BYTES as usize];
            bytes[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
            bytes[20..24].copy_from_slice(&[0x40, 0, 64, 17]);
            let mut length = HEADERS;
            for format in image.formats.iter().filter(|format| template.headers.contains(&format.name)) {
                length += u64::from(format.length / 8);
            }
            for &(field, value) in &template.presets {
                self.field(field)?;
                let name = &image.fields[usize::from(field)];
                let format = image.formats.iter().find(|format| format.name == name.format);
                let field = format.and_then(|format| format.fields.iter().find(|field| field.name == name.field));
                let Some(field) = field else { return Err(self.lacks(format!("presets of `{}`", template.name))) };
                for bit in 0..u32::from(field.width) {
                    let place = 8 * HEADERS as usize + (field.offset + u32::from(field.width) - 1 - bit) as usize;
                    let mask = 0x80 >> (place % 8);
                    bytes[place / 8] &= !mask;
                    bytes[place / 8] |= if value >> bit & 1 == 1 { mask } else { 0 };
                }
            }
            for (word, chunk) in bytes.as_chunks::<8>().0.iter().enumerate() {
                self.write(TABLE_TEMPLATE, 8 * index + word, u64::from_be_bytes(*chunk));
            }
            self.write(TABLE_TEMPLATE_LENGTH, index, length);
        }
        Ok(())
    }

    fn program(&mut self) -> Result<(), EncodeError> {
        let image = self.image;
        for row in &image.rows {
            self.line = (row.line != 0).then_some(row.line);
            if row.event != Event::Packet {
                return Err(self.lacks(format!("the event {:?}", row.event)));
            }
            if row.raise.is_some() {
                return Err(self.lacks("`internal_events`"));
            }
        }
        self.line = None;
        for preparation in &image.preparations {
            if preparation.event != Event::Packet {
                return Err(self.lacks(format!("the event {:?}", preparation.event)));
            }
        }
        for state in 0..image.states.len() {
            self.line = None;
            self.write(TABLE_ENTRY, state, self.code as u64);
            let rows: Vec<&Row> = image.rows.iter().filter(|row| usize::from(row.state) == state).collect();
            let preparations = image.preparations.iter().filter(|preparation| usize::from(preparation.state) == state);
            // A preparation has no line of its own: it belongs to the first row of its state.
            self.line = rows.first().map(|row| row.line).filter(|&line| line != 0);
            for operation in preparations.flat_map(|preparation| &preparation.operations) {
                self.operation(operation)?;
            }
            let mut used: Vec<u16> = rows.iter().flat_map(|row| row.when.iter().map(|&(index, _)| index)).collect();
            used.sort_unstable();
            used.dedup();
            for index in used {
                let condition = &image.conditions[usize::from(index)];
                let operator = comparison(condition.comparison);
                self.emit(OPCODE_CONDITION, operator, index.into(), &condition.left, &condition.right)?;
            }
            for row in rows {
                self.line = (row.line != 0).then_some(row.line);
                self.row(row)?;
            }
            self.end(0)?;
        }
        Ok(())
    }

    fn row(&mut self, row: &Row) -> Result<(), EncodeError> {
        let bits = |which: fn(bool) -> bool| {
            row.when.iter().filter(|(_, value)| which(*value)).fold(0_u64, |bits, (index, _)| bits | 1 << index)
        };
        let (mask, value) = (bits(|_| true), bits(|value| value));
        let behind = self.code + row.operations.len() + 2;
        self.emit_words(OPCODE_ROW, 0, behind, (OPERAND_CONSTANT, 0, mask), (OPERAND_CONSTANT, 0, value))?;
        for operation in &row.operations {
            self.operation(operation)?;
        }
        self.end(row.next.map_or(0, |next| usize::from(next) + 1))
    }

    fn end(&mut self, next: usize) -> Result<(), EncodeError> {
        self.emit_words(OPCODE_END, 0, next, (OPERAND_CONSTANT, 0, 0), (OPERAND_CONSTANT, 0, 0))
    }

    /// Every operation is one word.
    fn operation(&mut self, operation: &Operation) -> Result<(), EncodeError> {
        const NONE: Operand = Operand::Constant(0);
        match operation {
            Operation::Compute { operator: by, register, left, right } => {
                let operator = self.operator(*by)?;
                self.emit(OPCODE_COMPUTE, operator, (*register).into(), left, right)
            }
            Operation::SetField { packet: PacketRef::Work, field, value, .. } => {
                let field = self.field(*field)?;
                self.emit(OPCODE_SET_FIELD, 0, field as usize, &NONE, value)
            }
            Operation::Build { template, to: PacketRef::Work, options } if options.is_empty() => {
                self.emit(OPCODE_BUILD, 0, (*template).into(), &NONE, &NONE)
            }
            Operation::Send { packet: PacketRef::Work, port } => self.emit(OPCODE_SEND, 0, 0, &NONE, port),
            Operation::Deliver { packet: PacketRef::Current, offset, length } => {
                self.emit(OPCODE_DELIVER, 0, 0, offset, length)
            }
            Operation::Notify { notice, value } => self.emit(OPCODE_NOTIFY, 0, (*notice).into(), &NONE, value),
            Operation::SetField { packet, .. }
            | Operation::Build { to: packet, .. }
            | Operation::Send { packet, .. }
            | Operation::Deliver { packet, .. } => {
                Err(self.lacks(format!("the operation `{}` on {packet:?}", operation.name())))
            }
            _ => Err(self.lacks(format!("the operation `{}`", operation.name()))),
        }
    }

    fn emit(&mut self, code: u8, by: u8, target: usize, left: &Operand, right: &Operand) -> Result<(), EncodeError> {
        let (left, right) = (self.operand(left)?, self.operand(right)?);
        self.emit_words(code, by, target, left, right)
    }

    fn emit_words(
        &mut self,
        opcode: u8,
        operator: u8,
        target: usize,
        left: (u8, u64, u64),
        right: (u8, u64, u64),
    ) -> Result<(), EncodeError> {
        let index = self.code;
        // The end of a row that does not match may lie one word behind the last.
        if index + 1 >= usize::from(BUILT_WORDS) || target >= usize::from(u16::MAX) {
            return Err(EncodeError::TooMany { what: "words of program", count: index + 2, limit: BUILT_WORDS.into() });
        }
        let word = u64::from(opcode)
            | u64::from(operator) << 8
            | (target as u64) << 16
            | u64::from(left.0) << 32
            | u64::from(right.0) << 36
            | left.1 << 40
            | right.1 << 50;
        self.write(TABLE_OPERATION, index, word);
        self.write(TABLE_LEFT, index, left.2);
        self.write(TABLE_RIGHT, index, right.2);
        self.code += 1;
        Ok(())
    }

    /// Kind, index, constant.
    fn operand(&self, operand: &Operand) -> Result<(u8, u64, u64), EncodeError> {
        Ok(match *operand {
            Operand::Register(index) => (OPERAND_REGISTER, index.into(), 0),
            Operand::Constant(value) => (OPERAND_CONSTANT, 0, value as u64),
            Operand::Field { packet: PacketRef::Current, field } => (OPERAND_FIELD_CURRENT, self.field(field)?, 0),
            Operand::Field { packet: PacketRef::Work, field } => (OPERAND_FIELD_WORK, self.field(field)?, 0),
            Operand::Present { packet: PacketRef::Current, field } => (OPERAND_PRESENT_CURRENT, self.field(field)?, 0),
            Operand::Present { packet: PacketRef::Work, field } => (OPERAND_PRESENT_WORK, self.field(field)?, 0),
            Operand::Event(index) => (OPERAND_EVENT, u64::from(index.min(3)), 0),
            Operand::Environment(Environment::Now) => (OPERAND_NOW, 0, 0),
            other => return Err(self.lacks(format!("the operand {other:?}"))),
        })
    }

    fn operator(&self, operator: Operator) -> Result<u8, EncodeError> {
        Ok(match operator {
            Operator::Add => ALU_ADD,
            Operator::Sub => ALU_SUB,
            Operator::Min => ALU_MIN,
            Operator::Max => ALU_MAX,
            Operator::MinUnsigned => ALU_MIN_UNSIGNED,
            Operator::MaxUnsigned => ALU_MAX_UNSIGNED,
            Operator::SeqMin => ALU_SEQ_MIN,
            Operator::SeqMax => ALU_SEQ_MAX,
            Operator::SeqDistance => ALU_SEQ_DISTANCE,
            Operator::And => ALU_AND,
            Operator::Or => ALU_OR,
            Operator::Xor => ALU_XOR,
            Operator::Shl => ALU_SHL,
            Operator::Shr => ALU_SHR,
            Operator::ShrSigned => ALU_SHR_SIGNED,
            Operator::Eq => ALU_EQ,
            Operator::Ne => ALU_NE,
            Operator::Lt => ALU_LT,
            Operator::Le => ALU_LE,
            Operator::LtUnsigned => ALU_LT_UNSIGNED,
            Operator::LeUnsigned => ALU_LE_UNSIGNED,
            Operator::SeqLt => ALU_SEQ_LT,
            Operator::SeqLe => ALU_SEQ_LE,
            Operator::Mul
            | Operator::Div
            | Operator::DivUnsigned
            | Operator::Rem
            | Operator::RemUnsigned
            | Operator::Hash
            | Operator::Random => return Err(self.lacks(format!("the operator {operator:?}"))),
        })
    }
}

fn comparison(comparison: Comparison) -> u8 {
    match comparison {
        Comparison::Eq => ALU_EQ,
        Comparison::Ne => ALU_NE,
        Comparison::Lt => ALU_LT,
        Comparison::Le => ALU_LE,
        Comparison::Gt => ALU_GT,
        Comparison::Ge => ALU_GE,
        Comparison::LtUnsigned => ALU_LT_UNSIGNED,
        Comparison::LeUnsigned => ALU_LE_UNSIGNED,
        Comparison::GtUnsigned => ALU_GT_UNSIGNED,
        Comparison::GeUnsigned => ALU_GE_UNSIGNED,
        Comparison::SeqLt => ALU_SEQ_LT,
        Comparison::SeqLe => ALU_SEQ_LE,
        Comparison::SeqGt => ALU_SEQ_GT,
        Comparison::SeqGe => ALU_SEQ_GE,
    }
}
