//! The canonical encoding, as a serde serializer that appends to one buffer.

use std::any::type_name;

use serde::Serialize;
use serde::ser::{self, Serializer};

use super::compound::{Map, Sequence};
use super::entries::Entries;
use super::failure::EncodeFailure;
use super::fields::Fields;
use crate::framing::{write_framed, write_framed_display, write_number, write_wide_number};

/// How many values may stand inside one another.
pub(super) const DEEPEST: usize = 128;

/// The bytes that values start with. They are printable, so that a dump of an encoding can be read.
pub(super) mod tag {
    pub(crate) const NONE: u8 = b'n';
    pub(crate) const SOME: u8 = b's';
    pub(crate) const UNIT: u8 = b'u';
    pub(crate) const FALSE: u8 = b'f';
    pub(crate) const TRUE: u8 = b't';
    pub(crate) const NATURAL: u8 = b'+';
    pub(crate) const NEGATIVE: u8 = b'-';
    pub(crate) const FLOAT: u8 = b'.';
    pub(crate) const TEXT: u8 = b'"';
    pub(crate) const BYTES: u8 = b'b';
    pub(crate) const VARIANT: u8 = b'@';
    pub(crate) const SEQUENCE: u8 = b'[';
    pub(crate) const SEQUENCE_END: u8 = b']';
    pub(crate) const MAP: u8 = b'{';
    pub(crate) const MAP_END: u8 = b'}';
}

/// Every NaN is this one.
const NAN: u64 = 0x7ff8_0000_0000_0000;

/// From here up a 64-bit integer could not hold the number of a float, and likewise below its
/// negative half.
const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;

/// Appends values to `buffer`.
pub(super) struct Encoder {
    pub(super) buffer: Vec<u8>,
    pub(super) fields: Fields,
    depth: usize,
    /// Whether the order of elements counts, so that a set without an order is refused.
    is_ordered: bool,
}

impl Encoder {
    pub(super) fn new(buffer: Vec<u8>) -> Self {
        Self {
            buffer,
            fields: Fields::default(),
            depth: 0,
            is_ordered: true,
        }
    }

    /// The same where neither the order of elements counts nor the names of fields.
    pub(super) fn without_order(buffer: Vec<u8>) -> Self {
        Self {
            is_ordered: false,
            fields: Fields::unknown(),
            ..Self::new(buffer)
        }
    }

    /// Appends a value, wherever it stands. serde shows a set as a list, so only its type tells
    /// that its order is another one in every copy.
    #[inline]
    pub(super) fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeFailure> {
        if is_hash_set::<T>() && self.is_ordered {
            return Err(EncodeFailure::Unordered);
        }
        value.serialize(self)
    }

    #[inline]
    pub(super) fn text(&mut self, text: &str) {
        self.buffer.push(tag::TEXT);
        write_framed(&mut self.buffer, text.as_bytes());
    }

    #[inline]
    fn descend(&mut self) -> Result<(), EncodeFailure> {
        self.depth += 1;
        if self.depth > DEEPEST {
            Err(EncodeFailure::TooDeep)
        } else {
            Ok(())
        }
    }

    #[inline]
    pub(super) fn ascend(&mut self) {
        self.depth -= 1;
    }

    fn one_below<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeFailure> {
        self.descend()?;
        self.value(value)?;
        self.ascend();
        Ok(())
    }

    fn variant(&mut self, name: &str) {
        self.buffer.push(tag::VARIANT);
        write_framed(&mut self.buffer, name.as_bytes());
    }

    fn sequence(&mut self) -> Result<Sequence<'_>, EncodeFailure> {
        self.descend()?;
        self.fields.go_inside();
        self.buffer.push(tag::SEQUENCE);
        Ok(Sequence(self))
    }

    fn map(&mut self, hides_fields: bool) -> Result<Map<'_>, EncodeFailure> {
        self.descend()?;
        self.buffer.push(tag::MAP);
        Ok(Map {
            encoder: self,
            entries: Entries::new(),
            entry: 0,
            hides_fields,
        })
    }
}

/// Tells whether a type is a `HashSet`, or a pointer to one.
#[inline]
fn is_hash_set<T: ?Sized>() -> bool {
    const POINTERS: [&str; 8] = [
        "&",
        "mut ",
        "alloc::borrow::Cow<",
        "std::sync::poison::mutex::Mutex<",
        "std::sync::poison::rwlock::RwLock<",
        "alloc::boxed::Box<",
        "alloc::rc::Rc<",
        "alloc::sync::Arc<",
    ];
    let mut name = type_name::<T>();
    if !name.contains("::set::HashSet<") {
        return false;
    }
    while let Some(inner) = POINTERS.iter().find_map(|it| name.strip_prefix(it)) {
        name = inner;
    }
    name.starts_with("std::collections::hash::set::HashSet<")
        || name.starts_with("hashbrown::set::HashSet<")
}

/// A small number is encoded as the large one that equals it.
macro_rules! small_numbers {
    ($($small:ident: $serialize:ident => $large:ident),*) => {
        $(fn $serialize(self, value: $small) -> Result<(), EncodeFailure> {
            self.$large(value.into())
        })*
    };
}

