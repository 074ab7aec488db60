//! Which channel, rank, bank, row and column a line's number means: the fields of an address in any
//! order. Rows have no end: metadata lie behind the data, so what exceeds the medium goes on in rows
//! beyond its last. The words are DRAMSim2's schemes (`AddressMapping.cpp`); left out: mappings that
//! hash bits of one field into another.

use std::sync::LazyLock;

use super::params::Geometry;
use crate::line::Place;
use crate::settings::{Allowed, Key, Origin, Setting, Settings, Value};

/// A part of a line's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The number of the channel.
    Channel,
    /// The number of the rank in its channel.
    Rank,
    /// The number of the bank in its rank, or what is above its group in that.
    Bank,
    /// The number of the bank's group: the low bits of the bank.
    Group,
    /// The number of the row in its bank.
    Row,
    /// The number of the line in its row.
    Column,
}

impl Field {
    /// All fields.
    pub const ALL: [Field; 6] = [
        Field::Channel,
        Field::Rank,
        Field::Bank,
        Field::Group,
        Field::Row,
        Field::Column,
    ];

    const fn name(self) -> &'static str {
        match self {
            Field::Channel => "channel",
            Field::Rank => "rank",
            Field::Bank => "bank",
            Field::Group => "group",
            Field::Row => "row",
            Field::Column => "column",
        }
    }
}

/// The fields of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressMapping {
    /// The most significant first. An order without a group has it right below the bank.
    pub fields: [Field; 6],
    /// Bank groups of a rank.
    pub groups: u64,
}

/// The words for orders, and the orders: DRAMSim2's seven, and one that spreads lines over banks as finely as possible.
const WORDS: [(&str, &str); 8] = [
    ("dramsim2-1", "channel:rank:row:column:bank"),
    ("dramsim2-2", "channel:row:column:bank:rank"),
    ("dramsim2-3", "channel:rank:bank:column:row"),
    ("dramsim2-4", "channel:rank:bank:row:column"),
    ("dramsim2-5", "channel:row:column:rank:bank"),
    ("dramsim2-6", "channel:row:bank:rank:column"),
    ("dramsim2-7", "row:column:rank:bank:channel"),
    ("interleaved", "row:column:rank:bank:channel"),
];

static ORDERS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut orders = vec![Vec::new()];
    for _ in Field::ALL {
        let longer = |order: &Vec<Field>| {
            let others = Field::ALL.into_iter().filter(|f| !order.contains(f));
            let longer = others.map(|field| [order.as_slice(), &[field]].concat());
            longer.collect::<Vec<_>>()
        };
        orders = orders.iter().flat_map(longer).collect();
    }
    // A group right below the bank is not written.
    for order in &mut orders {
        order.dedup_by(|field, above| (*above, *field) == (Field::Bank, Field::Group));
    }
    let written = |order: Vec<Field>| order.into_iter().map(Field::name).collect::<Vec<_>>();
    orders
        .into_iter()
        .map(|order| written(order).join(":"))
        .collect()
});

fn known(text: &str) -> Option<&'static str> {
    let word = WORDS.iter().find(|(word, _)| *word == text);
    let order = || ORDERS.iter().find(|order| *order == text);
    word.map(|(word, _)| *word)
        .or_else(|| order().map(String::as_str))
}

impl AddressMapping {
    /// The fields that a medium of this geometry has more than one value of, the most significant first. Two orders
    /// with the same ones give every line the same place.
    pub fn shown(self, geometry: &Geometry) -> Vec<Field> {
        let fields = self.fields.into_iter();
        let shown = fields.filter(|field| self.size(*field, geometry) > 1);
        let mut shown: Vec<Field> = shown.collect();
        shown.dedup_by(|field, above| (*above, *field) == (Field::Bank, Field::Group));
        shown
    }

    /// The number of values of a field.
    pub fn size(&self, field: Field, geometry: &Geometry) -> u64 {
        match field {
            Field::Channel => geometry.channels,
            Field::Rank => geometry.ranks,
            Field::Bank => geometry.banks / self.groups,
            Field::Group => self.groups,
            Field::Row => geometry.rows,
            Field::Column => geometry.columns,
        }
    }

    /// The same order in ranks of so many bank groups.
    pub fn in_groups(self, groups: u64) -> AddressMapping {
        AddressMapping { groups, ..self }
    }
}

impl Setting for AddressMapping {
    fn from_value(value: Value) -> AddressMapping {
        let Value::Word(text) = value else {
            unreachable!("{value:?} where the key's kind is an order")
        };
        let word = WORDS.iter().find(|(word, _)| *word == text);
        let order = word.map_or(text, |(_, order)| order);
        let named = |name| Field::ALL.into_iter().find(|field| field.name() == name);
        let named = order
            .split(':')
            .map(|name| named(name).expect("a known order"));
        let mut fields: Vec<Field> = named.collect();
        if !fields.contains(&Field::Group) {
            let bank = fields.iter().position(|field| *field == Field::Bank);
            fields.insert(bank.expect("one of the five") + 1, Field::Group);
        }
        AddressMapping {
            fields: fields.try_into().expect("five fields and the group"),
            groups: 1,
        }
    }

