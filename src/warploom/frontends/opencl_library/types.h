/* Declares the types, constants and macros of OpenCL C (OpenCL C 3.0, 6.3, 6.15). Functions are
   declared by clang itself (-fdeclare-opencl-builtins). */
#pragma once

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __INTPTR_TYPE__ intptr_t;
typedef __UINTPTR_TYPE__ uintptr_t;

#define __WARPLOOM_VECTORS(T) \
    typedef T T##2 __attribute__((ext_vector_type(2))); \
    typedef T T##3 __attribute__((ext_vector_type(3))); \
    typedef T T##4 __attribute__((ext_vector_type(4))); \
    typedef T T##8 __attribute__((ext_vector_type(8))); \
    typedef T T##16 __attribute__((ext_vector_type(16)));
__WARPLOOM_VECTORS(char)
__WARPLOOM_VECTORS(uchar)
__WARPLOOM_VECTORS(short)
__WARPLOOM_VECTORS(ushort)
__WARPLOOM_VECTORS(int)
__WARPLOOM_VECTORS(uint)
__WARPLOOM_VECTORS(long)
__WARPLOOM_VECTORS(ulong)
__WARPLOOM_VECTORS(float)
#ifdef cl_khr_fp16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
__WARPLOOM_VECTORS(half)
#endif
#if defined(cl_khr_fp64) || defined(__opencl_c_fp64)
#if __OPENCL_C_VERSION__ < 120
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
__WARPLOOM_VECTORS(double)
#endif
#undef __WARPLOOM_VECTORS

/* Which functions clang declares goes by these. */
#if __OPENCL_C_VERSION__ == 200
#define __opencl_c_generic_address_space 1
#define __opencl_c_work_group_collective_functions 1
#define __opencl_c_atomic_order_acq_rel 1
#define __opencl_c_atomic_order_seq_cst 1
#define __opencl_c_atomic_scope_device 1
#define __opencl_c_atomic_scope_all_devices 1
#define __opencl_c_program_scope_global_variables 1
#define __opencl_c_images 1
#endif
#ifndef __opencl_c_generic_address_space
#define __opencl_c_named_address_space_builtins 1
#endif
#if defined(cl_khr_subgroups) || defined(__opencl_c_subgroups)
#define __opencl_subgroup_builtins 1
#endif

#ifdef cl_khr_3d_image_writes
#pragma OPENCL EXTENSION cl_khr_3d_image_writes : enable
#endif

#define NULL ((void *)0)
typedef uint cl_mem_fence_flags;
#define CLK_LOCAL_MEM_FENCE 1
#define CLK_GLOBAL_MEM_FENCE 2

/* ---- limits and constants (6.15.2.1, 6.15.3.1) ---- */

#define CHAR_BIT 8
#define SCHAR_MAX 127
#define SCHAR_MIN (-128)
#define UCHAR_MAX 255
#define CHAR_MAX SCHAR_MAX
#define CHAR_MIN SCHAR_MIN
#define SHRT_MAX 32767
#define SHRT_MIN (-32768)
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 0xffffffffU
#define LONG_MAX 0x7fffffffffffffffL
#define LONG_MIN (-0x7fffffffffffffffL - 1)
#define ULONG_MAX 0xffffffffffffffffUL

#define FLT_DIG 6
#define FLT_MANT_DIG 24
#define FLT_MAX_10_EXP 38
#define FLT_MAX_EXP 128
#define FLT_MIN_10_EXP (-37)
#define FLT_MIN_EXP (-125)
#define FLT_RADIX 2
#define FLT_MAX 0x1.fffffep127f
#define FLT_MIN 0x1.0p-126f
#define FLT_EPSILON 0x1.0p-23f

