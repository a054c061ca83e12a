// HIP's name of CUDA's header.
#pragma once
#include <hip/hip_runtime.h>
