/* Fat binaries, kernels and variables, as nvcc's code registers them when a library is loaded.
 *
 * A large library registers hundreds of binaries and tens of thousands of kernels, of which a program
 * uses few. So only their addresses are kept here, without Python, which looks one up when it is first
 * used: `warploom.clients.runtime.registration` is the other side.
 */

/* The handle that nvcc's code gets leads to one of these; Python sets `used`. */
typedef struct {
    const void *image;
    int used;
} registered_binary;

typedef struct {
    registered_binary *binary;
    const void *host; /* the address by which the program names the kernel or variable */
    const char *name;
} registered_symbol;

typedef struct {
    registered_symbol *items;
    size_t count, room;
} symbol_table;

enum { KERNELS, VARIABLES, KINDS };

static symbol_table registered[KINDS];
static pthread_mutex_t registering = PTHREAD_MUTEX_INITIALIZER;

static void register_symbol(int kind, void **handle, const void *host, const char *name) {
    symbol_table *table = &registered[kind];
    pthread_mutex_lock(&registering);
    if (table->count == table->room) {
        size_t room = table->room ? 2 * table->room : 64;
        registered_symbol *items = realloc(table->items, room * sizeof *items);
        if (!items) abort();
        table->items = items;
        table->room = room;
    }
    table->items[table->count++] = (registered_symbol){(registered_binary *)handle, host, name};
    pthread_mutex_unlock(&registering);
}

/* The symbol of that kind at an address of the host, which was registered last; 0 if there is none. */
int warploom_find_symbol(int kind, const void *host, registered_binary **binary, const char **name) {
    symbol_table *table = &registered[kind];
    int found = 0;
    pthread_mutex_lock(&registering);
    for (size_t n = table->count; n-- && !found;)
        if (table->items[n].host == host) {
            *binary = table->items[n].binary;
            *name = table->items[n].name;
            found = 1;
        }
    pthread_mutex_unlock(&registering);
    return found;
}

void **__cudaRegisterFatBinary(void *image) {
    registered_binary *made = calloc(1, sizeof *made);
    if (!made) abort();
    made->image = image;
    return (void **)made;
}

void __cudaRegisterFatBinaryEnd(void **handle) {
    (void)handle;
}

/* 1: the caller registers its symbols now. */
char __cudaInitModule(void **handle) {
    (void)handle;
    return 1;
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit,
                            uint3 *thread, uint3 *block, dim3 *block_size, dim3 *grid_size, int *warp) {
    (void)device, (void)limit, (void)thread, (void)block, (void)block_size, (void)grid_size, (void)warp;
    register_symbol(KERNELS, handle, host, name);
}

void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external,
                       size_t size, int constant, int global) {
    (void)device, (void)external, (void)size, (void)constant, (void)global;
    register_symbol(VARIABLES, handle, host, name);
}

/* Written by tools/build_driver.py: has Python unload what it has of the binary. */
void __warploomUnloadFatBinary(void **handle);

/* A library is closed, or the process ends. */
void __cudaUnregisterFatBinary(void **handle) {
    registered_binary *gone = (registered_binary *)handle;
    if (gone->used) __warploomUnloadFatBinary(handle);
    pthread_mutex_lock(&registering);
    for (int kind = 0; kind < KINDS; ++kind) {
        symbol_table *table = &registered[kind];
        size_t kept = 0;
        for (size_t n = 0; n < table->count; ++n)
            if (table->items[n].binary != gone) table->items[kept++] = table->items[n];
        table->count = kept;
    }
    pthread_mutex_unlock(&registering);
    free(gone);
}
