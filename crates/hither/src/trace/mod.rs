//! Starts the target under the tracer, collects, writes the profile.
