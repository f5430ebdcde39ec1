"""What is made of a trace: matched messages, the replay on an ideal network, metrics, Perfetto's form, pages."""

from __future__ import annotations

import base64
import itertools
import json
import re
import shutil
import subprocess
import sys
import zlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from everyday import everyday
from limits import scaled
from made_traces import event, many_events, out_of_core, pipeline, rank_of, run_of, two_ranks

from lapwing.codegen.compilation.toolchain import find_mpi
from lapwing.errors import BuildError
from lapwing.trace import timeline
from lapwing.trace.events import ACTIVITIES, RankTrace, RunTrace
from lapwing.trace.exposure import exposed_seconds
from lapwing.trace.messages import needed_by, sent_by
from lapwing.trace.metrics import NOISE_SECONDS, hidden, metrics
from lapwing.trace.perfetto import perfetto_json
from lapwing.trace.replay import replay
from lapwing.trace.timeline import timeline_page
from lapwing.trace.tracks import tracks_of
from lapwing.units import duration, share


def ideal_seconds(ranks: Sequence[RankTrace]) -> float:
    replayed = replay(ranks)
    assert replayed is not None
    return replayed.seconds


# -- metrics ---------------------------------------------------------------------------------------------------------


def test_figures_of_two_ranks() -> None:
    found = metrics(two_ranks())
    assert found.compute_seconds.min == 2
    assert found.compute_seconds.mean == 2.5
    assert found.compute_seconds.max == 3
    assert found.load_imbalance == pytest.approx(3 / 2.5 - 1)
    assert found.fill_seconds == 3.5
    assert found.drain_seconds == 0.5
    assert found.shares["compute"] == pytest.approx(5 / 9.5)
    assert found.shares["wait"] == pytest.approx(3.25 / 9.5)
    assert (found.messages, found.bytes) == (1, 80)
    # The only wait is the fill: nothing of the steady state is exposed.
    assert found.exposed_seconds == 0
    assert found.hidden == 1


def test_pop_efficiencies_by_hand() -> None:
    found = metrics(two_ranks()).efficiencies
    assert found.load_balance == pytest.approx(2.5 / 3)
    assert found.communication == pytest.approx(3 / 7)
    assert found.parallel == pytest.approx(2.5 / 7)
    # On an ideal network the message comes at 2.25 s instead of 3.25 s: 6 s instead of 7.
    assert found.transfer == pytest.approx(6 / 7)
    assert found.serialisation == pytest.approx(3 / 6)
    assert found.parallel == pytest.approx(found.load_balance * found.communication)
    assert found.communication == pytest.approx(found.serialisation * found.transfer)


def test_replay_takes_transfers_out_and_leaves_late_senders_in() -> None:
    assert ideal_seconds(two_ranks().ranks) == pytest.approx(6)
    slow = pipeline("blocking", ranks=2, steps=10, compute=1e-3, transfer=5e-3)
    # A step takes 1 ms of computing and 20 us each of packing, posting and unpacking; the second rank is one behind.
    assert ideal_seconds(slow.ranks) == pytest.approx(11 * 1e-3 + 11 * 2e-5 + 10 * 2e-5, abs=2e-4)


def test_replay_keeps_time_between_events_and_steps_inside_each_other() -> None:
    events = [event("compute", 1, 3, seconds=1.5), event("poll", 1.5, 2.5, seconds=0.5), event("compute", 4, 5)]
    assert ideal_seconds([rank_of(0, events, total=6)]) == pytest.approx(6)


def test_replay_with_a_helper_thread() -> None:
    helper = {"thread": 1}
    first = rank_of(
        0,
        [
            event("compute", 0, 2),
            event("pack", 3, 3.5, peer=1, **helper),
            event("post", 3.5, 4, peer=1, **helper),
            event("wait", 2, 4),
        ],
        total=4,
    )
    second = rank_of(
        1,
        [
            event("wait", 0, 7, peer=0, exposed=2),
            event("transfer", 3.5, 6, peer=0),
            event("unpack", 6, 7, peer=0, **helper),
            event("compute", 7, 9),
        ],
        total=9,
    )
    # 2 s computed, 0.5 s packed, sent at once, 1 s unpacked, 2 s computed; the helper's pause is left out.
    assert ideal_seconds([first, second]) == pytest.approx(5.5)


