"""An editor's session: the requests of a client of the protocol, and their responses."""

from __future__ import annotations

import base64
from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest
from adapter import Client, Refused

FILE = Path(__file__).with_name("blocks.cu")
X = np.arange(128, dtype=np.float32)
SUMS = np.array([[X[b * 64 + (t + j) % 64] for j in range(4)] for b in range(2) for t in range(64)])
SUMS = SUMS.sum(1)
"""What `sum` is in each thread."""

CONFIGURATION = {
    "program": str(FILE),
    "grid": 2,
    "block": 64,
    "args": [128, 2.0, "x:f32[128]=arange", "y:f32[128]=zeros"],
}
SOURCE = {"path": str(FILE)}


def line_of(text: str) -> int:
    """The line of the kernel that holds a text."""
    lines = FILE.read_text("utf-8").split("\n")
    return 1 + next(i for i, line in enumerate(lines) if text in line)


@pytest.fixture
def client(tmp_path: Path) -> Generator[Client]:
    with Client(tmp_path) as made:
        yield made


def test_a_session(client: Client) -> None:
    client.launch(**CONFIGURATION)
    reported = client.request(
        "setBreakpoints",
        source=SOURCE,
        breakpoints=[{"line": line_of("halved(sum)"), "condition": "i == 65"}],
    )
    assert not reported["breakpoints"][0]["verified"]  # no kernel is loaded yet
    stopped = client.run()
    assert client.wait("breakpoint")["breakpoint"]["verified"]
    assert stopped["reason"] == "breakpoint"
    frame = client.top(stopped)
    assert (frame["name"], frame["line"]) == ("blocks", line_of("halved(sum)"))
    assert Path(frame["source"]["path"]) == FILE.resolve()

    # Threads are warps; the one that stopped is seen through the lane of thread 1 of block 1.
    names = {t["id"]: t["name"] for t in client.request("threads")["threads"]}
    assert names[stopped["threadId"]] == "block (1, 0, 0) warp 0, thread (1, 0, 0)"
    values = client.scope(stopped, "Locals")
    assert (values["i"], values["n"], values["a"]) == ("65", "128", "2")
    assert float(values["sum"]) == SUMS[65]
    assert values["pair"] == "{first = 2, second = {65, 130}}"
    evaluated = client.request("evaluate", expression="pair", frameId=frame["id"])
    parts = client.request("variables", variablesReference=evaluated["variablesReference"])
    assert [p["name"] for p in parts["variables"]] == ["first", "second"]

    # Into the function and out of it.
    stopped = client.run("stepIn", threadId=stopped["threadId"])
    names = [f["name"] for f in client.request("stackTrace", threadId=1 + 2)["stackFrames"]]
    assert names == ["halved", "blocks"]
    assert float(client.scope(stopped, "Locals")["v"]) == SUMS[65]
    stopped = client.run("stepOut", threadId=stopped["threadId"])
    assert client.top(stopped)["name"] == "blocks"

    # Back again.
    stopped = client.run("stepBack", threadId=stopped["threadId"])
    assert client.top(stopped)["line"] == line_of("halved(sum)")
    stopped = client.run("stepBack", threadId=stopped["threadId"], granularity="instruction")
    assert stopped["reason"] == "step"


def test_memory_and_data_breakpoints(client: Client) -> None:
    client.launch(**CONFIGURATION)
    client.request("setFunctionBreakpoints", breakpoints=[{"name": "blocks"}])
    stopped = client.run()
    assert client.top(stopped)["line"] == line_of("int i =")
    client.request("setFunctionBreakpoints", breakpoints=[])
    info = client.request("dataBreakpointInfo", name="y[70]")
    assert "write" in info["accessTypes"]
    client.request("setDataBreakpoints", breakpoints=[{"dataId": info["dataId"]}])
    stopped = client.run("continue", threadId=stopped["threadId"])
    assert stopped["reason"] == "data breakpoint"
    at = client.request("evaluate", expression="&y[70]")["memoryReference"]
    read = client.request("readMemory", memoryReference=at, count=4)
    written = np.frombuffer(base64.b64decode(read["data"]), np.float32)
    assert written == SUMS[70] + 2 * 70
    # Before the launch has written it, memory is as it was.
    stopped = client.run("reverseContinue", threadId=stopped["threadId"])
    read = client.request("readMemory", memoryReference=at, count=4)
    assert np.frombuffer(base64.b64decode(read["data"]), np.float32) == 0
    data = base64.b64encode(np.float32(1.5).tobytes()).decode()
    client.request("writeMemory", memoryReference=at, data=data)
    assert client.request("evaluate", expression="y[70]")["result"] == "1.5"
    far = client.request("readMemory", memoryReference="0x10", count=4)
    assert far["unreadableBytes"] == 4


