//! The confidence interval of a ratio, where windows are a sample of the run and seeds one of the
//! random choices.
//!
//! Of x (the first placement) and y in n windows, each the mean over its seeds:
//! R = sum y / sum x, with the variance of a ratio estimator, paired by window (Cochran,
//! "Sampling Techniques", 1977, 6.4): var R = sum (y_i - R x_i)^2 / (n (n - 1) mean(x)^2).
//! Seeds add the variance of their totals; with one window they are all there is. Half widths are
//! those of Student's t, each with its own degrees of freedom, and add up as squares.
use hither_profile::RatioEstimate;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// A figure by seed, then by window.
pub type SeedWindowSamples = [Vec<f64>];

/// y to x. `None` where x is 0 or nothing was sampled.
#[must_use]
pub fn ratio_estimate(x: &SeedWindowSamples, y: &SeedWindowSamples) -> Option<RatioEstimate> {
    let (xs, ys) = (window_means(x)?, window_means(y)?);
    let n = xs.len().min(ys.len());
    let total: f64 = xs.iter().sum();
    if total.is_nan() || total <= 0.0 {
        return None;
    }
    let value = ys.iter().sum::<f64>() / total;
    if !value.is_finite() {
        return None;
    }
    let residuals = xs.iter().zip(&ys).map(|(x, y)| (y - value * x).powi(2));
    let windows = (n > 1).then(|| {
        let variance = residuals.sum::<f64>() / (n as f64 * (n - 1) as f64);
        student_t_975(n - 1) * variance.sqrt() / (total / n as f64)
    });
    // The first placement is itself whatever the seed.
    let same = std::ptr::eq(x, y);
    let seeds = |samples: &SeedWindowSamples, scale: f64| match same {
        true => None,
        false => seed_half_width(samples).map(|half| half * scale),
    };
    let parts = [windows, seeds(y, 1.0 / total), seeds(x, value / total)];
    let known = parts.into_iter().flatten();
    Some(RatioEstimate {
        value,
        half_width: known.reduce(f64::hypot),
    })
}

/// By window, over seeds.
fn window_means(samples: &SeedWindowSamples) -> Option<Vec<f64>> {
    let windows = samples.iter().map(Vec::len).min()?;
    let mean = |window| samples.iter().map(|seed| seed[window]).sum::<f64>() / samples.len() as f64;
    Some((0..windows).map(mean).collect())
}

/// Half width of the mean of the seeds' totals; `None` for one seed, which is no sample.
fn seed_half_width(samples: &SeedWindowSamples) -> Option<f64> {
    let (_, deviation) = seed_totals(samples)?;
    Some(student_t_975(samples.len() - 1) * deviation / (samples.len() as f64).sqrt())
}

/// Half width of the total with one more seed, as a share of their mean; `None` for one seed.
#[must_use]
pub fn one_seed_half_width(samples: &SeedWindowSamples) -> Option<f64> {
    let (mean, deviation) = seed_totals(samples)?;
    (mean > 0.0).then(|| student_t_975(samples.len() - 1) * deviation / mean)
}

/// Mean and standard deviation of the seeds' totals.
fn seed_totals(samples: &SeedWindowSamples) -> Option<(f64, f64)> {
    let totals: Vec<f64> = samples.iter().map(|seed| seed.iter().sum()).collect();
    let n = totals.len();
    if n < 2 {
        return None;
    }
    let mean = totals.iter().sum::<f64>() / n as f64;
    let squares: f64 = totals.iter().map(|total| (total - mean).powi(2)).sum();
    Some((mean, (squares / (n - 1) as f64).sqrt()))
}

/// The 97.5 % quantile of Student's t with `degrees` degrees of freedom, 1 or more.
#[must_use]
pub fn student_t_975(degrees: usize) -> f64 {
    let t = StudentsT::new(0.0, 1.0, degrees.max(1) as f64);
    t.map_or(f64::INFINITY, |t| t.inverse_cdf(0.975))
}
