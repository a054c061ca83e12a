"""All entries of the library: importing this registers them."""

from __future__ import annotations

from warploom.clients.opencl import (
    buffers,
    contexts,
    devices,
    events,
    image_copies,
    images,
    kernel_info,
    launches,
    program_info,
    rectangles,
    samplers,
    svm,
)
from warploom.clients.opencl.leftovers import add_leftovers
from warploom.clients.opencl.table import registry
from warploom.clients.session import session

__all__ = [
    "buffers",
    "contexts",
    "devices",
    "events",
    "image_copies",
    "images",
    "kernel_info",
    "launches",
    "program_info",
    "rectangles",
    "registry",
    "samplers",
    "svm",
]

session().at_report.append(add_leftovers)
