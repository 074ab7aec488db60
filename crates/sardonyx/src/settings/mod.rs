//! Parameters as typed values. A [`Key`] has a parameter's name, the values that it takes, its meaning and, if a layer
//! of the controller declares it, its default. [`Settings`] hold the values by key. Left out: reading and writing them,
//! which `config` does.

mod kinds;
mod pressure;

use std::collections::BTreeMap;
use std::marker::PhantomData;

use smallvec::{SmallVec, smallvec};

use crate::line::LINE_BYTES;
use crate::units::{Energy, Time};

pub use kinds::{Allowed, MAX_ENERGY_NJ, MAX_LATENCY_PS, Value, clock, latency};
pub use pressure::{HIGH, Limit, Pressure, Reached};

/// The origin of a default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A paper, or what the parameter is about.
    Source(&'static str),
    /// No source; the text says why this value.
    Assumed(&'static str),
}

/// The values that an assumed parameter may plausibly have instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Anything between two values, written as in a machine's file, and the reason, with its source where there is one.
    Between(&'static str, &'static str, &'static str),
    /// No other value can change a figure of a comparison, for this reason.
    Inert(&'static str),
}

/// A condition without which a parameter does nothing: another one is switched on.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// Whether the condition holds.
    pub met: fn(&Settings) -> bool,
    /// The parameters that decide the condition.
    pub switches: &'static [&'static str],
    /// The condition in words, as in `think.loads is more than 0`.
    pub what: &'static str,
}

/// A parameter, without its type.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its full name, section by section.
    pub name: &'static str,
    /// The values that it takes.
    pub kind: Allowed,
    /// What it means, in one line.
    pub meaning: &'static str,
    /// Its default; without one every machine must give a value.
    pub default: Option<(Value, Origin)>,
    /// The values that an assumed default may have instead. A key of words or a flag needs none: it may have its other
    /// words.
    pub doubt: Option<Doubt>,
    /// The value that a pass of the crash explorer with this pressure sets the parameter to; `None` leaves it.
    pub pressed: fn(&Pressure) -> Option<u64>,
    /// The condition without which the parameter does nothing, and is an error where a user sets it.
    pub needs: Option<Needs>,
}

impl Row {
    /// A parameter that every machine must give.
    pub const fn required(name: &'static str, kind: Allowed, meaning: &'static str) -> Row {
        Row {
            name,
            kind,
            meaning,
            default: None,
            doubt: None,
            pressed: |_| None,
            needs: None,
        }
    }

    /// The row, whose parameter does nothing without `needs`.
    #[must_use]
    pub const fn needing(mut self, needs: Needs) -> Row {
        self.needs = Some(needs);
        self
    }

    /// The row, whose parameter a pass of the crash explorer sets.
    #[must_use]
    pub const fn pressed(mut self, pressed: fn(&Pressure) -> Option<u64>) -> Row {
        self.pressed = pressed;
        self
    }

    /// Whether the parameter does anything under `settings`.
    pub fn matters(&self, settings: &Settings) -> bool {
        self.needs.is_none_or(|needs| (needs.met)(settings))
    }

    /// The section's name and the key's own.
    pub fn split(&self) -> (&'static str, &'static str) {
        self.name.rsplit_once('.').unwrap_or(("", self.name))
    }
}

/// A parameter whose value is a `T`.
#[derive(Debug)]
pub struct Key<T> {
    /// The key without its type.
    pub row: Row,
    of: PhantomData<fn() -> T>,
}

