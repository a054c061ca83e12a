/* Calls the driver from a thread of its own, and as the process ends. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);
int cuDeviceGetCount(int *count);
int cuDeviceGet(int *device, int ordinal);
int cuDeviceGetDefaultMemPool(void **pool, int device);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuCtxSynchronize(void);
int cuStreamQuery(void *stream);
int cuMemAlloc_v2(unsigned long long *address, size_t size);
int cuMemFree_v2(unsigned long long address);
int cuGraphicsGLRegisterBuffer(void **resource, unsigned buffer, unsigned flags);
int cuDevResourceDestroyDesc(void *description);

static unsigned long long kept;

static void *ask(void *answer) {
    int count = 0, device = -1, version = 0;
    int wrong = cuInit(0) | cuDriverGetVersion(&version) | cuDeviceGetCount(&count);
    wrong |= cuDeviceGet(&device, 0);
    *(int *)answer = wrong ? -wrong : 100 * (version >= 13000) + 10 * count + device;
    return NULL;
}

int in_a_thread(void) {
    int answer = 0;
    pthread_t thread;
    pthread_create(&thread, NULL, ask, &answer);
    pthread_join(thread, NULL);
    return answer;
}

static void at_exit(void) {
    int version = 0, count = 0;
    void *pool = NULL;
    int codes[] = {cuDriverGetVersion(&version), cuDeviceGetCount(&count),
                   cuDeviceGetDefaultMemPool(&pool, 0), cuMemFree_v2(kept), cuCtxSynchronize(),
                   cuStreamQuery(NULL)};
    for (size_t n = 0; n < sizeof codes / sizeof *codes; ++n) printf("%d ", codes[n]);
    printf("%d %d %d\n", version >= 13000, count, pool != NULL);
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
