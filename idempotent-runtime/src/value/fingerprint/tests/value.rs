//! Any value at all: random ones, ones that differ a little, and a second opinion on which are
//! equal.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::ser::{
    SerializeMap as _, SerializeSeq as _, SerializeStruct as _, SerializeStructVariant as _,
};
use serde::{Serialize, Serializer};

pub(super) const NAMES: [&str; 12] = [
    "a", "b", "c", "ab", "bc", "id", "note", "amount", "z", "zz", "currency", "d",
];

#[derive(Debug, Clone)]
pub(super) enum Value {
    None,
    Some(Box<Self>),
    Unit,
    Bool(bool),
    Narrow(i8),
    Signed(i64),
    Wide(i128),
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
    Sequence(Vec<Self>),
    Map(Vec<(Self, Self)>),
    Struct(Vec<(usize, Self)>),
    UnitVariant(usize),
    NewtypeVariant(usize, Box<Self>),
    StructVariant(usize, Vec<(usize, Self)>),
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => serializer.serialize_none(),
            Self::Some(value) => serializer.serialize_some(value),
            Self::Unit => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Narrow(value) => serializer.serialize_i8(*value),
            Self::Signed(value) => serializer.serialize_i64(*value),
            Self::Wide(value) => serializer.serialize_i128(*value),
            Self::Float(value) => serializer.serialize_f64(*value),
            Self::Text(value) => serializer.serialize_str(value),
            Self::Bytes(value) => serializer.serialize_bytes(value),
            Self::Sequence(values) => {
                let mut sequence = serializer.serialize_seq(None)?;
                values
                    .iter()
                    .try_for_each(|value| sequence.serialize_element(value))?;
                sequence.end()
            }
            Self::Map(entries) => {
                let mut map = serializer.serialize_map(None)?;
                entries
                    .iter()
                    .try_for_each(|(key, value)| map.serialize_entry(key, value))?;
                map.end()
            }
            Self::Struct(fields) => {
                let mut structure = serializer.serialize_struct("S", fields.len())?;
                fields
                    .iter()
                    .try_for_each(|(name, value)| structure.serialize_field(NAMES[*name], value))?;
                structure.end()
            }
            Self::UnitVariant(name) => serializer.serialize_unit_variant("E", 0, NAMES[*name]),
            Self::NewtypeVariant(name, value) => {
                serializer.serialize_newtype_variant("E", 1, NAMES[*name], value)
            }
            Self::StructVariant(name, fields) => {
                let mut variant =
                    serializer.serialize_struct_variant("E", 2, NAMES[*name], fields.len())?;
                fields
                    .iter()
                    .try_for_each(|(name, value)| variant.serialize_field(NAMES[*name], value))?;
                variant.end()
            }
        }
    }
}

/// The meaning of a value, said without the encoding: equal meanings, and only they, share a
/// fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Meaning {
    None,
    SomeNone(Box<Self>),
    Unit,
    Bool(bool),
    Integer(i128),
    Float(u64),
    Text(String),
    Bytes(Vec<u8>),
    Sequence(Vec<Self>),
    Map(BTreeMap<Self, Self>),
    Variant(usize, Box<Self>),
}