impl<T> Key<T> {
    /// Its full name, section by section.
    pub const fn name(&self) -> &'static str {
        self.row.name
    }

    /// A parameter that every machine must give.
    pub const fn required(name: &'static str, kind: Allowed, meaning: &'static str) -> Key<T> {
        Key {
            row: Row::required(name, kind, meaning),
            of: PhantomData,
        }
    }

    /// The key, with the values that its assumed default may have instead.
    #[must_use]
    pub const fn doubted(mut self, doubt: Doubt) -> Key<T> {
        self.row.doubt = Some(doubt);
        self
    }

    /// The key, which a pass of the crash explorer sets.
    #[must_use]
    pub const fn pressed(mut self, pressed: fn(&Pressure) -> Option<u64>) -> Key<T> {
        self.row.pressed = pressed;
        self
    }

    /// The key, which does nothing without `needs`.
    #[must_use]
    pub const fn needing(mut self, needs: Needs) -> Key<T> {
        self.row = self.row.needing(needs);
        self
    }

    const fn with(
        name: &'static str,
        kind: Allowed,
        default: Value,
        origin: Origin,
        meaning: &'static str,
    ) -> Key<T> {
        let mut key = Key::required(name, kind, meaning);
        key.row.default = Some((default, origin));
        key
    }

    /// A count of `range`, both ends included.
    pub const fn int(
        name: &'static str,
        range: (u64, u64),
        default: u64,
        origin: Origin,
        meaning: &'static str,
    ) -> Key<T> {
        let (min, max) = range;
        let kind = Allowed::Int { min, max };
        Key::with(name, kind, Value::Int(default), origin, meaning)
    }

    /// A power of two of `range`, both ends included.
    pub const fn power_of_two(
        name: &'static str,
        range: (u64, u64),
        default: u64,
        origin: Origin,
        meaning: &'static str,
    ) -> Key<T> {
        let (min, max) = range;
        let kind = Allowed::PowerOfTwo { min, max };
        Key::with(name, kind, Value::Int(default), origin, meaning)
    }
}

impl Key<bool> {
    /// Yes or no.
    pub const fn flag(
        name: &'static str,
        default: bool,
        origin: Origin,
        meaning: &'static str,
    ) -> Key<bool> {
        Key::with(name, Allowed::Bool, Value::Bool(default), origin, meaning)
    }
}

impl<T: Word> Key<T> {
    /// One of the type's words.
    pub const fn word(
        name: &'static str,
        default: &'static str,
        origin: Origin,
        meaning: &'static str,
    ) -> Key<T> {
        let kind = Allowed::Word(T::WORDS);
        Key::with(name, kind, Value::Word(default), origin, meaning)
    }
}

impl<T: Setting> Key<T> {
    /// A word of `kind`'s grammar.
    pub const fn text(
        name: &'static str,
        kind: Allowed,
        default: &'static str,
        origin: Origin,
        meaning: &'static str,
    ) -> Key<T> {
        Key::with(name, kind, Value::Word(default), origin, meaning)
    }
}

/// A set-associative on-chip cache or table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheParams {
    /// Capacity in bytes.
    pub bytes: u64,
    /// Ways of a set.
    pub ways: usize,
}

/// The two parameters of a [`CacheParams`].
#[derive(Debug)]
pub struct CacheKey {
    /// Capacity in bytes.
    pub bytes: Key<u64>,
    /// Ways of a set.
    pub ways: Key<usize>,
    /// Bytes of an entry: a line for a cache of lines.
    pub entry_bytes: u64,
}

/// Largest on-chip cache; larger ones would only fill the host's memory.
const MAX_CACHE_BYTES: u64 = 1 << 28;

/// The alternatives of a number of ways that no paper gives.
const WAYS: Doubt = Doubt::Between("4", "16", "from 4 ways to the 16 of SCA's counter cache");

impl CacheKey {
    /// The cache, whose assumed size may be another.
    #[must_use]
    pub const fn doubted(mut self, doubt: Doubt) -> CacheKey {
        self.bytes.row.doubt = Some(doubt);
        self
    }

