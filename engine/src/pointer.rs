//! JSON Pointers (RFC 6901): how an error, a field and an edit say which value they mean.

/// The pointer to the property `name` of the value at `parent`.
pub fn child(parent: &str, name: &str) -> String {
    format!("{parent}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// The property names on the way, from the outside inwards.
pub fn names(pointer: &str) -> impl Iterator<Item = String> {
    pointer.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~"))
}
