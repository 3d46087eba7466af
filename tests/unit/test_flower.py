"""Methods as apps of Flower: exported, run by `flwr` where it is installed, over its transport on demand.

pip install --require-hashes -r requirements-flower.lock   # in an environment of its own
pytest tests/unit/test_flower.py -m ''                     # a quarter of an hour
"""

from __future__ import annotations

import re
import runpy
import signal
import sys
import threading
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest

from replifed import contract
from replifed.algorithms.registry import method_class
from replifed.cli import main
from replifed.contract import check_forms
from replifed.errors import ReplifedError
from replifed.problems.clients import from_clients
from replifed.randomness import Streams
from replifed.wire.export import export
from replifed.wire.forms import MODULES
from replifed.wire.run import run

TESTS = Path(__file__).parents[1]
OWN = '''
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from replifed.algorithms.base import POSITIVE, Method, ServerModel
from replifed.algorithms.cohort import Cohort
from replifed.problems.base import PerClientModels, Smooth
from replifed.wire.forms.common import mean
from replifed.wire.messages import Dense


@dataclass(frozen=True, kw_only=True)
class Damped(Method):
    """x <- mean of (1 - step) x + step (x - grad f_i(x)), from one."""

    step: Annotated[float, POSITIVE] = 0.25

    needs = (Smooth, PerClientModels)

    def init(self, problem, streams):
        return ServerModel(np.ones((len(streams), problem.dim)))

    def round(self, state, problem, ctx):
        cohort = Cohort(problem, ctx)
        x = np.repeat(state.x[:, None], cohort.clients.shape[1], axis=1)
        w = x - self.step * cohort.problem.per_client_gradients(x)
        return ServerModel(w.mean(axis=1)), cohort.cost(1, None)

    def client(self, message, own, data, turn):
        (x,) = message
        return [Dense(x - self.step * data.gradient(x))], {"asked": own.get("asked", np.array(0)) + 1}

    def server(self, state, turn):
        replies = yield [Dense(state["x"])]
        return {"x": mean(replies)}
'''


