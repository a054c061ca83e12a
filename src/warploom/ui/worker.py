"""Carries out one job after the other in a process for the server (`ui.worker_runner`), so that
none of them waits until a process has begun and loaded the compilers.

Jobs and answers are those of `ui.child`; each has its length in front of it. The process has the
same limits of addresses and files; the server bounds the time of each job.
"""

from __future__ import annotations

import gc
import sys
import threading
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from typing import BinaryIO

import msgspec

from warploom.ui.child import LENGTH_BYTES, Job, answer_to
from warploom.ui.child_limits import end_run, limit_resources


def main() -> None:
    """Answers jobs until the server ends. The arguments are the bytes of memory that a job may use,
    and the folder of the temporary files."""
    most, folder = int(sys.argv[1]), Path(sys.argv[2])
    limit_resources(most)
    jobs: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_read_jobs, args=(sys.stdin.buffer, jobs, folder), daemon=True).start()
    import_module("warploom.ui.explorables.recorded")  # before the first job comes
    gc.freeze()
    while True:
        job = msgspec.json.decode(jobs.get(), type=Job)
        answer = answer_to(job, most)
        sys.stdout.buffer.write(len(answer).to_bytes(LENGTH_BYTES, "little") + answer)
        sys.stdout.buffer.flush()
        gc.collect()  # devices reserve addresses until they are collected


def _read_jobs(stdin: BinaryIO, jobs: SimpleQueue[bytes], folder: Path) -> None:
    """Reads jobs; ends the process, also amid a job, when the server has ended."""
    while len(length := stdin.read(LENGTH_BYTES)) == LENGTH_BYTES:
        jobs.put(stdin.read(int.from_bytes(length, "little")))
    end_run(folder)


if __name__ == "__main__":
    main()
