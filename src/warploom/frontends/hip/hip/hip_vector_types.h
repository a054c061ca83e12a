// HIP's name of CUDA's header.
#pragma once
#include <vector_types.h>
