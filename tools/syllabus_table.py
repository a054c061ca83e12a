"""Writes the table of the syllabus into docs/teaching.md, from what the lessons' files say of aims
and prerequisites: `python tools/syllabus_table.py`."""

from pathlib import Path

from warploom.ui.lessons import lesson_heads

TARGET = Path(__file__).parents[1] / "docs" / "teaching.md"

BEGIN, END = "<!-- syllabus -->", "<!-- end of the syllabus -->"


def syllabus_table() -> str:
    """Returns the table: the lessons in order, by the parts of the syllabus."""
    lines = [
        "| part | lesson | after the lesson, you can | prerequisites |",
        "| --- | --- | --- | --- |",
    ]
    part = ""
    for head in lesson_heads():
        shown = "" if head.part == part else head.part
        part = head.part
        needs = ", ".join(f"`{name}`" for name in head.needs)
        aim = head.aim[:1].lower() + head.aim[1:].rstrip(".")
        lines.append(f"| {shown} | `{head.id}` | {aim} | {needs} |")
    return "\n".join(lines)


def page() -> str:
    """Returns the text of the page with the table as it is now."""
    before, _, rest = TARGET.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{syllabus_table()}\n{END}{after}"


if __name__ == "__main__":
    TARGET.write_text(page(), "utf-8")
