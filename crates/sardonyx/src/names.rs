//! Enums whose variants have names.

/// Declares an enum whose variants have names in reports: `ALL` lists the variants, `name` gives their names, and
/// `meaning` gives their documentation.
#[macro_export]
#[doc(hidden)]
macro_rules! named {
    ($(#[$about:meta])* $Type:ident {
        $($(#[doc = $doc:literal])+ $(#[default $($default:tt)?])? $variant:ident = $name:literal,)+
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $Type {
            $($(#[doc = $doc])+ $(#[default $($default)?])? $variant,)+
        }

        impl $Type {
            /// All variants, in order.
            pub const ALL: [$Type; [$($name),+].len()] = [$($Type::$variant),+];

            /// Its name in reports.
            pub const fn name(self) -> &'static str {
                match self {
                    $($Type::$variant => $name,)+
                }
            }

            /// What the variant is, in a line.
            pub fn meaning(self) -> &'static str {
                match self {
                    $($Type::$variant => concat!($($doc),+).trim(),)+
                }
            }
        }
    };
}
pub use named;
pub use sardonyx_base::names::{did_you_mean, nearest};