@pytest.fixture
def own(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(OWN, encoding="utf-8")
    return f"{file}:Damped"


def method_of(app: Path):
    """The method that an app has."""
    return runpy.run_path(str(app / "replifed_app" / "method.py"))["METHOD"]


@pytest.mark.parametrize("name", sorted(MODULES.values()))
def test_flower_an_exported_app_has_the_method_and_its_settings(name, tmp_path, capsys):
    app = tmp_path / "app"
    assert main(["export", "flower", name, "--to", str(app)]) == 0
    assert "replifed must be installed on each node" in capsys.readouterr().out
    readme = (app / "README.md").read_text()
    assert "**replifed must be installed on each node**" in readme
    assert "flwr run . CONNECTION --stream" in readme
    assert method_of(app) == method_class(name).example()
    project = tomllib.loads((app / "pyproject.toml").read_text())["tool"]["flwr"]["app"]
    for component in project["components"].values():
        module, _, attribute = component.partition(":")
        text = (app / (module.replace(".", "/") + ".py")).read_text()
        compile(text, module, "exec")
        assert re.search(rf"^{attribute} = ", text, flags=re.MULTILINE)


def test_flower_a_method_of_ones_own_goes_with_its_file_and_keeps_the_contract(own, tmp_path):
    app, checked = tmp_path / "app", 0
    export(own, app)
    assert repr(method_of(app)) == "Damped(step=0.25)"
    assert (app / "replifed_app" / "mine.py").read_text() == OWN
    for case in contract.cases(method_class(own)):
        if contract.CHECKS[check_forms](case):
            check_forms(case)
            checked += 1
    assert checked == 2  # with all clients and with a cohort


def test_flower_parts_of_a_method_in_its_own_file_go_with_it(tmp_path):
    file = tmp_path / "parts.py"
    part = "@dataclass(frozen=True)\nclass Half:\n    share: float = 0.5\n\n\n"
    text = OWN.replace("@dataclass(", part + "@dataclass(", 1)
    file.write_text(text.replace("    needs =", "    half: Half = Half()\n\n    needs ="), encoding="utf-8")
    export(f"{file}:Damped", tmp_path / "app")
    assert repr(method_of(tmp_path / "app")) == "Damped(step=0.25, half=Half(share=0.5))"


def test_flower_what_cannot_be_exported_is_refused_and_leaves_nothing(tmp_path):
    (tmp_path / "method.py").write_text(OWN, encoding="utf-8")
    endless = OWN.replace("    needs =", '    most: float = float("inf")\n\n    needs =')
    (tmp_path / "endless.py").write_text(endless, encoding="utf-8")
    for name, says in (
        ("fedprox", "FedProx has no client and server"),
        ("nobody", "unknown method 'nobody'"),
        (f"{tmp_path}/method.py:Damped", r"method.py: the app has a method.py of its own; rename yours$"),
        (f"{tmp_path}/endless.py:Damped", r"Damped\(step=0.25, most=inf\) is no code: give its example"),
    ):
        with pytest.raises(ReplifedError, match=says):
            export(name, tmp_path / "app")
        assert not (tmp_path / "app").exists()
    (tmp_path / "app").mkdir()
    with pytest.raises(ReplifedError, match="app exists already; remove it, or choose another name"):
        export("fedavg", tmp_path / "app")


# -- with flwr --------------------------------------------------------------------------------------------


def data(sizes=(8, 12, 10), d=4):
    rng = np.random.default_rng(3)
    return [(rng.normal(size=(n, d)), rng.normal(size=n)) for n in sizes]


CONFIG = {"clients": 3, "rounds": 5, "cohort": 0, "seed": 1, "exact": False, "weights": "equal"}
CONFIG |= {"loss": "least_squares", "l2": 0.1, "classes": 0, "results": ""}


class Grid:
    """Flower's grid without its processes: messages are answered as they are pushed."""

    def __init__(self, app, contexts, silent=()):
        self.app, self.contexts, self.silent, self.replies = app, contexts, silent, []

    def get_node_ids(self):
        return list(self.contexts)

    def push_messages(self, messages):
        numbers = []
        for message in messages:
            message.metadata.__dict__["_message_id"] = f"{len(self.replies)}-{message.metadata.dst_node_id}"
            numbers.append(message.metadata.message_id)
            node = message.metadata.dst_node_id
            reply = self.app(message, self.contexts[node])
            self.replies.append(reply)
        return numbers

    def pull_messages(self, numbers):
        wanted = set(numbers)
        return [one for one in self.replies if one.metadata.reply_to_message_id in wanted]


def served(monkeypatch, method, config, number=int):
    """What the server of a method has written, and printed, with three nodes in this process."""
    flwr = pytest.importorskip("flwr.app")
    from flwr.supercore.task_identity import TaskIdentity

    TaskIdentity.task_id = TaskIdentity.run_id = TaskIdentity.node_id = 1  # as in a ServerApp's process
    from replifed.wire import flower

    monkeypatch.setattr(flower, "_PAUSE", 0)
    sets = data()
    client = flower.client_app(method, lambda context: sets[int(context.node_config["partition-id"])])
    contexts = {
        101 + i: flwr.Context(1, 101 + i, {"partition-id": number(i)}, flwr.RecordDict(), dict(config))
        for i in range(3)
    }
    context = flwr.Context(1, 1, {}, flwr.RecordDict(), dict(config))
    flower.server_app(method)(Grid(client, contexts), context)


@pytest.mark.parametrize(
    "name, more", [("fedlin", {}), ("scaffold", {"cohort": 2}), ("scaffnew", {"exact": True}), ("qshed", {})]
)
def test_flower_apps_are_the_forms_with_states_in_their_contexts(name, more, tmp_path, monkeypatch):
    method, file = method_class(name).example(), tmp_path / "out.npz"
    served(monkeypatch, method, CONFIG | more | {"results": str(file)})
    from replifed.network.participation import FixedSize

    shared = {"cohort": FixedSize(2)} if "cohort" in more else {}
    problem = from_clients(data(), loss="least_squares", l2=0.1)
    here = run(method, problem, Streams(1, (1,)), 5, exact=more.get("exact", False), **shared)
    with np.load(file) as out:
        np.testing.assert_array_equal(out["models"], here.models)
        np.testing.assert_array_equal(out["sent"], np.array(here.sent, dtype=np.int64))


def test_flower_what_the_server_cannot_run_ends_in_one_line(capsys, monkeypatch):
    fedlin, fedavg = (method_class(name).example() for name in ("fedlin", "fedavg"))
    for method, config, number, says in (
        (fedlin, {"weights": "samples"}, int, "FedLin takes plain means: set weights = 'equal'"),
        (fedavg, {}, lambda i: min(i, 1), r"nodes have the numbers \[0, 1\]: give them partition-id=0 to 2"),
    ):
        with pytest.raises(ReplifedError):
            served(monkeypatch, method, CONFIG | config, number)
        assert re.fullmatch(rf"replifed: error: {says}\n", capsys.readouterr().out)


@pytest.fixture(scope="module")
def loopback():
    pytest.importorskip("flwr")
    sys.path.insert(0, str(TESTS))
    try:
        import flower_loopback
    finally:
        sys.path.remove(str(TESTS))
    return flower_loopback


@pytest.mark.on_demand
def test_flower_three_methods_over_its_transport_are_those_in_process(loopback, tmp_path):
    with loopback.Loopback(loopback.make_data(tmp_path)) as loop:
        for name in ("fedavg", "fedlin", "scaffold"):
            for exact in (False, True):
                got = loopback.compare(loop, name, tmp_path, 10, exact)
                np.testing.assert_array_equal(got.flower, got.process)
                np.testing.assert_allclose(got.flower, got.batched, rtol=0, atol=1e-9 if exact else 1e-5)
                assert got.row["found"] == got.row["messages"]
                if not exact:
                    assert 8 * got.row["payload_bytes"] == got.row["ledger_bits"]


@pytest.mark.on_demand
def test_flower_an_own_method_runs_and_a_node_that_is_killed_leaves_the_round(loopback, own, tmp_path):
    def call(said, app, config):
        said.append(loop.run(app, config))

    with loopback.Loopback(loopback.make_data(tmp_path)) as loop:
        got = loopback.compare(loop, own, tmp_path, 2, exact=True)
        np.testing.assert_array_equal(got.flower, got.process)
        np.testing.assert_allclose(got.flower, got.batched, rtol=0, atol=1e-9)
        for name in ("scaffold", "fedlin"):
            app, out, said = tmp_path / name, tmp_path / f"{name}.npz", []
            export(name, app)
            config = f'rounds=3 loss="least_squares" clients={3 - (name == "fedlin")} results="{out}"'
            begun = loop.traffic.calls["push-messages"]
            flwr = threading.Thread(target=call, args=(said, app, config))
            flwr.start()
            due = begun + 3 * len(loop.alive())
            while flwr.is_alive() and loop.traffic.calls["push-messages"] < due:
                time.sleep(0.2)
            loopback.end(loop.alive()[-1], signal.SIGKILL)  # after the first answers of the method
            flwr.join()
            if name == "scaffold":
                with np.load(out) as file:
                    assert np.isfinite(file["models"]).all()
                    asked = {(t, i) for t, _, i, up, *_ in file["sent"].tolist() if up}
                assert (2, 2) not in asked and {(2, 0), (2, 1)} <= asked
            else:
                assert not out.exists()
                assert re.search(
                    r"replifed: error: round \d: client 1 did not answer, and FedLin needs it",
                    said[0] + loop.log(),
                )