def test_replay_of_stores_into_another_ranks_arrays() -> None:
    """No message is on its way: the pack is the dependence, and waiting for a late sender is no transfer."""
    first = rank_of(0, [event("compute", 0, 2), event("pack", 2, 3, peer=1), event("compute", 3, 4)], total=4)
    second = rank_of(1, [event("wait", 0, 3.5, peer=0, exposed=0.5), event("compute", 3.5, 5.5)], total=5.5)
    assert ideal_seconds([first, second]) == pytest.approx(5)


def test_without_all_events_there_is_no_ideal_network() -> None:
    run = two_ranks()
    run = replace(run, ranks=(run.ranks[0], replace(run.ranks[1], dropped=3)))
    found = metrics(run)
    assert found.dropped == 3
    assert found.efficiencies.transfer is found.efficiencies.serialisation is None
    assert found.efficiencies.communication == pytest.approx(3 / 7)
    assert "transfer –" in str(found)


def test_hidden() -> None:
    assert hidden(0.02, 0.71) == pytest.approx(1 - 0.02 / 0.71)
    assert hidden(2.0, 1.0) == 0
    assert hidden(0.0, NOISE_SECONDS / 2) is None
    assert hidden(0.0, None) is hidden(None, 1.0) is None


def test_overlap_hides_what_blocking_exposes() -> None:
    blocking, overlap = metrics(pipeline("blocking", steps=40)), metrics(pipeline("overlap", steps=40))
    assert blocking.hidden == pytest.approx(0, abs=0.05)
    assert overlap.hidden == pytest.approx(1)
    assert blocking.efficiencies.transfer is not None
    assert overlap.efficiencies.transfer is not None
    assert blocking.efficiencies.transfer < 0.7 < 0.95 < overlap.efficiencies.transfer


def test_figures_of_the_disk() -> None:
    found = metrics(out_of_core())
    assert found.disk is not None
    assert (found.disk.read_bytes, found.disk.written_bytes) == (200, 200)
    assert (found.disk.exposed_seconds, found.disk.busy_seconds) == (3, 5)
    assert found.disk.hidden == pytest.approx(0.4)
    assert found.shares["disk"] == pytest.approx(3 / 9)
    assert (found.fill_seconds, found.drain_seconds) == (2, 1)
    assert "40% hidden: 3 s exposed of 5 s; 200 B read, 200 B written" in str(found)
    assert json.loads(json.dumps(found.to_json()))["disk"]["hidden"] == found.disk.hidden
    assert metrics(two_ranks()).disk is None


def test_nothing_computed_nothing_sent() -> None:
    found = metrics(run_of([rank_of(0, [], total=0.0)]))
    assert found.hidden is found.exposed_seconds is found.transfer_seconds is None
    assert found.efficiencies.parallel is None
    assert "nothing to communicate" in str(found)
    json.dumps(found.to_json(), allow_nan=False)


def test_a_run_without_ranks() -> None:
    empty = run_of([])
    assert metrics(empty).compute_seconds.max == 0
    assert "no events were recorded" in timeline_page([empty])


def test_text_and_json_say_the_same() -> None:
    found = metrics(pipeline("overlap", steps=40))
    document = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert document["hidden"] == found.hidden
    assert document["efficiencies"]["load_balance"] == found.efficiencies.load_balance
    assert f"{share(found.hidden)} of the communication hidden" in str(found)


# -- messages and tracks ---------------------------------------------------------------------------------------------


def test_messages_are_matched_in_order() -> None:
    ranks = pipeline("overlap", ranks=3, steps=5).ranks
    for receiver, senders in zip(ranks, sent_by(ranks), strict=True):
        transfers = np.flatnonzero(receiver.events["activity"] == ACTIVITIES.index("transfer"))
        assert len(transfers) == (0 if receiver.rank == 0 else 5)
        needs = needed_by(receiver)
        for k, transfer in enumerate(transfers):
            post = ranks[receiver.rank - 1].events[senders[transfer]]
            assert (ACTIVITIES[post["activity"]], post["step"]) == ("post", k)
            unpack = receiver.events[needs[transfer]]
            assert (ACTIVITIES[unpack["activity"]], unpack["step"]) == ("unpack", k)
        others = np.setdiff1d(np.arange(len(senders)), transfers)
        assert (senders[others] == -1).all()
        assert (needs[others] == -1).all()


