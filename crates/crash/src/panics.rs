//! Turns a failed assertion of the simulator into a finding like any other: it ends the trial at hand and not the
//! explorer.

use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    static CATCHING: Cell<bool> = const { Cell::new(false) };
    static CAUGHT: RefCell<String> = const { RefCell::new(String::new()) };
}
static HOOK: Once = Once::new();

/// Returns what `act` returns, or the message and place of its panic, which prints nothing.
pub fn caught<T>(act: impl FnOnce() -> T) -> Result<T, String> {
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| match CATCHING.get() {
            false => before(info),
            true => {
                let place = info
                    .location()
                    .map_or(String::new(), |at| format!("{}:{}: ", at.file(), at.line()));
                let text = info.payload().downcast_ref::<&str>().copied();
                let what = text.or_else(|| Some(info.payload().downcast_ref::<String>()?));
                CAUGHT.set(place + what.unwrap_or("a panic"));
            }
        }));
    });
    let before = CATCHING.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(act));
    CATCHING.set(before);
    result.map_err(|_| CAUGHT.take())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_panic_says_is_given_and_where() {
        assert_eq!(caught(|| 3), Ok(3));
        let inner = caught(|| caught(|| panic!("number {}", 7)).unwrap_err());
        let told = inner.expect("the inner one was caught");
        assert!(
            told.ends_with(": number 7") && told.contains("panics.rs:"),
            "{told}"
        );
    }
}
