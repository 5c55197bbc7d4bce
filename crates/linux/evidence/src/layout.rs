//! Offsets of the fields of an event, read from the kernel's `format` files.

/// A field of fixed size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FieldPlace {
    offset: usize,
    size: usize,
}

impl FieldPlace {
    pub(crate) fn bytes<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        record.get(self.offset..self.offset + self.size)
    }

    /// Field as a number without sign.
    pub(crate) fn number(&self, record: &[u8]) -> Option<u64> {
        let bytes = self.bytes(record).filter(|bytes| bytes.len() <= 8)?;
        Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    /// Field as a number of 32 bits with sign.
    pub(crate) fn signed(&self, record: &[u8]) -> Option<i32> {
        self.number(record).map(|number| number as u32 as i32)
    }
}

/// The layout of one kind of event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventLayout {
    pub id: u16,
    fields: Vec<(String, FieldPlace)>,
}

impl EventLayout {
    /// Reads a `format` file: lines such as `field:__u16 sport; offset:64; size:2; signed:0;`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"))?.trim().parse().ok()?;
        let mut fields = Vec::new();
        for line in text.lines().filter_map(|line| line.trim().strip_prefix("field:")) {
            let mut parts = line.split(';').map(str::trim);
            let declaration = parts.next()?;
            let mut number = |name: &str| parts.next()?.strip_prefix(name)?.parse::<usize>().ok();
            let place = FieldPlace { offset: number("offset:")?, size: number("size:")? };
            let name = declaration.rsplit([' ', '*']).next()?;
            fields.push((name.split('[').next()?.to_owned(), place));
        }
        Some(Self { id, fields })
    }

    pub(crate) fn field(&self, name: &str) -> Option<FieldPlace> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, place)| *place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: &str = "name: tcp_probe\nID: 2273\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
                          \tfield:__u8 saddr[28];\toffset:8;\tsize:28;\tsigned:0;\n\
                          \tfield:const void * skaddr;\toffset:36;\tsize:8;\tsigned:0;\n\
                          \tfield:int ret;\toffset:44;\tsize:4;\tsigned:1;\n\nprint fmt: \"field:x; %p\", REC->skaddr\n";

    #[test]
    fn fields_are_found_by_name_whatever_their_type() {
        let layout = EventLayout::parse(FORMAT).unwrap();
        assert_eq!(layout.id, 2273);
        assert_eq!(layout.field("saddr"), Some(FieldPlace { offset: 8, size: 28 }));
        assert_eq!(layout.field("nothing"), None);
        let mut record = vec![0; 48];
        record[36..48].copy_from_slice(&[1, 2, 0, 0, 0, 0, 0, 0x80, 0xfe, 0xff, 0xff, 0xff]);
        assert_eq!(layout.field("skaddr").unwrap().number(&record), Some(0x8000_0000_0000_0201));
        assert_eq!(layout.field("ret").unwrap().signed(&record), Some(-2));
        assert_eq!(layout.field("ret").unwrap().signed(&record[..40]), None, "a record that is cut short");
    }

    #[test]
    fn a_text_that_is_no_format_is_refused() {
        for text in ["", "ID: many", "ID: 5\n\tfield:int x;\toffset:a;\tsize:4;"] {
            assert_eq!(EventLayout::parse(text), None, "{text}");
        }
    }
}
