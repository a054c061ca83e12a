// All of the runtime is in hip_runtime.h.
#pragma once
#include "hip_runtime.h"
