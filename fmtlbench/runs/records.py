"""What the files of a run folder hold. The records are the JSON objects themselves, checked when they are read.

Keys that a class does not name are left alone: a later version of the same format may add some. `format` is the number
of the form a file is written in; files without one are of the first.
"""

from __future__ import annotations

from typing import Any, TypedDict


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
    label_noise: float  # share of its training images that carry the labels of another one, where there are some


class _CodeKeys(TypedDict):
    sha256: str
    parts: dict[str, str]


class CodeRecord(_CodeKeys):
    """Which code made numbers: a sha256 of all of it, and of each part (`fmtlbench.runs.code_identity`)."""


class SummaryCode(CodeRecord, total=False):
    """The code that finished a run, and the other codes by which it was begun or continued."""

    earlier: list[CodeRecord | None]  # null: one that was not recorded


class SessionCode(CodeRecord, total=False):
    """The code of one session: also its files, and where it is from."""

    files: dict[str, dict[str, str]]  # part → file → the beginning of its sha256
    version: str
    commit: str | None  # of the git repository that the package lies in; null: in none
    clean: bool | None  # whether the package's files are as in that commit


class _ExternalKeys(TypedDict):
    scored: str  # when, as ISO 8601
    folder: str  # of the predictions, as it was given
    files: int
    sha256: str  # of the listing of all files with their hashes, predictions.sha256


class External(_ExternalKeys, total=False):
    """Where predictions came from that no run of ours made."""

    by: str | None
    metrics: dict[str, dict[str, Any]]  # by task: the metric and its options
    doubts: list[str]  # what somebody vouched for


class WeightingRecord(TypedDict):
    """How clients weighed their tasks' losses, and what the options of that are by default."""

    name: str
    title: str
    options: dict[str, Any]
    default_options: dict[str, Any]


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
    weighting: WeightingRecord | None  # null or absent: equal, as methods do by themselves
    dataset_titles: dict[str, str] | None  # what tables call the datasets
    scenario_version: int | None
    device: str | None
    config_hash: str | None
    setting: str | None
    setting_text: dict[str, Any] | None
    departures: dict[str, Any] | None  # path → value, where it is not the preset's; None: not recorded
    numerics: int | None
    versions: dict[str, Any] | None
    code: SummaryCode | None  # null or absent: not recorded
    data_fingerprints: dict[str, Any] | None
    unseen: list[ClientRecord] | None
    bytes_up: int | None
    bytes_down: int | None
    scores_before: list[Score] | None
    external: External | None  # scores of predictions that were made elsewhere


class _RoundKeys(TypedDict):
    round: int
    bytes_up: int
    bytes_down: int


class UpdateProducts(TypedDict):
    """Inner products of the clients' updates; `owners` are [client, task or null], in the order of the rows."""

    owners: list[list[str | None]]
    gram: list[list[float]]


class RoundRow(_RoundKeys, total=False):
    """What a round found: everything in it follows from the config."""

    format: int
    present: list[str]
    dropped: list[str]  # chosen for the round, but delivered nothing
    work: dict[str, float]  # of stragglers: the share of their batches that they had time for
    losses: dict[str, dict[str, float | None]]
    grad_norm: dict[str, float | None]
    task_weights: dict[str, dict[str, float]]  # by client: the weighting's, in the last step of the round
    ledger: dict[str, dict[str, dict[str, int]]]
    algorithm: dict[str, Any] | None
    updates: dict[str, UpdateProducts] | None
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
    code: SessionCode
    command: str  # asks for the same run again, typed in the folder that this one was asked for in


class _ManifestKeys(TypedDict):
    config_hash: str
    data: dict[str, str]
    sessions: list[Session]


class Manifest(_ManifestKeys, total=False):
    """Where the numbers came from: versions, hardware, data."""

    format: int
    weights: dict[str, Any]


class NetworkRecord(TypedDict):
    """One client's network: what its file is, and whose file has the tensors that were there already."""

    sha256: str
    shared: dict[str, str]


class _NetworksKeys(TypedDict):
    clients: dict[str, NetworkRecord]


class NetworksRecord(_NetworksKeys, total=False):
    """Whose networks a run keeps."""

    format: int


class _TuningKeys(TypedDict):
    tuning: str
    keys: list[str]
    on: str
    budget: int
    trials: int
    validation: float
    seeds: list[int]
    criterion: str
    chosen: dict[str, Any]


class Tuning(_TuningKeys, total=False):
    """How a run's config was chosen: which values were tried in how many trials, and what was best on validation.

    `tuning` is the id that all runs of one tuning share, `keys` every value that was tried for some method, `on` whose
    trials counted ("methods": each one's own; "local"), `budget` the trials that each was to have, `trials` those of
    this method that came to their end.
    """

    format: int
    delta_m: float | None  # of the choice against the default, on validation
    file: str  # with all trials


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