#define DBL_DIG 15
#define DBL_MANT_DIG 53
#define DBL_MAX_10_EXP 308
#define DBL_MAX_EXP 1024
#define DBL_MIN_10_EXP (-307)
#define DBL_MIN_EXP (-1021)
#define DBL_RADIX 2
#define DBL_MAX 0x1.fffffffffffffp1023
#define DBL_MIN 0x1.0p-1022
#define DBL_EPSILON 0x1.0p-52

#define HALF_DIG 3
#define HALF_MANT_DIG 11
#define HALF_MAX_10_EXP 4
#define HALF_MAX_EXP 16
#define HALF_MIN_10_EXP (-4)
#define HALF_MIN_EXP (-13)
#define HALF_RADIX 2
#define HALF_MAX 0x1.ffcp15h
#define HALF_MIN 0x1.0p-14h
#define HALF_EPSILON 0x1.0p-10h

#define MAXFLOAT FLT_MAX
#define HUGE_VALF (__builtin_huge_valf())
#define HUGE_VAL (__builtin_huge_val())
#define INFINITY (__builtin_inff())
#define NAN (__builtin_nanf(""))
#define FP_ILOGB0 INT_MIN
#define FP_ILOGBNAN INT_MIN

#define M_E 2.71828182845904523536
#define M_LOG2E 1.44269504088896340736
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440

#define M_E_F 2.71828182845904523536f
#define M_LOG2E_F 1.44269504088896340736f
#define M_LOG10E_F 0.43429448190325182765f
#define M_LN2_F 0.69314718055994530942f
#define M_LN10_F 2.30258509299404568402f
#define M_PI_F 3.14159265358979323846f
#define M_PI_2_F 1.57079632679489661923f
#define M_PI_4_F 0.78539816339744830962f
#define M_1_PI_F 0.31830988618379067154f
#define M_2_PI_F 0.63661977236758134308f
#define M_2_SQRTPI_F 1.12837916709551257390f
#define M_SQRT2_F 1.41421356237309504880f
#define M_SQRT1_2_F 0.70710678118654752440f

#define M_E_H 2.71828182845904523536h
#define M_LOG2E_H 1.44269504088896340736h
#define M_LOG10E_H 0.43429448190325182765h
#define M_LN2_H 0.69314718055994530942h
#define M_LN10_H 2.30258509299404568402h
#define M_PI_H 3.14159265358979323846h
#define M_PI_2_H 1.57079632679489661923h
#define M_PI_4_H 0.78539816339744830962h
#define M_1_PI_H 0.31830988618379067154h
#define M_2_PI_H 0.63661977236758134308h
#define M_2_SQRTPI_H 1.12837916709551257390h
#define M_SQRT2_H 1.41421356237309504880h
#define M_SQRT1_2_H 0.70710678118654752440h

/* ---- samplers, orders and types of channels (6.15.15) ---- */

#define CLK_NORMALIZED_COORDS_FALSE 0
#define CLK_NORMALIZED_COORDS_TRUE 1
#define CLK_ADDRESS_NONE 0
#define CLK_ADDRESS_CLAMP_TO_EDGE 2
#define CLK_ADDRESS_CLAMP 4
#define CLK_ADDRESS_REPEAT 6
#define CLK_ADDRESS_MIRRORED_REPEAT 8
#define CLK_FILTER_NEAREST 0x10
#define CLK_FILTER_LINEAR 0x20

#define CLK_R 0x10B0
#define CLK_A 0x10B1
#define CLK_RG 0x10B2
#define CLK_RA 0x10B3
#define CLK_RGB 0x10B4
#define CLK_RGBA 0x10B5
#define CLK_BGRA 0x10B6
#define CLK_ARGB 0x10B7
#define CLK_INTENSITY 0x10B8
#define CLK_LUMINANCE 0x10B9
#define CLK_Rx 0x10BA
#define CLK_RGx 0x10BB
#define CLK_RGBx 0x10BC
#define CLK_DEPTH 0x10BD
#define CLK_DEPTH_STENCIL 0x10BE
#define CLK_sRGB 0x10BF
#define CLK_sRGBx 0x10C0
#define CLK_sRGBA 0x10C1
#define CLK_sBGRA 0x10C2
#define CLK_ABGR 0x10C3

