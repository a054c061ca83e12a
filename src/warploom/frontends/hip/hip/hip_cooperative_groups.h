// HIP's name of CUDA's header.
#pragma once
#include <cooperative_groups.h>
