//! Headers that need no declaration.

use super::*;

impl Reader<'_> {
    /// Adds a built-in header that the file does not declare, without fields for filters.
    pub(super) fn add_builtin(&mut self, name: &str) -> Option<HeaderId> {
        if let Some(id) = self.formats.header_named(name) {
            return Some(id);
        }
        let format = builtin_formats().iter().find(|format| format.name == name)?;
        let id = HeaderId(u16::try_from(self.formats.headers.len()).ok()?);
        self.formats.header_names.insert(name.to_owned(), id);
        self.formats.headers.push(MessageHeader {
            name: name.to_owned(),
            length: format.length,
            place: Place::Nowhere,
            batch: None,
        });
        let in_header = format.fields.iter().filter(|field| field.option.is_none());
        self.headers.push(Draft {
            fields: in_header.map(|field| (field.name.clone(), field.offset, field.width)).collect(),
            packet_name: Some(name.to_owned()),
            import: None,
        });
        Some(id)
    }

    /// Adds the built-in headers that the file does not declare. The pseudo-headers are no bytes of packets.
    pub(super) fn builtins(&mut self, declared: usize) {
        let own: BTreeSet<String> = self.formats.bare_names.keys().cloned().collect();
        for format in builtin_formats() {
            let name = Some(format.name.as_str());
            let mut of_file = self.headers[..declared].iter().filter(|draft| draft.import.is_none());
            if matches!(name, Some("network" | "transport"))
                || of_file.any(|draft| draft.packet_name.as_deref() == name)
            {
                continue;
            }
            let Some(id) = self.add_builtin(&format.name) else { continue };
            for (name, offset, width) in self.headers[usize::from(id.0)].fields.clone() {
                // Such as `udp.word_1` lies behind its header, which may be there without it; filters know either all
                // of a header or nothing. A header of the file can say what is there.
                if offset + u32::from(width) > format.length {
                    continue;
                }
                let before = self.formats.fields.len();
                self.add_field(id, &name, offset, width, Form::Number { decimals: 0 }, None);
                // The bare names of the file's own fields are theirs alone.
                if self.formats.fields.len() > before && own.contains(&name) {
                    self.formats.bare_names.entry(name).or_default().pop();
                }
            }
        }
    }
}