#define CLK_SNORM_INT8 0x10D0
#define CLK_SNORM_INT16 0x10D1
#define CLK_UNORM_INT8 0x10D2
#define CLK_UNORM_INT16 0x10D3
#define CLK_UNORM_SHORT_565 0x10D4
#define CLK_UNORM_SHORT_555 0x10D5
#define CLK_UNORM_INT_101010 0x10D6
#define CLK_SIGNED_INT8 0x10D7
#define CLK_SIGNED_INT16 0x10D8
#define CLK_SIGNED_INT32 0x10D9
#define CLK_UNSIGNED_INT8 0x10DA
#define CLK_UNSIGNED_INT16 0x10DB
#define CLK_UNSIGNED_INT32 0x10DC
#define CLK_HALF_FLOAT 0x10DD
#define CLK_FLOAT 0x10DE
#define CLK_UNORM_INT24 0x10DF
#define CLK_UNORM_INT_101010_2 0x10E0

/* ---- atomics (6.15.12) ---- */

typedef enum memory_order {
    memory_order_relaxed = __ATOMIC_RELAXED,
    memory_order_acquire = __ATOMIC_ACQUIRE,
    memory_order_release = __ATOMIC_RELEASE,
    memory_order_acq_rel = __ATOMIC_ACQ_REL,
    memory_order_seq_cst = __ATOMIC_SEQ_CST
} memory_order;

typedef enum memory_scope {
    memory_scope_work_item = __OPENCL_MEMORY_SCOPE_WORK_ITEM,
    memory_scope_work_group = __OPENCL_MEMORY_SCOPE_WORK_GROUP,
    memory_scope_device = __OPENCL_MEMORY_SCOPE_DEVICE,
    memory_scope_all_svm_devices = __OPENCL_MEMORY_SCOPE_ALL_SVM_DEVICES,
    memory_scope_all_devices = memory_scope_all_svm_devices,
    memory_scope_sub_group = __OPENCL_MEMORY_SCOPE_SUB_GROUP
} memory_scope;

#define ATOMIC_FLAG_INIT 0
#define ATOMIC_VAR_INIT(value) (value)
#if __OPENCL_C_VERSION__ >= 200
#define CLK_IMAGE_MEM_FENCE 4
#endif
typedef struct { int type; uint sizes[10]; } ndrange_t;
typedef uint clk_profiling_info;

#define kernel_exec(X, typen) \
    __kernel __attribute__((work_group_size_hint(X, 1, 1))) __attribute__((vec_type_hint(typen)))
#define printf(...) __builtin_printf(__VA_ARGS__)

/* ---- reinterpretation (6.4.4.2) ---- */

