from typing import Any

distributed_c10d: Any