impl Value {
    pub(super) fn meaning(&self) -> Meaning {
        match self {
            Self::None => Meaning::None,
            Self::Some(value) => match value.meaning() {
                inner @ (Meaning::None | Meaning::SomeNone(_)) => {
                    Meaning::SomeNone(Box::new(inner))
                }
                inner => inner,
            },
            Self::Unit => Meaning::Unit,
            Self::Bool(value) => Meaning::Bool(*value),
            Self::Narrow(value) => Meaning::Integer((*value).into()),
            Self::Signed(value) => Meaning::Integer((*value).into()),
            Self::Wide(value) => Meaning::Integer(*value),
            Self::Float(value) if value.is_nan() => Meaning::Float(f64::NAN.to_bits()),
            Self::Float(value) if value.fract() == 0.0 && value.abs() < 1e18 => {
                Meaning::Integer(*value as i128)
            }
            Self::Float(value) => Meaning::Float(value.to_bits()),
            Self::Text(value) => Meaning::Text(value.clone()),
            Self::Bytes(value) => Meaning::Bytes(value.clone()),
            Self::Sequence(values) => Meaning::Sequence(values.iter().map(Self::meaning).collect()),
            Self::Map(entries) => Meaning::Map(
                entries
                    .iter()
                    .map(|(key, value)| (key.meaning(), value.meaning()))
                    .collect(),
            ),
            Self::Struct(fields) => structure(fields),
            Self::UnitVariant(name) => Meaning::Variant(*name, Box::new(Meaning::Unit)),
            Self::NewtypeVariant(name, value) => Meaning::Variant(*name, Box::new(value.meaning())),
            Self::StructVariant(name, fields) => {
                Meaning::Variant(*name, Box::new(structure(fields)))
            }
        }
    }

    /// The same value with one thing changed, or one thing said in another way.
    pub(super) fn tweaked(&self, chance: &mut u64) -> Self {
        let changed = match self {
            Self::Some(value) if dice(chance, 3) > 0 => Self::Some(Box::new(value.tweaked(chance))),
            Self::Some(value) => (**value).clone(),
            Self::Bool(value) => Self::Bool(!value),
            Self::Narrow(value) if dice(chance, 2) > 0 => Self::Signed((*value).into()),
            Self::Signed(value) if dice(chance, 2) > 0 => Self::Wide((*value).into()),
            Self::Wide(value) if dice(chance, 2) > 0 => Self::Wide(value ^ 1 << dice(chance, 126)),
            Self::Wide(value) => Self::Text(value.to_string()),
            Self::Float(value) => {
                Self::Float(f64::from_bits(value.to_bits() ^ 1 << dice(chance, 64)))
            }
            Self::Text(value) if dice(chance, 2) > 0 => Self::Bytes(value.clone().into_bytes()),
            Self::Text(value) => Self::Text(format!("{value}a")),
            Self::Bytes(value) => Self::Sequence(
                value
                    .iter()
                    .map(|byte| Self::Wide((*byte).into()))
                    .collect(),
            ),
            Self::Sequence(values) if values.is_empty() => Self::Map(Vec::new()),
            Self::Sequence(values) => {
                let mut values = values.clone();
                let at = dice(chance, values.len());
                match dice(chance, 4) {
                    0 => drop(values.remove(at)),
                    1 => values[at] = Self::Sequence(vec![values[at].clone()]),
                    2 => values.swap(0, at),
                    _ => values[at] = values[at].tweaked(chance),
                }
                Self::Sequence(values)
            }
            Self::Map(entries) if entries.is_empty() => Self::Struct(Vec::new()),
            Self::Map(entries) => {
                let mut entries = entries.clone();
                let at = dice(chance, entries.len());
                match dice(chance, 3) {
                    0 => drop(entries.remove(at)),
                    1 => entries.swap(0, at),
                    _ => entries[at].1 = entries[at].1.tweaked(chance),
                }
                Self::Map(entries)
            }
            Self::Struct(fields) => Self::Struct(tweaked_fields(fields, chance)),
            Self::UnitVariant(name) => Self::Text(NAMES[*name].to_owned()),
            Self::NewtypeVariant(name, value) => {
                Self::NewtypeVariant(*name, Box::new(value.tweaked(chance)))
            }
            Self::StructVariant(name, fields) if dice(chance, 2) > 0 => {
                Self::NewtypeVariant(*name, Box::new(Self::Struct(fields.clone())))
            }
            Self::StructVariant(name, fields) => {
                Self::StructVariant(*name, tweaked_fields(fields, chance))
            }
            Self::None | Self::Unit | Self::Narrow(_) | Self::Signed(_) => {
                Self::Some(Box::new(self.clone()))
            }
        };
        if dice(chance, 8) == 0 {
            Self::Some(Box::new(changed))
        } else {
            changed
        }
    }

