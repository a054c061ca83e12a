// HIP's name of CUDA's header.
#pragma once
#include <cuda_bf16.h>
