from typing import Any

get_current_device: Any