    /// The same value with every map and struct in another order.
    pub(super) fn reversed(&self) -> Self {
        let fields = |fields: &[(usize, Self)]| {
            fields
                .iter()
                .rev()
                .map(|(name, value)| (*name, value.reversed()))
                .collect()
        };
        match self {
            Self::Some(value) => Self::Some(Box::new(value.reversed())),
            Self::Sequence(values) => Self::Sequence(values.iter().map(Self::reversed).collect()),
            Self::Map(entries) => Self::Map(
                entries
                    .iter()
                    .rev()
                    .map(|(key, value)| (key.reversed(), value.reversed()))
                    .collect(),
            ),
            Self::Struct(all) => Self::Struct(fields(all)),
            Self::NewtypeVariant(name, value) => {
                Self::NewtypeVariant(*name, Box::new(value.reversed()))
            }
            Self::StructVariant(name, all) => Self::StructVariant(*name, fields(all)),
            other => other.clone(),
        }
    }
}

fn structure(fields: &[(usize, Value)]) -> Meaning {
    let present = fields
        .iter()
        .map(|(name, value)| (Meaning::Text(NAMES[*name].into()), value.meaning()));
    Meaning::Map(
        present
            .filter(|(_, value)| *value != Meaning::None)
            .collect(),
    )
}

fn tweaked_fields(fields: &[(usize, Value)], chance: &mut u64) -> Vec<(usize, Value)> {
    let mut fields = fields.to_vec();
    if fields.is_empty() {
        return vec![(dice(chance, NAMES.len()), Value::None)];
    }
    let at = dice(chance, fields.len());
    match dice(chance, 3) {
        0 => fields[at].1 = Value::None,
        1 => fields.swap(0, at),
        _ => fields[at].1 = fields[at].1.tweaked(chance),
    }
    fields
}

/// A number below `sides`.
fn dice(chance: &mut u64, sides: usize) -> usize {
    *chance = chance
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*chance >> 33) as usize % sides
}

fn without_duplicates<K, V>(entries: Vec<(K, V)>, same: impl Fn(&K, &K) -> bool) -> Vec<(K, V)> {
    let mut kept: Vec<(K, V)> = Vec::new();
    for (key, value) in entries {
        if !kept.iter().any(|(other, _)| same(other, &key)) {
            kept.push((key, value));
        }
    }
    kept
}

/// Small on purpose: the alphabets are short, so that equal and nearly equal values are frequent.
pub(super) fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::None),
        Just(Value::Unit),
        any::<bool>().prop_map(Value::Bool),
        (-3_i8..4).prop_map(Value::Narrow),
        prop_oneof![-3_i64..4, any::<i64>()].prop_map(Value::Signed),
        prop_oneof![-3_i128..4, any::<i128>()].prop_map(Value::Wide),
        prop_oneof![
            Just(-0.0),
            Just(1.0),
            Just(0.5),
            Just(f64::NAN),
            any::<f64>()
        ]
        .prop_map(Value::Float),
        "[abu+\"\\[\\]{}]{0,3}".prop_map(Value::Text),
        proptest::collection::vec(prop_oneof![Just(b'a'), Just(b']'), any::<u8>()], 0..3)
            .prop_map(Value::Bytes),
        (0..NAMES.len()).prop_map(Value::UnitVariant),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        let fields = proptest::collection::vec((0..NAMES.len(), inner.clone()), 0..12)
            .prop_map(|fields| without_duplicates(fields, |one, other| one == other));
        prop_oneof![
            inner.clone().prop_map(|value| Value::Some(Box::new(value))),
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Sequence),
            proptest::collection::vec((inner.clone(), inner.clone()), 0..12).prop_map(|entries| {
                Value::Map(without_duplicates(entries, |one, other| {
                    one.meaning() == other.meaning()
                }))
            }),
            fields.clone().prop_map(Value::Struct),
            (0..NAMES.len(), inner)
                .prop_map(|(name, value)| Value::NewtypeVariant(name, Box::new(value))),
            (0..NAMES.len(), fields).prop_map(|(name, fields)| Value::StructVariant(name, fields)),
        ]
    })
}
