//! A prediction for the sample: two placements, with and without what may be missing.
use hither_profile::*;

pub fn forecast() -> PlacementComparison {
    PlacementComparison {
        source: PlacementSource {
            file: "sample.hither".to_owned(),
            command: vec!["sample".to_owned(), "4".to_owned()],
        },
        started_unix: 1_700_000_000,
        machine: MachineIdentity {
            name: "xeon-x7550x4".to_owned(),
            fingerprint: "0123456789abcdef".to_owned(),
            units: 64,
            cores: 32,
            nodes: vec![0, 1],
        },
        title: "4 x Intel Xeon X7550".to_owned(),
        machine_file: "xeon-x7550x4.toml".to_owned(),
        frequency: 2.0,
        levels: vec!["L1d".to_owned(), "L3".to_owned()],
        links: vec![LinkEndpoints {
            from: 0,
            to: 1,
            between_packages: true,
        }],
        threads: vec!["sample".to_owned()],
        structures: vec!["data".to_owned()],
        sample: SimulatedSample {
            windows_recorded: 40,
            windows: 20,
            accesses_recorded: 4_000_000,
            accesses: 2_000_000,
            warm_up: 0.125,
            warm_up_change: Some(0.004),
        },
        pages: "first-touch".to_owned(),
        placements: vec![first(), second()],
        best: 1,
        verdict: "locality+most-access is predicted to take 12.0 % less time than os (95 % confidence: 10.0 % to 14.0 %).".to_owned(),
        notes: vec!["Turbo is not simulated.".to_owned()],
    }
}

fn first() -> PredictedPlacement {
    let one = Some(RatioEstimate {
        value: 1.0,
        half_width: None,
    });
    PredictedPlacement {
        name: "os".to_owned(),
        thread_policy: "os".to_owned(),
        seeds: 5,
        relative: RelativeFigures {
            time: one,
            last_level_misses: one,
            ..RelativeFigures::default()
        },
        amounts: amounts(1.0),
        ..PredictedPlacement::default()
    }
}

fn second() -> PredictedPlacement {
    let less = Some(RatioEstimate {
        value: 0.88,
        half_width: Some(0.02),
    });
    PredictedPlacement {
        name: "locality+most-access".to_owned(),
        thread_policy: "locality".to_owned(),
        data_policy: Some("most-access".to_owned()),
        file: Some("sample.place.json".to_owned()),
        seeds: 1,
        relative: RelativeFigures {
            time: less,
            first_level_misses: less,
            last_level_misses: less,
            invalidations: less,
            transfers: less,
            link_bytes: less,
            dram: less,
            remote_dram: less,
            read_time: less,
            static_energy: less,
            dynamic_energy: less,
            energy: less,
        },
        amounts: amounts(0.88),
        by_thread: vec![PartAmounts::default()],
        by_structure: vec![PartAmounts::default()],
        over_time: vec![WindowAmounts::default()],
    }
}

fn amounts(time: f64) -> PredictedAmounts {
    let level = LevelAmounts {
        cold: 100.0,
        capacity: 50.0,
        mpki: 1.5,
        ..LevelAmounts::default()
    };
    PredictedAmounts {
        time,
        ipc: 0.9,
        levels: vec![level; 2],
        link_bytes: vec![64_000.0],
        nodes: vec![NodeAmounts {
            local_reads: 300.0,
            remote_reads: 100.0,
            ..NodeAmounts::default()
        }],
        energy: EnergyAmounts {
            total: 2.5,
            per_instruction: 1.25,
            parts: vec![EnergyPart {
                name: "cores".to_owned(),
                at_rest: 1.5,
                dynamic: 1.0,
            }],
        },
        ..PredictedAmounts::default()
    }
}