def test_hits_logs_events_and_changed_variables(client: Client) -> None:
    client.launch(**CONFIGURATION)
    loop = {"line": line_of("sum += tile"), "hitCondition": "3"}
    client.request("setBreakpoints", source=SOURCE, breakpoints=[loop])
    stopped = client.run()
    assert client.scope(stopped, "Locals")["j"] == "2"
    frame = client.top(stopped)
    scopes = client.request("scopes", frameId=frame["id"])["scopes"]
    locals = scopes[0]["variablesReference"]
    reported = client.request("variables", variablesReference=locals)["variables"]
    pair = next(each["variablesReference"] for each in reported if each["name"] == "pair")
    reported = client.request("variables", variablesReference=pair)["variables"]
    second = next(each["variablesReference"] for each in reported if each["name"] == "second")
    changed = client.request("setVariable", variablesReference=second, name="[1]", value="900")
    assert changed["value"] == "900"  # of thread 0 of block 0
    log = {"line": line_of("float sum"), "logMessage": "i is {i}", "condition": "i == 96"}
    client.request("setBreakpoints", source=SOURCE, breakpoints=[log])
    options = [{"filterId": "bank-conflict", "condition": ">= 31"}]
    reported = client.request(
        "setExceptionBreakpoints", filters=["divergence"], filterOptions=options
    )
    assert [each["verified"] for each in reported["breakpoints"]] == [True, True]
    stopped = client.run("continue", threadId=stopped["threadId"])
    assert stopped["reason"] == "exception"
    client.request("setExceptionBreakpoints", filters=[])
    stopped = client.run("continue", threadId=stopped["threadId"])
    assert stopped["text"] == "The kernel has ended."
    assert client.wait("output")["output"] == "i is 96\n"
    ends = [client.request("evaluate", expression=f"y[{i}]")["result"] for i in (0, 2)]
    assert ends == [f"{SUMS[0] + 900:g}", f"{SUMS[2] + 4:g}"]


def test_code_and_refusals(client: Client) -> None:
    client.launch(**CONFIGURATION, stopOnEntry=True)
    stopped = client.run()
    assert stopped["reason"] == "entry"
    here = client.top(stopped)["instructionPointerReference"]
    code = client.request("disassemble", memoryReference=here, instructionCount=5)
    assert len(code["instructions"]) == 5
    assert client.request("loadedSources")["sources"][0]["name"] == "blocks.cu"
    places = client.request("breakpointLocations", source=SOURCE, line=1, endLine=100)
    assert line_of("y[i] = sum") in [p["line"] for p in places["breakpoints"]]
    store = next(i for i in code["instructions"])["address"]
    client.request("setInstructionBreakpoints", breakpoints=[{"instructionReference": store}])
    with pytest.raises(Refused, match="there is no nonsense in blocks"):
        client.request("evaluate", expression="nonsense")
    with pytest.raises(Refused, match="there is no request warploom/nonsense"):
        client.request("warploom/nonsense")
    stopped = client.run("continue", threadId=stopped["threadId"])
    client.request("continue", threadId=stopped["threadId"])
    client.request("disconnect")


def test_a_fault_stops_before_it(client: Client) -> None:
    args = [128, 2.0, "x:f32[128]=arange", "y:f32[100]=zeros"]
    client.launch(**{**CONFIGURATION, "args": args})
    stopped = client.run()
    assert stopped["reason"] == "exception"
    info = client.request("exceptionInfo", threadId=stopped["threadId"])
    assert info["exceptionId"] == "MemoryFault"
    assert "4 bytes" in info["description"]
    assert int(client.scope(stopped, "Locals")["i"]) >= 100


def test_a_configuration_with_an_unknown_word_is_refused(client: Client) -> None:
    client.launch(**CONFIGURATION, blok=64)
    client.request("configurationDone")
    assert "unknown settings: blok" in client.wait("output")["output"]
    assert client.wait("exited")["exitCode"] == 1


def test_a_warp_goes_on_alone(client: Client) -> None:
    client.launch(**CONFIGURATION)
    breakpoints = [{"line": line_of("y[i] = sum")}]
    client.request("setBreakpoints", source=SOURCE, breakpoints=breakpoints)
    stopped = client.run()
    first = stopped["threadId"]
    stopped = client.run("next", threadId=first, singleThread=True)
    warps = client.request("warploom/warps")["warps"]
    lines = [group["line"] for group in warps[1]["groups"]]
    stopped = client.run("next", threadId=first, singleThread=True)
    reported = client.request("warploom/warps")["warps"]
    assert stopped["threadId"] == first
    assert [group["line"] for group in reported[1]["groups"]] == lines  # the other has stayed