def test_messages_are_matched_in_order_even_if_clocks_disagree() -> None:
    ranks = pipeline("overlap", ranks=2, steps=5).ranks
    late = ranks[1].events.copy()
    late["begin"] -= 2.5e-3  # between two and three steps
    late["end"] -= 2.5e-3
    skewed = (ranks[0], replace(ranks[1], events=late))
    assert sent_by(skewed)[1].tolist() == sent_by(ranks)[1].tolist()


def test_messages_without_posts_come_from_packs() -> None:
    """Within a node nothing is posted: the pack is the sending, and the next computation what needs it."""
    sender = rank_of(0, [event("pack", 1, 2, peer=1, step=0), event("pack", 3, 4, peer=1, step=1)], total=5)
    receiver = rank_of(1, [event("transfer", 4, 4.5, peer=0), event("compute", 4.5, 5)], total=5)
    ((), (senders)), needs = ([], sent_by([sender, receiver])[1]), needed_by(receiver)
    assert sender.events[senders[0]]["step"] == 1
    assert ACTIVITIES[receiver.events[needs[0]]["activity"]] == "compute"


def test_messages_of_ranks_that_are_not_in_the_trace() -> None:
    alone = rank_of(1, [event("transfer", 1, 2, peer=0)], total=3)
    assert sent_by([alone])[0].tolist() == [-1]
    assert needed_by(alone).tolist() == [-1]
    timeline_page([run_of([alone])])
    perfetto_json([run_of([alone])])


def test_tracks_hold_every_event_once_and_never_two_at_a_time() -> None:
    rng = np.random.default_rng(5)
    begins = rng.random(200)
    transfers = [
        event("transfer", b, b + length, peer=0) for b, length in zip(begins, rng.random(200) / 20, strict=True)
    ]
    computes = [event("compute", k, k + 1) for k in range(3)]
    rank = rank_of(1, [*transfers, *computes, event("post", 0.5, 0.6, thread=1)], total=3)
    tracks = tracks_of(rank)
    assert sorted(np.concatenate([track.events for track in tracks]).tolist()) == list(range(204))
    lanes = [track for track in tracks if track.kind == "messages on their way"]
    assert [track.lane for track in lanes] == list(range(len(lanes)))
    most = max(int(((begins <= b) & (begins + [t["end"] - t["begin"] for t in transfers] > b)).sum()) for b in begins)
    assert len(lanes) == most
    for track in tracks:
        chosen = rank.events[track.events]
        assert (chosen["begin"][1:] >= chosen["end"][:-1]).all()


def test_slabs_on_their_way_have_tracks_of_their_own() -> None:
    (rank,) = out_of_core().ranks
    kinds = {track.kind: [] for track in tracks_of(rank)}
    for track in tracks_of(rank):
        kinds[track.kind].append(len(track.events))
    assert kinds == {"compute": [2], "communication": [2], "reads": [1, 1], "writes": [2]}
    rows = [e["args"]["name"] for e in perfetto(out_of_core()) if e["name"] == "thread_name"]
    assert rows == ["compute", "communication", "reads", "reads (2)", "writes"]


# -- Perfetto --------------------------------------------------------------------------------------------------------


def perfetto(*runs: RunTrace) -> list[dict[str, Any]]:
    document = json.loads(perfetto_json(runs))
    events: list[dict[str, Any]] = document["traceEvents"]
    return events


def test_perfetto_slices_have_microseconds_and_do_not_overlap() -> None:
    run = pipeline("overlap", ranks=3, steps=30, transfer=3e-3)
    by_track: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    slices = [e for e in perfetto(run) if e["ph"] == "X"]
    assert len(slices) == sum(len(rank.events) for rank in run.ranks)
    for e in slices:
        assert e["pid"] > 0
        assert e["tid"] > 0
        begin = round(e["ts"] * 1000)
        by_track[e["pid"], e["tid"]].append((begin, begin + round(e["dur"] * 1000)))
    for spans in by_track.values():
        spans.sort()
        assert all(b[0] >= a[1] for a, b in itertools.pairwise(spans))
    first = next(e for e in slices if e["name"] == "compute")
    assert (first["ts"], first["dur"]) == (0, 1000)
    assert first["args"] == {"sweep": 0, "step": 0, "spent us": 980}


