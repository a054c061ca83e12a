from typing import Any

init_xoroshiro128p_state: Any
init_xoroshiro128p_states_cpu: Any
xoroshiro128p_dtype: Any
xoroshiro128p_jump: Any
xoroshiro128p_next: Any
xoroshiro128p_normal_float32: Any
xoroshiro128p_normal_float64: Any
xoroshiro128p_uniform_float32: Any
xoroshiro128p_uniform_float64: Any
