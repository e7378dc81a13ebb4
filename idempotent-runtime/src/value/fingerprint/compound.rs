//! The values that hold values: sequences as they come, maps and structs in the order of their
//! encoded entries.

use serde::Serialize;
use serde::ser;

use super::encode::{Encoder, tag};
use super::entries::Entries;
use super::failure::EncodeFailure;

pub(super) struct Sequence<'a>(pub(super) &'a mut Encoder);

pub(super) struct Map<'a> {
    pub(super) encoder: &'a mut Encoder,
    pub(super) entries: Entries,
    /// The start of the entry whose key has been written and whose value has not.
    pub(super) entry: usize,
    /// Whether it is no struct, so that what it holds has no names.
    pub(super) hides_fields: bool,
}

impl Map<'_> {
    fn close(mut self) -> Result<(), EncodeFailure> {
        self.entries.sort(&mut self.encoder.buffer);
        self.encoder.buffer.push(tag::MAP_END);
        if self.hides_fields {
            self.encoder.fields.go_outside();
        }
        self.encoder.ascend();
        Ok(())
    }
}

/// All four are written alike: serde tells apart what a fingerprint does not.
macro_rules! sequences {
    ($($form:ident: $add:ident),*) => {
        $(impl ser::$form for Sequence<'_> {
            type Ok = ();
            type Error = EncodeFailure;

            fn $add<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeFailure> {
                self.0.value(value)
            }

            fn end(self) -> Result<(), EncodeFailure> {
                self.0.buffer.push(tag::SEQUENCE_END);
                self.0.fields.go_outside();
                self.0.ascend();
                Ok(())
            }
        })*
    };
}

sequences! {
    SerializeSeq: serialize_element,
    SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field
}

impl ser::SerializeMap for Map<'_> {
    type Ok = ();
    type Error = EncodeFailure;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), EncodeFailure> {
        self.entry = self.encoder.buffer.len();
        key.serialize(&mut *self.encoder)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeFailure> {
        let start = self.encoder.buffer.len();
        self.encoder.value(value)?;
        self.entries
            .add(&mut self.encoder.buffer, self.entry, start);
        Ok(())
    }

    fn end(self) -> Result<(), EncodeFailure> {
        self.close()
    }
}

impl ser::SerializeStruct for Map<'_> {
    type Ok = ();
    type Error = EncodeFailure;

    #[inline]
    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), EncodeFailure> {
        let had_path = self.encoder.fields.enter(name);
        self.entries.field(self.encoder, name, value)?;
        self.encoder.fields.leave(had_path);
        Ok(())
    }

    fn end(self) -> Result<(), EncodeFailure> {
        self.close()
    }
}

impl ser::SerializeStructVariant for Map<'_> {
    type Ok = ();
    type Error = EncodeFailure;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), EncodeFailure> {
        self.entries.field(self.encoder, name, value)
    }

    fn end(self) -> Result<(), EncodeFailure> {
        self.close()
    }
}