impl<'a> Serializer for &'a mut Encoder {
    type Ok = ();
    type Error = EncodeFailure;
    type SerializeSeq = Sequence<'a>;
    type SerializeTuple = Sequence<'a>;
    type SerializeTupleStruct = Sequence<'a>;
    type SerializeTupleVariant = Sequence<'a>;
    type SerializeMap = Map<'a>;
    type SerializeStruct = Map<'a>;
    type SerializeStructVariant = Map<'a>;

    fn serialize_bool(self, value: bool) -> Result<(), EncodeFailure> {
        self.buffer.push(if value { tag::TRUE } else { tag::FALSE });
        Ok(())
    }

    small_numbers! {
        i8: serialize_i8 => serialize_i64,
        i16: serialize_i16 => serialize_i64,
        i32: serialize_i32 => serialize_i64,
        u8: serialize_u8 => serialize_u64,
        u16: serialize_u16 => serialize_u64,
        u32: serialize_u32 => serialize_u64,
        f32: serialize_f32 => serialize_f64
    }

    #[inline]
    fn serialize_i64(self, value: i64) -> Result<(), EncodeFailure> {
        if value < 0 {
            // The complement of a negative number is how far it lies below −1.
            self.buffer.push(tag::NEGATIVE);
            write_number(&mut self.buffer, !value as u64);
            return Ok(());
        }
        self.serialize_u64(value as u64)
    }

    fn serialize_i128(self, value: i128) -> Result<(), EncodeFailure> {
        if value < 0 {
            self.buffer.push(tag::NEGATIVE);
            write_wide_number(&mut self.buffer, !value as u128);
            return Ok(());
        }
        self.serialize_u128(value as u128)
    }

    #[inline]
    fn serialize_u64(self, value: u64) -> Result<(), EncodeFailure> {
        self.buffer.push(tag::NATURAL);
        write_number(&mut self.buffer, value);
        Ok(())
    }

    fn serialize_u128(self, value: u128) -> Result<(), EncodeFailure> {
        self.buffer.push(tag::NATURAL);
        write_wide_number(&mut self.buffer, value);
        Ok(())
    }

    fn serialize_f64(self, value: f64) -> Result<(), EncodeFailure> {
        if value.trunc() == value {
            // A whole number is the integer it equals, so that −0.0 is 0 and JSON's 1.0 is its 1.
            if (0.0..TWO_TO_64).contains(&value) {
                return self.serialize_u64(value as u64);
            }
            if (-TWO_TO_64 / 2.0..0.0).contains(&value) {
                return self.serialize_i64(value as i64);
            }
        }
        let bits = if value.is_nan() { NAN } else { value.to_bits() };
        self.buffer.push(tag::FLOAT);
        self.buffer.extend_from_slice(&bits.to_be_bytes());
        Ok(())
    }

    fn serialize_char(self, value: char) -> Result<(), EncodeFailure> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    #[inline]
    fn serialize_str(self, value: &str) -> Result<(), EncodeFailure> {
        self.text(value);
        Ok(())
    }

    fn collect_str<T: std::fmt::Display + ?Sized>(self, value: &T) -> Result<(), EncodeFailure> {
        self.buffer.push(tag::TEXT);
        match write_framed_display(&mut self.buffer, value, usize::MAX) {
            Ok(_) => Ok(()),
            Err(_) => Err(ser::Error::custom("a `Display` implementation failed")),
        }
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), EncodeFailure> {
        self.buffer.push(tag::BYTES);
        write_framed(&mut self.buffer, value);
        Ok(())
    }

    fn serialize_none(self) -> Result<(), EncodeFailure> {
        self.buffer.push(tag::NONE);
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), EncodeFailure> {
        let start = self.buffer.len();
        self.one_below(value)?;
        // `Some(x)` is `x`, except where that could be taken for a `None` that stands further out.
        if matches!(self.buffer.get(start), Some(&(tag::NONE | tag::SOME))) {
            self.buffer.insert(start, tag::SOME);
        }
        Ok(())
    }

    fn serialize_unit(self) -> Result<(), EncodeFailure> {
        self.buffer.push(tag::UNIT);
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), EncodeFailure> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), EncodeFailure> {
        self.variant(variant);
        self.serialize_unit()
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), EncodeFailure> {
        self.one_below(value)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), EncodeFailure> {
        self.variant(variant);
        self.fields.go_inside();
        self.one_below(value)?;
        self.fields.go_outside();
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Sequence<'a>, EncodeFailure> {
        self.sequence()
    }

    fn serialize_tuple(self, _: usize) -> Result<Sequence<'a>, EncodeFailure> {
        self.sequence()
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        _: usize,
    ) -> Result<Sequence<'a>, EncodeFailure> {
        self.sequence()
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Sequence<'a>, EncodeFailure> {
        self.variant(variant);
        self.sequence()
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Map<'a>, EncodeFailure> {
        self.fields.go_inside();
        self.map(true)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Map<'a>, EncodeFailure> {
        self.map(false)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Map<'a>, EncodeFailure> {
        self.variant(variant);
        self.fields.go_inside();
        self.map(true)
    }
}
