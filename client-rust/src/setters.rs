//! Builders around messages: methods that set one field each.

macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $type:ty => $value:expr;)*) => {
        $($(#[$doc])*
        #[must_use]
        pub fn $name(mut self, $name: $type) -> Self {
            self.0.$name = $value;
            self
        })*
    };
}

pub(crate) use setters;
