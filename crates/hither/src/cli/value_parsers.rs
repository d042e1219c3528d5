//! What options take: one of several names, a number within bounds, a share.
use std::ops::{Bound, RangeBounds};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// Takes a name of a value.
pub fn one_of<T, const N: usize>(all: [(T, PossibleValue); N]) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let names = all.clone().map(|(_, name)| name);
    PossibleValuesParser::new(names).map(move |name| {
        let named = all.iter().find(|(_, known)| known.get_name() == name);
        named.expect("one of the possible values").0
    })
}

/// Takes a number from 0 on. What is excluded at the end is beyond all that makes sense, and not mentioned.
pub fn number_in<R: RangeBounds<f64> + Clone>(
    range: R,
) -> impl Fn(&str) -> Result<f64, String> + Clone {
    move |text| {
        let value = text.parse().ok().filter(|v| range.contains(v));
        value.ok_or_else(|| match range.end_bound() {
            Bound::Included(most) => format!("write a number from 0 to {most}"),
            _ => "write a number, 0 or more".to_owned(),
        })
    }
}

/// Takes a share from 0 to `most`: `10%` and `0.1` are 0.1.
pub fn share_to(most: f64) -> impl Fn(&str) -> Result<f64, String> + Clone {
    move |text| {
        let (number, whole) = match text.strip_suffix('%') {
            Some(number) => (number.trim_end(), 100.0),
            None => (text, 1.0),
        };
        let value = number.parse::<f64>().ok().map(|number| number / whole);
        let value = value.filter(|share| (0.0..=most).contains(share));
        value.ok_or_else(|| format!("write a share as 10% or 0.1, from 0 to {}%", most * 100.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_percentages_or_parts() {
        let check = |text: &str, want: Option<f64>| {
            assert_eq!(share_to(1.0)(text).ok(), want, "{text}");
        };
        check("10%", Some(0.1));
        check("10 %", Some(0.1));
        check("0.1", Some(0.1));
        check("0", Some(0.0));
        check("1", Some(1.0));
        check("100%", Some(1.0));
        check("10", None);
        check("101%", None);
        check("-1%", None);
        check("nan", None);
        check("NaN%", None);
        check("", None);
        check("%", None);
        check("ten", None);
        let sentence = "write a share as 10% or 0.1, from 0 to 90%".to_owned();
        assert_eq!(share_to(0.9)("91%"), Err(sentence));
    }

    #[test]
    fn numbers_have_bounds() {
        let share = number_in(0.0..=1.0);
        assert_eq!(share("0.1"), Ok(0.1));
        assert_eq!(share("1.1"), Err("write a number from 0 to 1".to_owned()));
        assert!(share("NaN").is_err());
        let large = number_in(0.0..1e18);
        assert_eq!(large("150"), Ok(150.0));
        assert_eq!(large("-1"), Err("write a number, 0 or more".to_owned()));
        assert!(large("inf").is_err());
    }
}