    fn value(self) -> Value {
        let written = self.fields.map(Field::name).join(":");
        let written = written.replace("bank:group", "bank");
        Value::Word(known(&written).expect("an order of the fields"))
    }
}

/// The orders that stand for all when the key is varied: NVMain's, and DRAMSim2's seven.
const TRIED: &[&str] = &[
    "row:rank:bank:channel:column",
    "dramsim2-1",
    "dramsim2-2",
    "dramsim2-3",
    "dramsim2-4",
    "dramsim2-5",
    "dramsim2-6",
    "dramsim2-7",
];

const KIND: Allowed = Allowed::Text {
    known,
    range: "channel, rank, bank, row and column in any order, the most significant first, with \
            colons between, and group where the bank's low bits are elsewhere; or dramsim2-1 to dramsim2-7, or interleaved",
    tried: TRIED,
};

/// The division of a line's number into fields.
pub static MAPPING: Key<AddressMapping> = Key::text(
    "medium.mapping",
    KIND,
    "row:rank:bank:channel:column",
    Origin::Assumed("no paper says; the order of NVMain's default decoder, on which ESD ran"),
    "Which field of an address is where, the most significant first",
);

/// The number of consecutive lines in one row of one bank, as the medium of `settings` has them; 1 if the settings have
/// no medium.
pub fn run(settings: &Settings) -> u64 {
    let size = |name: &str| match settings.find(name) {
        Some(Value::Int(size)) => size,
        _ => 1,
    };
    match settings.get(&MAPPING).fields[5] {
        Field::Column => size("medium.geometry.columns"),
        _ => 1,
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Bits {
    above: bool,
    shift: u32,
    mask: u64,
}

/// Finds a line's channel, bank and row.
#[derive(Clone, Copy, Debug)]
pub struct Decoder {
    channel: Bits,
    rank: Bits,
    bank: Bits,
    group: Bits,
    bank_bits: u32,
    group_bits: u32,
    below: u32,
    /// Rows of a bank, and lines of the medium, if other fields are above the row; otherwise 0.
    rows: u64,
    lines: u64,
    /// The number of channels if it is not a power of two, and the bits below the channel. The other fields are then
    /// found as if there were one channel.
    odd: Option<(u32, u64)>,
    /// Whether fields are plain bits of the place: the row is above all others, and channels are a power of two.
    plain: bool,
}

impl Decoder {
    /// The decoder of a medium of this geometry.
    pub fn new(geometry: &Geometry, mapping: AddressMapping) -> Decoder {
        if !geometry.channels.is_power_of_two() {
            return Decoder::odd(geometry, mapping);
        }
        let is_top = mapping.fields[0] == Field::Row;
        let mut decoder = Decoder {
            channel: Bits::default(),
            rank: Bits::default(),
            bank: Bits::default(),
            group: Bits::default(),
            group_bits: mapping.groups.trailing_zeros(),
            bank_bits: geometry.banks.trailing_zeros(),
            below: 0,
            rows: if is_top { 0 } else { geometry.rows },
            lines: if is_top { 0 } else { geometry.lines() },
            odd: None,
            plain: is_top,
        };
        let (mut shift, mut above) = (0, false);
        for field in mapping.fields.into_iter().rev() {
            let size = mapping.size(field, geometry);
            let bits = Bits {
                above,
                shift,
                mask: size - 1,
            };
            match field {
                Field::Channel => decoder.channel = bits,
                Field::Rank => decoder.rank = bits,
                Field::Bank => decoder.bank = bits,
                Field::Group => decoder.group = bits,
                Field::Column => {}
                Field::Row => {
                    decoder.below = shift;
                    (shift, above) = (0, true);
                    continue;
                }
            }
            shift += size.trailing_zeros();
        }
        decoder
    }

    fn odd(geometry: &Geometry, mapping: AddressMapping) -> Decoder {
        let one = Geometry {
            channels: 1,
            ..geometry.clone()
        };
        let below = mapping
            .fields
            .into_iter()
            .rev()
            .take_while(|field| *field != Field::Channel);
        let shift = below
            .map(|field| mapping.size(field, geometry).trailing_zeros())
            .sum();
        Decoder {
            odd: Some((shift, geometry.channels)),
            plain: false,
            ..Decoder::new(&one, mapping)
        }
    }

    /// The position of `place` as if there were one channel; `place` itself if the number of channels is a power of
    /// two.
    fn in_channel(&self, place: u64) -> u64 {
        match self.odd {
            None => place,
            Some((shift, channels)) => {
                let within = place & ((1 << shift) - 1);
                (((place >> shift) / channels) << shift) | within
            }
        }
    }

    fn parts(&self, place: u64) -> (u64, u64, u64) {
        if self.rows == 0 {
            return (place, place >> self.below, 0);
        }
        let (beyond, within) = (place / self.lines, place % self.lines);
        let upper = within >> self.below;
        let row = upper % self.rows + beyond * self.rows;
        (within, row, upper / self.rows)
    }

    fn of(&self, place: u64, bits: Bits) -> u64 {
        let (below, _, upper) = self.parts(place);
        let from = if bits.above { upper } else { below };
        from >> bits.shift & bits.mask
    }

    /// The channel of a place of the medium.
    #[inline]
    pub fn channel(&self, place: Place) -> usize {
        match self.odd {
            None if self.plain => (place.0 >> self.channel.shift & self.channel.mask) as usize,
            None => self.of(place.0, self.channel) as usize,
            Some((shift, channels)) => ((place.0 >> shift) % channels) as usize,
        }
    }

    /// The bank, counted through all ranks, and the row.
    #[inline]
    pub fn bank_and_row(&self, place: u64) -> (usize, u64) {
        if self.plain {
            let rank = place >> self.rank.shift & self.rank.mask;
            let bank = place >> self.bank.shift & self.bank.mask;
            let group = place >> self.group.shift & self.group.mask;
            let bank = bank << self.group_bits | group;
            return (
                (rank << self.bank_bits | bank) as usize,
                place >> self.below,
            );
        }
        (self.bank(place), self.row(place))
    }

    /// The bank, counted through all ranks.
    pub fn bank(&self, place: u64) -> usize {
        let place = self.in_channel(place);
        let bank = self.of(place, self.bank) << self.group_bits | self.of(place, self.group);
        (self.of(place, self.rank) << self.bank_bits | bank) as usize
    }

    fn row(&self, place: u64) -> u64 {
        self.parts(self.in_channel(place)).1
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rustc_hash::FxHashMap;

    use super::*;

    fn geometry(channels: u32, ranks: u32, banks: u32, rows: u64, columns: u32) -> Geometry {
        Geometry {
            channels: 1 << channels,
            ranks: 1 << ranks,
            banks: 1 << banks,
            rows,
            columns: 1 << columns,
        }
    }

    #[test]
    fn three_channels_are_as_full_as_four() {
        for order in [
            "row:rank:bank:channel:column",
            "row:column:rank:bank:channel",
            "bank:row:channel:rank:column",
        ] {
            let mut geometry = geometry(0, 1, 2, 5, 2);
            geometry.channels = 3;
            let decoder = Decoder::new(&geometry, AddressMapping::from_value(Value::Word(order)));
            let mut taken: FxHashMap<(usize, usize, u64), u64> = FxHashMap::default();
            for place in 0..2 * geometry.lines() {
                let at = (
                    decoder.channel(Place(place)),
                    decoder.bank(place),
                    decoder.row(place),
                );
                assert!(at.0 < 3 && at.1 < 8 && at.2 < 10, "{order}: {at:?}");
                *taken.entry(at).or_default() += 1;
            }
            assert_eq!(taken.len(), 3 * 8 * 10, "{order}");
            assert!(taken.values().all(|lines| *lines == 4), "{order}");
        }
        // Pages of a column's lines go around the channels.
        let mut geometry = geometry(0, 0, 0, 5, 2);
        geometry.channels = 3;
        let decoder = Decoder::new(
            &geometry,
            AddressMapping::from_value(Value::Word(WORDS[6].1)),
        );
        assert_eq!(
            [0, 1, 2, 3].map(|line| decoder.channel(Place(line))),
            [0, 1, 2, 0]
        );
    }

    proptest! {
        #![proptest_config(sardonyx_property::cases(128))]

        /// Every row of every bank has as many lines as columns, and those behind the medium go on in
        /// rows beyond the last. So no two lines meet in a column but if the decoder forgot a bit.
        #[test]
        fn a_mapping_is_a_bijection(
            order in 0..720_usize,
            (channels, ranks, banks, columns) in (0..3_u32, 0..2_u32, 0..3_u32, 0..3_u32),
            groups in 0..3_u32,
            rows in 1..6_u64,
        ) {
            let mapping = AddressMapping::from_value(Value::Word(&ORDERS[order]));
            let mapping = mapping.in_groups(1 << groups.min(banks));
            let geometry = geometry(channels, ranks, banks, rows, columns);
            let decoder = Decoder::new(&geometry, mapping);
            let mut taken: FxHashMap<(u64, usize, u64), u64> = FxHashMap::default();
            for place in 0..3 * geometry.lines() {
                let (channel, bank) = (decoder.channel(Place(place)) as u64, decoder.bank(place));
                prop_assert!(channel < geometry.channels);
                prop_assert!((bank as u64) < geometry.ranks * geometry.banks);
                let row = decoder.row(place);
                assert_eq!(decoder.bank_and_row(place), (bank, row));
                prop_assert_eq!(row / rows, place / geometry.lines());
                *taken.entry((channel, bank, row)).or_default() += 1;
            }
            prop_assert!(taken.values().all(|lines| *lines == geometry.columns));
        }
    }

    /// Where DRAMSim2 puts a line (`AddressMapping.cpp`): each scheme cuts its fields off the low end of the address, one
    /// after the other, in the order of this table.
    fn dramsim2(scheme: usize, mut line: u64, geometry: &Geometry) -> [u64; 4] {
        use Field::{Bank, Channel, Column, Rank, Row};
        let from_the_low_end = [
            [Bank, Column, Row, Rank, Channel],
            [Rank, Bank, Column, Row, Channel],
            [Row, Column, Bank, Rank, Channel],
            [Column, Row, Bank, Rank, Channel],
            [Bank, Rank, Column, Row, Channel],
            [Column, Rank, Bank, Row, Channel],
            [Channel, Bank, Rank, Column, Row],
        ];
        let plain = AddressMapping::from_value(Value::Word(TRIED[0]));
        let mut cut = FxHashMap::default();
        for field in from_the_low_end[scheme - 1] {
            let size = plain.size(field, geometry);
            cut.insert(field.name(), line % size);
            line /= size;
        }
        [Channel, Rank, Bank, Row].map(|field| cut[field.name()])
    }

    #[test]
    fn the_seven_words_are_dramsim2s_schemes() {
        let geometry = geometry(1, 1, 2, 8, 2);
        for scheme in 1..=7 {
            let (word, _) = WORDS[scheme - 1];
            assert_eq!(word, format!("dramsim2-{scheme}"));
            let decoder = Decoder::new(&geometry, AddressMapping::from_value(Value::Word(word)));
            for line in 0..geometry.lines() {
                let [channel, rank, bank, row] = dramsim2(scheme, line, &geometry);
                assert_eq!(
                    decoder.channel(Place(line)) as u64,
                    channel,
                    "{word} {line}"
                );
                let found = decoder.bank_and_row(line);
                assert_eq!(
                    found,
                    ((rank * geometry.banks + bank) as usize, row),
                    "{word} {line}"
                );
            }
        }
    }

    #[test]
    fn orders_are_one_map_if_and_only_if_they_show_the_same_fields() {
        for (channels, ranks, banks) in [(0, 0, 2), (1, 0, 2), (0, 1, 2), (1, 1, 1)] {
            let geometry = geometry(channels, ranks, banks, 4, 2);
            let map = |order: &str| {
                let mapping = AddressMapping::from_value(Value::Word(known(order).unwrap()));
                let decoder = Decoder::new(&geometry, mapping);
                let place = |line| (decoder.channel(Place(line)), decoder.bank_and_row(line));
                let lines = 0..2 * geometry.lines();
                (
                    mapping.shown(&geometry),
                    lines.map(place).collect::<Vec<_>>(),
                )
            };
            let maps: Vec<_> = TRIED.iter().map(|order| map(order)).collect();
            for (one, other) in maps
                .iter()
                .flat_map(|one| maps.iter().map(move |b| (one, b)))
            {
                assert_eq!(
                    one.0 == other.0,
                    one.1 == other.1,
                    "{:?} {:?}",
                    one.0,
                    other.0
                );
            }
        }
    }

    #[test]
    fn words_and_orders_are_known_and_nothing_else_is() {
        assert_eq!(ORDERS.len(), 720);
        let plain = ORDERS.iter().filter(|order| !order.contains("group"));
        assert_eq!(plain.count(), 120);
        assert_eq!(
            known("row:bank:column:group:rank:channel"),
            known("row:bank:column:group:rank:channel")
        );
        for (word, order) in WORDS {
            assert_eq!(known(word), Some(word));
            assert_eq!(
                AddressMapping::from_value(Value::Word(word)).value(),
                Value::Word(order)
            );
        }
        for wrong in [
            "row:rank:bank:channel",
            "row:row:bank:channel:column",
            "dramsim2-8",
            "",
        ] {
            assert_eq!(known(wrong), None);
        }
    }

    #[test]
    fn a_run_is_a_row_where_the_column_is_lowest_and_a_line_elsewhere() {
        let mut settings = Settings::default();
        settings.put("medium.geometry.columns", Value::Int(64));
        assert_eq!(run(&settings), 64);
        settings.put("medium.mapping", Value::Word("dramsim2-2"));
        assert_eq!(run(&settings), 1);
    }
}