def test_perfetto_names_processes_and_threads() -> None:
    run = pipeline("overlap")
    events = perfetto(run, replace(pipeline("blocking"), predicted=run.ranks))
    names = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
    assert list(names.values()) == [
        "overlap: rank 0 on host0", "overlap: rank 1 on host1",
        "blocking: rank 0 on host0", "blocking: rank 1 on host1",
        "blocking, predicted: rank 0 on host0", "blocking, predicted: rank 1 on host1",
    ]  # fmt: skip
    threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert len({tid for _, tid in threads}) == len(threads)
    assert {e["tid"] for e in events if e["ph"] == "X"} <= {tid for _, tid in threads}
    assert list(threads.values())[:2] == ["compute", "communication"]
    assert [name for (pid, _), name in threads.items() if pid == 2] == [
        "compute",
        "communication",
        "messages on their way",
    ]


def test_perfetto_arrows_lead_from_posts_to_messages() -> None:
    run = two_ranks()
    events = perfetto(run)
    begin, end = (next(e for e in events if e["ph"] == phase) for phase in "sf")
    assert begin["id"] == end["id"]
    assert (begin["ts"], end["ts"]) == (2.25e6, 3.25e6)
    around = {e["name"]: e for e in events if e["ph"] == "X"}
    assert around["post"]["tid"] == begin["tid"]
    assert around["transfer"]["tid"] == end["tid"]


# -- the command line --------------------------------------------------------------------------------------------------

NEST = """
import numpy as np
import lapwing as lw

@lw.nest
def smooth(u):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            u[i, j] = 0.5 * (u[i - 1, j] + u[i, j - 1])

@smooth.problem
def problem(n=40):
    return dict(u=np.ones((n, n)))
"""


def lapwing_run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "smooth.py").write_text(NEST)
    command = [sys.executable, "-m", "lapwing", "run", "smooth.py", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=scaled(120), check=False)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler here")
def test_a_timeline_of_one_process(tmp_path: Path) -> None:
    done = lapwing_run(tmp_path, "--tile", "10", "--timeline", "out/run.html")
    assert done.returncode == 0, done.stderr
    assert "timeline: out/run.html" in done.stdout
    assert "nothing to communicate" in done.stdout
    rank, foreseen = _Page((tmp_path / "out/run.html").read_text()).data["runs"][0]["ranks"]
    assert rank["tracks"][0]["count"] == foreseen["tracks"][0]["count"] == 4
    assert [rank["predicted"], foreseen["predicted"]] == [False, True]


@pytest.mark.mpi
@pytest.mark.parametrize("ending", everyday(["html", "json"], ["html"]))
def test_a_timeline_of_two_ranks(tmp_path: Path, ending: str) -> None:
    try:
        find_mpi()
    except BuildError as error:
        pytest.skip(str(error))
    timeline_path = tmp_path / f"run.{ending}"
    done = lapwing_run(
        tmp_path, "-n", "2", "--engine", "blocking,overlap", "--repeat", "4", "--timeline", timeline_path.name,
        "--json", "figures.json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("POP") == 2
    text = timeline_path.read_text()
    figures = json.loads((tmp_path / "figures.json").read_text())["runs"]
    for one in figures:
        assert 0 <= one["exposed_seconds"] <= one["transfer_seconds"]
        of = (duration(one["exposed_seconds"]), duration(one["transfer_seconds"]))
        assert re.search(f"{one['engine']}: .*{of[0]} exposed of {of[1]}", done.stdout)
        if ending == "html":
            assert f"<td>{of[0]}<small>of {of[1]}</small></td>" in text
    if ending == "html":
        for run in _Page(text).data["runs"]:
            assert [rank["predicted"] for rank in run["ranks"]] == [False, False, True, True]
    else:
        for one, shown in zip(figures, json.loads(text)["otherData"]["runs"], strict=True):
            assert all(one[name] == shown[name] for name in ("engine", "hidden", "exposed_seconds", "transfer_seconds"))
        names = [e["args"]["name"] for e in json.loads(text)["traceEvents"] if e["name"] == "process_name"]
        assert [name.partition(" on ")[0] for name in names] == [
            "blocking: rank 0", "blocking: rank 1", "blocking, predicted: rank 0", "blocking, predicted: rank 1",
            "overlap: rank 0", "overlap: rank 1", "overlap, predicted: rank 0", "overlap, predicted: rank 1",
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("run.png", "ends in .html (a page for any browser) or .json"),
        ("run", "ends in .html"),
        ("smooth.py/run.html", "--timeline"),
        ("./same.json", "is what --json names, too"),
    ],
)
def test_timelines_that_cannot_be_written_are_refused_first(tmp_path: Path, path: str, said: str) -> None:
    done = lapwing_run(tmp_path, "--json", "same.json", "--timeline", path)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""


