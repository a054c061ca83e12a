from typing import Any

decomposition_table: dict[Any, Any]
