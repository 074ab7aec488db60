//! Has cargo build this crate again when the profile that it is compiled with changes; `tools/rustc-with-profile` uses it.

fn main() {
    println!("cargo::rerun-if-env-changed=SARDONYX_PROFILE");
    let profile = std::env::var("SARDONYX_PROFILE").unwrap_or_default();
    if let Some(file) = profile.strip_prefix("use:") {
        println!("cargo::rerun-if-changed={file}");
    }
    println!("cargo::rustc-env=SARDONYX_PROFILE={profile}");
}