#define __WARPLOOM_AS(T, x) __builtin_astype((x), T)
#define as_char(x) __WARPLOOM_AS(char, x)
#define as_uchar(x) __WARPLOOM_AS(uchar, x)
#define as_short(x) __WARPLOOM_AS(short, x)
#define as_ushort(x) __WARPLOOM_AS(ushort, x)
#define as_int(x) __WARPLOOM_AS(int, x)
#define as_uint(x) __WARPLOOM_AS(uint, x)
#define as_long(x) __WARPLOOM_AS(long, x)
#define as_ulong(x) __WARPLOOM_AS(ulong, x)
#define as_float(x) __WARPLOOM_AS(float, x)
#define as_double(x) __WARPLOOM_AS(double, x)
#define as_half(x) __WARPLOOM_AS(half, x)
#define as_size_t(x) __WARPLOOM_AS(size_t, x)
#define as_ptrdiff_t(x) __WARPLOOM_AS(ptrdiff_t, x)
#define as_intptr_t(x) __WARPLOOM_AS(intptr_t, x)
#define as_uintptr_t(x) __WARPLOOM_AS(uintptr_t, x)
#define as_char2(x) __WARPLOOM_AS(char2, x)
#define as_char3(x) __WARPLOOM_AS(char3, x)
#define as_char4(x) __WARPLOOM_AS(char4, x)
#define as_char8(x) __WARPLOOM_AS(char8, x)
#define as_char16(x) __WARPLOOM_AS(char16, x)
#define as_uchar2(x) __WARPLOOM_AS(uchar2, x)
#define as_uchar3(x) __WARPLOOM_AS(uchar3, x)
#define as_uchar4(x) __WARPLOOM_AS(uchar4, x)
#define as_uchar8(x) __WARPLOOM_AS(uchar8, x)
#define as_uchar16(x) __WARPLOOM_AS(uchar16, x)
#define as_short2(x) __WARPLOOM_AS(short2, x)
#define as_short3(x) __WARPLOOM_AS(short3, x)
#define as_short4(x) __WARPLOOM_AS(short4, x)
#define as_short8(x) __WARPLOOM_AS(short8, x)
#define as_short16(x) __WARPLOOM_AS(short16, x)
#define as_ushort2(x) __WARPLOOM_AS(ushort2, x)
#define as_ushort3(x) __WARPLOOM_AS(ushort3, x)
#define as_ushort4(x) __WARPLOOM_AS(ushort4, x)
#define as_ushort8(x) __WARPLOOM_AS(ushort8, x)
#define as_ushort16(x) __WARPLOOM_AS(ushort16, x)
#define as_int2(x) __WARPLOOM_AS(int2, x)
#define as_int3(x) __WARPLOOM_AS(int3, x)
#define as_int4(x) __WARPLOOM_AS(int4, x)
#define as_int8(x) __WARPLOOM_AS(int8, x)
#define as_int16(x) __WARPLOOM_AS(int16, x)
#define as_uint2(x) __WARPLOOM_AS(uint2, x)
#define as_uint3(x) __WARPLOOM_AS(uint3, x)
#define as_uint4(x) __WARPLOOM_AS(uint4, x)
#define as_uint8(x) __WARPLOOM_AS(uint8, x)
#define as_uint16(x) __WARPLOOM_AS(uint16, x)
#define as_long2(x) __WARPLOOM_AS(long2, x)
#define as_long3(x) __WARPLOOM_AS(long3, x)
#define as_long4(x) __WARPLOOM_AS(long4, x)
#define as_long8(x) __WARPLOOM_AS(long8, x)
#define as_long16(x) __WARPLOOM_AS(long16, x)
#define as_ulong2(x) __WARPLOOM_AS(ulong2, x)
#define as_ulong3(x) __WARPLOOM_AS(ulong3, x)
#define as_ulong4(x) __WARPLOOM_AS(ulong4, x)
#define as_ulong8(x) __WARPLOOM_AS(ulong8, x)
#define as_ulong16(x) __WARPLOOM_AS(ulong16, x)
#define as_float2(x) __WARPLOOM_AS(float2, x)
#define as_float3(x) __WARPLOOM_AS(float3, x)
#define as_float4(x) __WARPLOOM_AS(float4, x)
#define as_float8(x) __WARPLOOM_AS(float8, x)
#define as_float16(x) __WARPLOOM_AS(float16, x)
#define as_double2(x) __WARPLOOM_AS(double2, x)
#define as_double3(x) __WARPLOOM_AS(double3, x)
#define as_double4(x) __WARPLOOM_AS(double4, x)
#define as_double8(x) __WARPLOOM_AS(double8, x)
#define as_double16(x) __WARPLOOM_AS(double16, x)
#define as_half2(x) __WARPLOOM_AS(half2, x)
#define as_half3(x) __WARPLOOM_AS(half3, x)
#define as_half4(x) __WARPLOOM_AS(half4, x)
#define as_half8(x) __WARPLOOM_AS(half8, x)
#define as_half16(x) __WARPLOOM_AS(half16, x)