    /// A cache of `bytes` bytes and eight ways, with the names and the meanings of both.
    pub const fn new(
        entry_bytes: u64,
        bytes: u64,
        origin: Origin,
        names: [&'static str; 2],
        meanings: [&'static str; 2],
    ) -> CacheKey {
        let range = (entry_bytes, MAX_CACHE_BYTES);
        let assumed = Origin::Assumed("no source");
        CacheKey {
            bytes: Key::int(names[0], range, bytes, origin, meanings[0]),
            ways: Key::int(names[1], (1, 1024), 8, assumed, meanings[1]).doubted(WAYS),
            entry_bytes,
        }
    }

    /// Whether entries are lines, so that the size must be a whole number of sets.
    pub fn is_of_lines(&self) -> bool {
        self.entry_bytes == LINE_BYTES as u64
    }
}

/// A key or a pair of keys, whatever their types: what a layer lists.
pub trait AnyKey: Sync {
    /// The parameters of the key or the pair.
    fn rows(&self) -> SmallVec<[&Row; 2]>;

    /// The cache, if this is one.
    fn cache(&self) -> Option<&CacheKey> {
        None
    }

    /// The names and values that a pass of the crash explorer with this pressure sets.
    fn pressed(&self, by: &Pressure) -> Vec<(&'static str, u64)> {
        let rows = self.rows().into_iter();
        let pressed = rows.filter_map(|row| Some((row.name, (row.pressed)(by)?)));
        pressed.collect()
    }
}

impl AnyKey for Row {
    fn rows(&self) -> SmallVec<[&Row; 2]> {
        smallvec![self]
    }
}

impl<T> AnyKey for Key<T> {
    fn rows(&self) -> SmallVec<[&Row; 2]> {
        smallvec![&self.row]
    }
}

impl AnyKey for CacheKey {
    fn rows(&self) -> SmallVec<[&Row; 2]> {
        smallvec![&self.bytes.row, &self.ways.row]
    }

    fn cache(&self) -> Option<&CacheKey> {
        Some(self)
    }

    /// Shrinks the cache to one set. A table whose entries are not lines gets four times as many entries.
    fn pressed(&self, by: &Pressure) -> Vec<(&'static str, u64)> {
        let Some(lines) = by.cache_lines else {
            return Vec::new();
        };
        let entries = if self.is_of_lines() { lines } else { 4 * lines };
        let (bytes, ways) = (&self.bytes.row, &self.ways.row);
        vec![
            (bytes.name, entries * self.entry_bytes),
            (ways.name, entries),
        ]
    }
}

/// A type that a parameter can have.
pub trait Setting: Copy {
    /// Converts a value that has passed the key's range.
    fn from_value(value: Value) -> Self;

    /// Converts to a value.
    fn value(self) -> Value;
}

/// An enum that is written as one of a few words.
pub trait Word: Setting {
    /// The words, in the order in which messages list them.
    const WORDS: &'static [&'static str];
}

macro_rules! settings {
    ($($type:ty, $variant:ident $(as $held:ty)?, $what:literal;)*) => {
        $(impl Setting for $type {
            fn from_value(value: Value) -> $type {
                match value {
                    Value::$variant(value) => value $(as $held as $type)?,
                    other => unreachable!("{other:?} where the key's kind is {}", $what),
                }
            }

            fn value(self) -> Value {
                Value::$variant(self $(as $held)?)
            }
        })*
    };
}

settings! {
    u8, Int as u64, "a count";
    u32, Int as u64, "a count";
    u64, Int, "a count";
    usize, Int as u64, "a count";
    bool, Bool, "a flag";
    Time, Time, "a time";
    Energy, Energy, "an energy";
}

/// Gives an enum its words: `words!(Collision { "keep" => Keep, "replace" => Replace })`.
#[macro_export]
#[doc(hidden)]
macro_rules! words {
    ($type:ident { $($word:literal => $variant:ident),+ $(,)? }) => {
        impl $crate::settings::Word for $type {
            const WORDS: &'static [&'static str] = &[$($word),+];
        }

        impl $crate::settings::Setting for $type {
            fn from_value(value: $crate::settings::Value) -> $type {
                match value {
                    $($crate::settings::Value::Word($word) => $type::$variant,)+
                    other => unreachable!("{other:?} is none of the key's words"),
                }
            }

            fn value(self) -> $crate::settings::Value {
                $crate::settings::Value::Word(match self {
                    $($type::$variant { .. } => $word,)+
                })
            }
        }
    };
}
pub use words;

/// Declares the parameters of a layer: the constructor of each (see [`Key`]), the origin of its default and its
/// meaning. For a cache: the prefix of both names, the bytes of an entry and in all, the origin of those, and the two
/// meanings. `in Between(low, high, why)` gives the alternatives of an assumed number, `in Inert(why)` the reason why
/// it cannot matter; `needs N` names the [`Needs`] without which it does nothing; `under f` gives a [`Pressure`]'s
/// value of a count.
#[macro_export]
#[doc(hidden)]
macro_rules! keys {
    ($(
        $name:ident: $type:ty = $make:ident($($what:expr),*),
        $origin:ident($why:literal), $meaning:literal
        $(in $doubt:ident($($than:literal),+))? $(needs $needs:ident)? $(under $pressed:expr)?;
    )*) => {
        $(#[doc = $meaning]
        pub static $name: $crate::settings::Key<$type> = $crate::settings::Key::$make(
            $($what,)*
            $crate::settings::Origin::$origin($why),
            $meaning,
        )$(.doubted($crate::settings::Doubt::$doubt($($than),+)))?$(.needing($needs))?$(.pressed($pressed))?;)*
    };
    ($(
        $name:ident = cache($prefix:literal, $entry:expr, $bytes:literal),
        $origin:ident($why:literal), $meaning:literal, $ways:literal
        $(in $doubt:ident($($than:literal),+))?;
    )*) => {
        $(#[doc = $meaning]
        pub static $name: $crate::settings::CacheKey = $crate::settings::CacheKey::new(
            $entry as u64,
            $bytes,
            $crate::settings::Origin::$origin($why),
            [concat!($prefix, "bytes"), concat!($prefix, "ways")],
            [$meaning, $ways],
        )$(.doubted($crate::settings::Doubt::$doubt($($than),+)))?;)*
    };
}
pub use keys;

