//! PageForge.
