//! A question as a JSON schema: what the command line and the types in Python are made of.

use std::cell::Cell;
use std::fmt;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::{self, DeserializeOwned, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Value, json};

/// The schema of a question. Its properties are sorted, so `order` has the fields as they are declared.
pub fn declared<T: DeserializeOwned + JsonSchema>() -> Value {
    let mut generator = SchemaGenerator::new(SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
    }));
    let mut schema = Value::from(T::json_schema(&mut generator));
    schema["order"] = json!(fields::<T>());
    if schema["properties"].is_null() {
        schema["properties"] = json!({});
    }
    schema
}

/// The fields of a type in the order of its declaration, which serde tells to who reads it.
fn fields<T: DeserializeOwned>() -> &'static [&'static str] {
    let found = Cell::new(&[][..]);
    // It reads nothing, and so there is always an error.
    let _ = T::deserialize(Listener(&found));
    found.get()
}

struct Listener<'a>(&'a Cell<&'static [&'static str]>);

#[derive(Debug)]
struct Heard;

impl fmt::Display for Heard {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        to.write_str("only listens")
    }
}

impl std::error::Error for Heard {}

impl de::Error for Heard {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Heard
    }
}

impl<'de> de::Deserializer<'de> for Listener<'_> {
    type Error = Heard;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Heard> {
        Err(Heard)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Heard> {
        self.0.set(fields);
        Err(Heard)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}
