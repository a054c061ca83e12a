// HIP's name of CUDA's header.
#pragma once
#include <cuda_fp16.h>
