"""What the files of a run folder hold. The records are the JSON objects themselves, checked when they are read.

Keys that a class does not name are left alone: a later version of the same format may add some. `format` is the number
of the form a file is written in; files without one are of the first.
"""

from __future__ import annotations

from typing import Any, TypedDict

FORMAT = 2
FIRST_FORMAT = 1  # as FORMAT, but its files do not say so


class _ScoreKeys(TypedDict):
    client: str
    dataset: str
    split: str
    task: str
    metric: str
    value: float | None
    primary: bool


class Score(_ScoreKeys, total=False):
    """One metric of one client's task on one split. Primary ones have all keys."""

    unit: str | None
    higher_is_better: bool | None
    trivial: float | None  # the best constant prediction's value; in summaries only


class _ClientKeys(TypedDict):
    id: str
    dataset: str
    tasks: list[str]


class ClientRecord(_ClientKeys, total=False):
    """Who a client is."""

    samples: int
    parameters: dict[str, Any]
    relabel: dict[str, str]  # task → rule, where its labels are not the dataset's


class _SummaryKeys(TypedDict):
    algorithm: str
    scenario: str
    preset: str
    data: str
    seed: int
    rounds: int
    clients: list[ClientRecord]
    scores: list[Score]


class Summary(_SummaryKeys, total=False):
    """What a finished run found: everything in it follows from the config."""

    format: int
    title: str | None
    options: dict[str, Any] | None
    default_options: dict[str, Any] | None  # of the method under the run's preset, when it ran
    dataset_titles: dict[str, str] | None  # what tables call the datasets
    scenario_version: int | None
    device: str | None
    config_hash: str | None
    setting: str | None
    setting_text: dict[str, Any] | None
    numerics: int | None
    versions: dict[str, Any] | None
    data_fingerprints: dict[str, Any] | None
    unseen: list[ClientRecord] | None
    bytes_up: int | None
    bytes_down: int | None
    scores_before: list[Score] | None


class _RoundKeys(TypedDict):
    round: int
    bytes_up: int
    bytes_down: int


class Updates(TypedDict):
    """Inner products of the clients' updates; `owners` are [client, task or null], in the order of the rows."""

    owners: list[list[str | None]]
    gram: list[list[float]]


class RoundRow(_RoundKeys, total=False):
    """What a round found: everything in it follows from the config."""

    format: int
    present: list[str]
    losses: dict[str, dict[str, float | None]]
    grad_norm: dict[str, float | None]
    ledger: dict[str, dict[str, dict[str, int]]]
    algorithm: dict[str, Any] | None
    updates: dict[str, Updates] | None
    notes: list[str]
    scores: list[Score]
    scores_before: list[Score]


class EnergyStep(TypedDict):
    """Energy of one round."""

    kwh: float
    co2e_g: float
    seconds: float


class EnergyRow(EnergyStep):
    """Energy of all rounds so far, its parts, and of the last `round` alone."""

    parts: dict[str, float]
    round: EnergyStep
    how: dict[str, str]
    country: str | None
    region: str | None
    g_per_kwh: float


class _TimingKeys(TypedDict):
    round: int
    seconds: dict[str, float]


class TimingRow(_TimingKeys, total=False):
    """What a round took."""

    format: int
    busy: dict[str, float]  # what clients worked, over all of them; `seconds` is the wall clock
    clients: dict[str, dict[str, float]]  # the same by client
    wall: dict[str, float]  # how long the server waited for each client
    processes: list[dict[str, Any]]  # those beside the server's: where they are, their threads and peaks of memory
    energy: EnergyRow | None
    energy_reason: str | None
    memory: dict[str, int | None] | None
    session: str
    setup: float
    unfinished: bool
    bytes_up: int  # of a round that was made again
    bytes_down: int


class _EnergyBillKeys(TypedDict):
    kwh: float | None
    co2e_g: float | None


class EnergyBill(_EnergyBillKeys, total=False):
    """Energy of a run; null where it is not known, for the `reason` given."""

    source: str | None
    measured_share: float
    how: str | None
    parts: dict[str, dict[str, Any]]
    country: str | None
    region: str | None
    g_per_kwh: float | None
    power_w: float | None
    reason: str | None


class RepeatedBill(TypedDict):
    """What went into rounds that had to be made again."""

    rounds: int
    seconds: float
    kwh: float | None
    co2e_g: float | None
    bytes_up: int
    bytes_down: int


class _CostKeys(TypedDict):
    seconds: dict[str, float]
    seconds_total: float


class Cost(_CostKeys, total=False):
    """What a run took."""

    format: int
    busy: dict[str, float]
    setup_seconds: float
    energy: EnergyBill | None
    bytes_up: int
    bytes_down: int
    memory: dict[str, int | None]
    repeated: RepeatedBill | None
    spent: dict[str, float | None]
    parameters: dict[str, dict[str, int]]
    flops: dict[str, dict[str, Any]]


class _SessionKeys(TypedDict):
    started: str
    versions: dict[str, str]


class Session(_SessionKeys, total=False):
    """One stretch of work on a run: a resumed run has several."""

    from_round: int
    hardware: dict[str, Any]
    arithmetic: dict[str, Any]
    executor: dict[str, Any]
    command: str


class _ManifestKeys(TypedDict):
    config_hash: str
    data: dict[str, str]
    sessions: list[Session]


class Manifest(_ManifestKeys, total=False):
    """Where the numbers came from: versions, hardware, data."""

    format: int
    weights: dict[str, Any]


class _PredictionsKeys(TypedDict):
    run: str
    round: int
    split: str
    complete: bool


class Predictions(_PredictionsKeys, total=False):
    """Whose predictions a folder holds, after which round, and whether they are all of a split's."""

    format: int
    algorithm: str
    scenario: str
    seed: int
    rounds: int
    clients: dict[str, dict[str, Any]]


class _AbsenceKeys(TypedDict):
    why: str
    reason: str
    algorithm: str
    title: str
    options: dict[str, Any]
    scenario: str
    preset: str
    data: str
    rounds: int
    setting: str
    seed: int | None


class AbsenceRecord(_AbsenceKeys, total=False):
    """Why there is no run where one was asked for."""

    format: int
    default_options: dict[str, Any] | None
