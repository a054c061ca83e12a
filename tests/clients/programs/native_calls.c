/* Calls the driver from a thread of its own, and as the process ends. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);
int cuDeviceGetCount(int *count);
int cuDeviceGet(int *device, int ordinal);
int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuDeviceGetDefaultMemPool(void **pool, int device);
int cuMemPoolTrimTo(void *pool, size_t kept);
int cuCtxGetCurrent(void **context);
int cuCtxGetDevice(int *device);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuCtxSynchronize(void);
int cuStreamQuery(void *stream);
int cuMemAlloc_v2(unsigned long long *address, size_t size);
int cuMemFree_v2(unsigned long long address);
int cuMemcpyDtoH_v2(void *target, unsigned long long address, size_t size);
int cuModuleLoadData(void **module, const void *image);
int cuModuleGetFunction(void **function, void *module, const char *name);
int cuLaunchKernel(void *function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   void *stream, void **parameters, void **extra);
int cuGraphicsGLRegisterBuffer(void **resource, unsigned buffer, unsigned flags);
int cuDevResourceDestroyDesc(void *description);

static unsigned long long kept;

static int answer_of_thread(void *(*work)(void *answer)) {
    int answer = 0;
    pthread_t thread;
    pthread_create(&thread, NULL, work, &answer);
    pthread_join(thread, NULL);
    return answer;
}

static void *ask(void *answer) {
    int count = 0, device = -1, version = 0;
    int wrong = cuInit(0) | cuDriverGetVersion(&version) | cuDeviceGetCount(&count);
    wrong |= cuDeviceGet(&device, 0);
    *(int *)answer = wrong ? -wrong : 100 * (version >= 13000) + 10 * count + device;
    return NULL;
}

int in_a_thread(void) { return answer_of_thread(ask); }

static void *initialize(void *code) {
    *(int *)code = cuInit(0);
    return NULL;
}

int init_in_a_thread(void) { return answer_of_thread(initialize); }

static void *ask_more(void *answer) {
    return (void *)(long)(cuInit(0) | cuDeviceGetAttribute(answer, 75, 0));
}

int more_in_a_thread(void) { return answer_of_thread(ask_more); }

static const char kernel[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n.entry k(.param .u64 p) { .reg .u64 a;\n"
    "ld.param.u64 a, [p]; st.global.u32 [a], 42; ret; }\n";

static void *launch(void *answer) {
    void *context, *module, *function, *parameters[1];
    unsigned long long address = 0;
    int wrong = cuInit(0) | cuDevicePrimaryCtxRetain(&context, 0) | cuCtxSetCurrent(context);
    wrong |= cuModuleLoadData(&module, kernel) | cuModuleGetFunction(&function, module, "k");
    wrong |= cuMemAlloc_v2(&address, 4);
    parameters[0] = &address;
    wrong |= cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL);
    wrong |= cuMemcpyDtoH_v2(answer, address, 4);
    if (wrong) *(int *)answer = -wrong;
    return NULL;
}

int launch_in_a_thread(void) {
    int answer = 0;
    pthread_t thread;
    pthread_create(&thread, NULL, launch, &answer);
    pthread_join(thread, NULL);
    return answer;
}

static void at_exit(void) {
    int version = 0, count = 0, device = -1;
    void *pool = NULL, *context = &pool;
    int codes[] = {cuDriverGetVersion(&version), cuDeviceGetCount(&count),
                   cuDeviceGetDefaultMemPool(&pool, 0), cuMemFree_v2(kept), cuCtxSynchronize(),
                   cuStreamQuery(NULL), cuMemPoolTrimTo(pool, 0), cuCtxGetCurrent(&context),
                   cuCtxGetDevice(&device)};
    for (size_t n = 0; n < sizeof codes / sizeof *codes; ++n) printf("%d ", codes[n]);
    printf("%d %d %d %d %d\n", version >= 13000, count, pool != NULL, context == NULL, device);
}

int keep(void) {
    void *context;
    int wrong = cuInit(0) | cuDevicePrimaryCtxRetain(&context, 0) | cuCtxSetCurrent(context);
    atexit(at_exit);
    return wrong | cuMemAlloc_v2(&kept, 1024);
}

int absent(void) {
    return cuGraphicsGLRegisterBuffer(NULL, 0, 0) == 801 && cuDevResourceDestroyDesc(NULL) == 801;
}