/// The values of parameters, by key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    values: BTreeMap<&'static str, Value>,
}

impl Settings {
    /// The value of `key`, or its default.
    ///
    /// # Panics
    /// If it has neither.
    pub fn get<T: Setting>(&self, key: &Key<T>) -> T {
        let default = || key.row.default.map(|(value, _)| value);
        let value = self.find(key.row.name).or_else(default);
        T::from_value(value.unwrap_or_else(|| panic!("{} has no value", key.row.name)))
    }

    /// Sets the value of `key`.
    pub fn set<T: Setting>(&mut self, key: &Key<T>, value: T) {
        self.put(key.row.name, value.value());
    }

    /// The values of both keys of a cache.
    pub fn cache(&self, key: &CacheKey) -> CacheParams {
        CacheParams {
            bytes: self.get(&key.bytes),
            ways: self.get(&key.ways),
        }
    }

    /// Sets both values of a cache.
    pub fn set_cache(&mut self, key: &CacheKey, cache: CacheParams) {
        self.set(&key.bytes, cache.bytes);
        self.set(&key.ways, cache.ways);
    }

    /// The value of the key of that name.
    ///
    /// # Panics
    /// If it has none.
    pub fn named<T: Setting>(&self, name: &str) -> T {
        let value = self.find(name);
        T::from_value(value.unwrap_or_else(|| panic!("{name} has no value")))
    }

    /// The value of the key of that name, if it has one.
    pub fn find(&self, name: &str) -> Option<Value> {
        self.values.get(name).copied()
    }

    /// Sets a checked value by the key's name.
    pub fn put(&mut self, name: &'static str, value: Value) {
        self.values.insert(name, value);
    }

    /// All values, by name in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Value)> {
        self.values.iter().map(|(name, value)| (*name, *value))
    }

    /// These settings without the keys that are `out`.
    #[must_use]
    pub fn without(&self, out: impl Fn(&str) -> bool) -> Settings {
        let kept = self.values.iter().filter(|(name, _)| !out(name));
        Settings {
            values: kept.map(|(name, value)| (*name, *value)).collect(),
        }
    }

    /// Removes the value of a key.
    pub fn remove(&mut self, name: &str) {
        self.values.remove(name);
    }
}

/// Declares parameters that every machine must give: the prefix of their names, and for each the rest of its name, its
/// kind and its meaning.
#[macro_export]
#[doc(hidden)]
macro_rules! rows {
    ($section:literal; $( $key:literal $kind:expr, $meaning:literal; )*) => {
        &[$(
            $crate::settings::Row::required(concat!($section, $key), $kind, $meaning),
        )*]
    };
}
pub use rows;

/// Declares a struct whose fields are parameters of one section, a line each, with the name of the field's key, its
/// kind and its meaning. A key without a field (in brackets) is read elsewhere.
#[macro_export]
#[doc(hidden)]
macro_rules! section {
    (
        $(#[$attribute:meta])*
        $name:ident $section:literal;
        $( $([$field:ident: $type:ty])? $key:literal $kind:expr, $meaning:literal; )*
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $($(#[doc = $meaning] pub $field: $type,)?)*
        }

        impl $name {
            /// Its parameters.
            pub const ROWS: &'static [$crate::settings::Row] =
                $crate::settings::rows! { $section; $($key $kind, $meaning;)* };

            /// As `settings` say.
            pub fn from_settings(settings: &$crate::settings::Settings) -> $name {
                $name {
                    $($($field: settings.named::<$type>(concat!($section, $key)),)?)*
                }
            }
        }
    };
}
pub use section;