# -- pages -----------------------------------------------------------------------------------------------------------


class _Page(HTMLParser):
    """The elements of a page: their names, and the text of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[-1] += data
        else:
            self.text += data

    @property
    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.scripts[0])
        return found


def column(run: dict[str, Any], name: str, dtype: str) -> np.ndarray[Any, np.dtype[Any]]:
    differences = np.frombuffer(zlib.decompress(base64.b64decode(run["columns"][name])), dtype=dtype)
    return np.cumsum(differences, dtype=dtype)


def test_pages_load_nothing() -> None:
    text = timeline_page([pipeline("blocking"), pipeline("overlap")])
    page = _Page(text)
    assert all("src" not in attributes for _, attributes in page.tags)
    assert [a["href"] for tag, a in page.tags if tag == "link"] == ["data:,"]
    assert not re.search(r"https?://|@import|url\(", text)
    assert "{{" not in text
    assert "default-src 'none'" in text


def test_pages_hold_all_events() -> None:
    run = pipeline("overlap", steps=30)
    data = _Page(timeline_page([run])).data["runs"][0]
    begin, length = column(data, "begin", "<u4"), column(data, "length", "<u4")
    activity, step, link = column(data, "activity", "u1"), column(data, "step", "<i4"), column(data, "link", "<i4")
    assert len(begin) == sum(len(rank.events) for rank in run.ranks)
    for rank, shown in zip(run.ranks, data["ranks"], strict=True):
        for track, expected in zip(shown["tracks"], tracks_of(rank), strict=True):
            part = slice(track["first"], track["first"] + track["count"])
            events = rank.events[expected.events]
            np.testing.assert_allclose(begin[part] * data["unit"], events["begin"], atol=2e-9)
            np.testing.assert_allclose(length[part] * data["unit"], events["end"] - events["begin"], atol=3e-9)
            assert (activity[part] == events["activity"]).all()
            assert (step[part] == events["step"]).all()
    linked = np.flatnonzero(link >= 0)
    assert len(linked) == 30
    assert {ACTIVITIES[p] for p in activity[link[linked]]} == {"post"}
    assert (begin[link[linked]] == begin[linked]).all()


def test_pages_say_what_the_metrics_say() -> None:
    runs = [pipeline("blocking", steps=40), pipeline("overlap", steps=40)]
    text = _Page(timeline_page(runs)).text
    for run in runs:
        found = metrics(run)
        assert share(found.hidden) in text
        assert duration(found.exposed_seconds) in text
        assert share(found.efficiencies.load_balance) in text
    assert f"{runs[1].seconds / runs[0].seconds:.2f} × blocking" in text


def test_pages_show_the_disk_where_there_is_one() -> None:
    page = _Page(timeline_page([replace(pipeline("overlap"), engine="in memory"), out_of_core()]))
    assert "40%" in page.text
    assert "200 B read" in page.text
    assert "disk hidden" in page.text
    assert {track["kind"] for track in page.data["runs"][1]["ranks"][0]["tracks"]} >= {"reads", "writes"}
    assert "disk hidden" not in _Page(timeline_page([pipeline("overlap")])).text


def test_runs_of_one_engine_are_told_apart() -> None:
    run = pipeline("overlap")
    page = _Page(timeline_page([replace(run, grid=(1, 4)), replace(run, grid=(2, 2))]))
    assert [shown["engine"] for shown in page.data["runs"]] == ["overlap 1×4, tile 64", "overlap 2×2, tile 64"]


def test_predicted_ranks_are_beside_measured_ones() -> None:
    run = replace(pipeline("overlap"), predicted=pipeline("overlap", steps=10).ranks)
    page = _Page(timeline_page([run]))
    assert [rank["predicted"] for rank in page.data["runs"][0]["ranks"]] == [False, False, True, True]
    assert "predicted" in page.text
    assert ("button", "predicted") in [(tag, a.get("id")) for tag, a in page.tags]


def test_names_cannot_break_out_of_a_page() -> None:
    evil = "</script><script>alert(1)</script>\"'&<!--{{data}}"
    run = pipeline("overlap")
    ranks = tuple(replace(rank, host=evil) for rank in run.ranks)
    page = _Page(timeline_page([replace(run, nest=evil, engine=evil, ranks=ranks), run]))
    assert len(page.scripts) == 2
    assert page.data["runs"][0]["engine"] == evil
    assert page.data["runs"][0]["ranks"][0]["host"] == evil
    assert evil in page.text
    assert all(not name.startswith("on") for _, attributes in page.tags for name in attributes)


@pytest.mark.parametrize("ranks", [[], [rank_of(0, [], total=1.0)]], ids=["no ranks", "no events"])
def test_pages_without_events(ranks: list[RankTrace]) -> None:
    page = _Page(timeline_page([run_of(ranks)]))
    assert "no events were recorded" in page.text
    perfetto_json([run_of(ranks)])


def test_pages_say_what_was_dropped() -> None:
    run = two_ranks()
    run = replace(run, ranks=(run.ranks[0], replace(run.ranks[1], dropped=1234)))
    assert "1,234 events did not fit into the trace" in _Page(timeline_page([run])).text


def test_pages_leave_out_the_last_events_beyond_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "MAX_EVENTS", 100)
    runs = [pipeline("overlap", steps=40), pipeline("blocking", steps=40)]
    data = _Page(timeline_page(runs)).data["runs"]
    for run, shown in zip(runs, data, strict=True):
        begins = np.concatenate([rank.events["begin"] for rank in run.ranks])
        kept = len(column(shown, "begin", "<u4"))
        assert shown["leftOut"] == len(begins) - kept
        # Those that begin at the very moment of the last one stay.
        assert 40 <= kept <= 60
        assert column(shown, "begin", "<u4").max() * shown["unit"] <= np.sort(begins)[kept - 1] + 1e-8
    assert "are left out" in timeline_page(runs)


def test_a_page_of_many_events_is_small() -> None:
    assert len(timeline_page([many_events(300_000)])) < 4_000_000


def test_times_beyond_what_nanoseconds_can_count() -> None:
    events = [event("compute", 0, 50), event("compute", 50, 100, step=1)]
    data = _Page(timeline_page([run_of([rank_of(0, events, total=100)])])).data["runs"][0]
    ends = (column(data, "begin", "<u4") + column(data, "length", "<u4").astype(np.int64)) * data["unit"]
    np.testing.assert_allclose(ends, [50, 100], atol=1e-6)


def test_waiting_for_a_slower_neighbour_is_not_exposed() -> None:
    """The second rank computes half as long as the first: it waits with a message on its way, and would without."""
    first, second, begins = [], [], 0.0
    for step in range(10):
        first += [
            event("compute", 2 * step, 2 * step + 2, step=step),
            event("post", 2 * step + 2, 2 * step + 2, step=step, peer=1),
        ]
        arrival = 2 * step + 3.5
        second += [
            event("transfer", 2 * step + 2, arrival, step=step, peer=0),
            event("wait", begins, arrival, step=step, peer=0, exposed=min(1.5, arrival - begins)),
            event("unpack", arrival, arrival, step=step, peer=0),
            event("compute", arrival, arrival + 1, step=step),
        ]
        begins = arrival + 1
    ranks = [rank_of(0, first, total=20), rank_of(1, second, total=begins)]
    assert sum(ranks[1].events["exposed"]) > 9
    assert exposed_seconds(run_of(ranks)) == pytest.approx(0)
