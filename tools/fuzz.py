"""Fuzzes Warploom: runs random inputs in worker processes, and writes those that show an error to
tests/regressions, made as small as they get.

    python tools/fuzz.py --minutes 30 --seed 7       all targets; exit status 1 if anything is wrong
    python tools/fuzz.py --targets ptx,fatbin        some of them (see tools/fuzzing/targets)
    python tools/fuzz.py --target ptx --only 7000003 one example again, in this process

A seed and a target give the same example each time. WARPLOOM_OPT_LEVEL=0 makes kernels compile
fast. It runs on Linux.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / folder) for folder in (".", "tools", "tests/machine")]


def arguments(words: list[str]) -> argparse.Namespace:
    """Returns the options of the command line."""
    parser = argparse.ArgumentParser(description="Fuzzes Warploom.")
    parser.add_argument("--minutes", type=float, help="end after so long")
    parser.add_argument("--examples", type=int, help="run so many of each target")
    parser.add_argument("--errors", type=int, help="end when so many are found")
    parser.add_argument("--seed", type=int, default=0, help="of the whole run (default: 0)")
    parser.add_argument("--targets", "--target", help="names with commas between (default: all)")
    parser.add_argument("--only", type=int, metavar="SEED", help="run one example of one target")
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--reduce", type=float, default=120, help="seconds for each finding")
    parser.add_argument("--scale", type=float, default=1.0, help="of the time for an example")
    parser.add_argument("--folder", type=Path, help="for findings (default: tests/regressions)")
    parser.add_argument("--json", type=Path, help="a file for the whole outcome")
    parser.add_argument("--report", type=Path, help="a file for the table, in Markdown")
    parser.add_argument("--plant", default="", help="module:function that plants errors (tests)")
    given = parser.parse_args(words)
    if given.only is None and given.minutes is None and given.examples is None:
        parser.error("give --minutes, --examples or --only")
    return given


def main(words: list[str]) -> int:
    """Runs the fuzzer; returns 1 if it found anything."""
    given = arguments(words)
    from fuzzing.campaign import SEEDS, Campaign, Plan
    from fuzzing.regressions import FOLDER
    from fuzzing.summary import describe, document, table
    from fuzzing.targets import TARGETS

    names = given.targets.split(",") if given.targets else list(TARGETS)
    unknown = [name for name in names if name not in TARGETS]
    if unknown:
        print(f"no target {', '.join(unknown)}; there are {', '.join(TARGETS)}", file=sys.stderr)
        return 2
    if given.only is not None:
        case = TARGETS[names[0]].generate(given.only)
        print(
            case.runner,
            case.options,
            repr(case.content)[:200] if isinstance(case.content, bytes) else case.content,
        )
        TARGETS[names[0]].check(case)
        return 0
    plan = Plan(
        targets=tuple(TARGETS[name] for name in names),
        seed=given.seed,
        seconds=float("inf") if given.minutes is None else 60 * given.minutes,
        examples=SEEDS if given.examples is None else given.examples,
        errors=SEEDS if given.errors is None else given.errors,
        workers=given.workers,
        reduction_seconds=given.reduce,
        plant=given.plant,
        scale=given.scale,
        folder=given.folder or FOLDER,
    )
    campaign = Campaign(plan, lambda finding: print(describe(finding), flush=True))
    findings = campaign.run()
    command = shlex.join(["python", "tools/fuzz.py", *words])
    shown = f"`{command}`\n\n{table(campaign)}\n"
    print(shown)
    if given.report:
        given.report.write_text(
            shown + "".join(f"\n- {describe(one)}\n" for one in findings), "utf-8"
        )
    if given.json:
        given.json.write_text(json.dumps(document(campaign, command), indent=1) + "\n", "utf-8")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
