"""SCA's Table 1 in the report: each cell as measured, the counts behind it, and the paper's."""

from __future__ import annotations

from html import escape

from sardonyx.sca_stages import COLUMNS, Cell, Table1


def html(table: Table1) -> str:
    """The section's inside."""
    heads = ("stage", *(column.replace("_", "-") for column in COLUMNS))
    head = "".join(f'<th class="name">{head}</th>' for head in heads)
    body = "".join(
        f'<tr><th scope="row">{escape(stage)}</th>'
        + "".join(_cell(row[column]) for column in COLUMNS)
        + "</tr>"
        for stage, row in table.rows.items()
    )
    return (
        f"<p>{escape(table.note)}</p>"
        f'<div class="scroll"><table data-name="table-1" class="claims"><thead>'
        f"<tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(cell: Cell) -> str:
    same = sum(value == cell.ours for value in cell.programs.values())
    each = f"the same in {same} of {len(cell.programs)} programs"
    return (
        f'<td class="name why"><strong>{escape(cell.ours)}</strong> ({escape(cell.beside)})'
        f"<small>{escape(cell.evidence)}; {each}</small></td>"
    )
